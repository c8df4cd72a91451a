"""Fold: events in, rows out. The one place that says what an event does to the state.

`apply` is total over the event kinds and changes nothing when it raises. Statuses move only through
`amends.core.status`. Replaying a run's events gives the rows the journal holds; that equality is tested after
every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amends.core import events as e
from amends.core.errors import CorruptLedger
from amends.core.identity import run_claim
from amends.core.rows import (
    ActionRow,
    ApprovalRow,
    BundleRow,
    CertificateRow,
    ClaimRow,
    EscalationRow,
    PauseRow,
    QuarantineRow,
    RunRow,
    RunState,
)
from amends.core.status import ActionStatus, Move, Outcome, RunStatus, run_transition, transition

_MOVE_OF_OUTCOME = {Outcome.SUCCEEDED: Move.SUCCEED, Outcome.FAILED: Move.FAIL, Outcome.UNKNOWN: Move.LOSE}
_RELEASES_CLAIM = frozenset(
    {ActionStatus.FAILED, ActionStatus.DENIED, ActionStatus.WITHDRAWN, ActionStatus.COMPENSATED}
)


def replay(events: Iterable[e.Event]) -> RunState | None:
    """The state after all `events` of one run, in order; `None` if there are none."""
    state: RunState | None = None
    for event in events:
        state = apply(state, event)
    return state


def apply(state: RunState | None, event: e.Event) -> RunState:
    """The state after `event`. Raises `CorruptLedger` for an event that cannot follow, `IllegalTransition` for a
    move the table does not have; the given state is never changed."""
    if isinstance(event.body, e.RunOpened):
        if state is not None:
            raise CorruptLedger(f"run `{event.run_id}` is opened twice", hint="run `amends ledger verify`")
        run = _opened(event, event.body)
        claim = ClaimRow(
            claim=run_claim(run.tenant, run.workflow, run.run_key), run_id=run.run_id, action_id="", held=True
        )
        return RunState(run=run, claims={claim.claim: claim})
    if state is None:
        raise CorruptLedger(f"run `{event.run_id}` does not begin with `run_opened`", hint="run `amends ledger verify`")
    if event.run_seq != state.run.head + 1:
        raise CorruptLedger(
            f"run `{event.run_id}` has event {event.run_seq} after {state.run.head}", hint="run `amends ledger verify`"
        )
    changed = _apply_body(state, event)
    run = changed.run.model_copy(
        update={
            "head": event.run_seq,
            "updated_us": event.ts_us,
            "ledger_us": max(event.ts_us, changed.run.ledger_us),
            "epoch": max(event.epoch, changed.run.epoch),
        }
    )
    return replace(changed, run=run)


def _apply_body(state: RunState, event: e.Event) -> RunState:
    body = event.body
    match body:
        case e.ActionPlanned():
            return _with_action(state, _planned(state.run, event, body))
        case e.ApprovalAsked() | e.ApprovalGiven() | e.ApprovalClosed():
            return _approval(state, event, body)
        case (
            e.EscalationOpened()
            | e.EscalationNotified()
            | e.EscalationAcknowledged()
            | e.EscalationResolved()
        ):
            return _escalation(state, event, body)
        case e.IntentRecorded(approval_id=approval_id) if approval_id:
            consumed = state.approvals[approval_id].model_copy(update={"status": "consumed"})
            state = replace(state, approvals={**state.approvals, approval_id: consumed})
            return _with_action(state, _acted(state, _action(state, event), event))
        case _ if event.action_id:
            return _with_action(state, _acted(state, _action(state, event), event))
        case _:
            return replace(state, run=_run(state.run, event))


# --- the run ------------------------------------------------------------------------------------------------


def _opened(event: e.Event, body: e.RunOpened) -> RunRow:
    return RunRow(
        run_id=event.run_id,
        tenant=body.tenant,
        workflow=body.workflow,
        run_key=body.run_key,
        agent=body.agent,
        initiator=body.initiator,
        owner=body.owner,
        intent_ref=body.intent_ref,
        check=body.check,
        resume_grace_seconds=body.resume_grace_seconds,
        epoch=event.epoch,
        holder_id=body.holder.owner_id,
        holder_host=body.holder.host,
        holder_pid=body.holder.pid,
        owner_file=body.holder.owner_file,
        lease_until_us=body.lease_until_us,
        caused_by=body.caused_by,
        opened_us=event.ts_us,
        moved_us=event.ts_us,
        updated_us=event.ts_us,
        ledger_us=event.ts_us,
        head=event.run_seq,
    )


def _run(run: RunRow, event: e.Event) -> RunRow:
    match event.body:
        case e.RunClaimed(holder=holder) as body:
            return run.model_copy(
                update={
                    "epoch": event.epoch,
                    "holder_id": holder.owner_id,
                    "holder_host": holder.host,
                    "holder_pid": holder.pid,
                    "owner_file": holder.owner_file,
                    "lease_until_us": body.lease_until_us,
                    "dead_since_us": body.dead_since_us,
                }
            )
        case e.LeaseRenewed(lease_until_us=until):
            return run.model_copy(update={"lease_until_us": until})
        case e.LeaseReleased():
            return run.model_copy(update={"holder_id": "", "lease_until_us": event.ts_us})
        case e.RunMoved() as body:
            status = run_transition(run.status, body.to)
            changes = {"status": status, "reason": body.reason, "moved_us": event.ts_us, "due_us": None}
            if status is RunStatus.OPEN:
                changes["recover_to"] = ""
            return run.model_copy(update=changes)
        case e.CheckpointReached(name=name):
            return run.model_copy(update={"checkpoints": {**run.checkpoints, name: event.run_seq}})
        case e.RecoveryTargeted(checkpoint=checkpoint):
            return run.model_copy(update={"recover_to": checkpoint})
        case e.CheckAnswered(answer=answer):
            return run.model_copy(update={"check_answer": answer, "checked_us": event.ts_us})
        case e.RecoveryWaiting(due_us=due_us):
            return run.model_copy(update={"due_us": due_us})
        case _:
            return run  # facts about the run that move nothing, such as a decision about a probe of no action


# --- actions ------------------------------------------------------------------------------------------------


def _planned(run: RunRow, event: e.Event, body: e.ActionPlanned) -> ActionRow:
    return ActionRow(
        action_id=event.action_id,
        run_id=event.run_id,
        seq=event.run_seq,
        tenant=run.tenant,
        kind=body.action_kind,
        created_us=event.ts_us,
        updated_us=event.ts_us,
        **{name: getattr(body, name) for name in _COPIED},
    )


_COPIED = tuple(name for name in e.ActionPlanned.model_fields if name not in {"kind", "action_kind"})


def _action(state: RunState, event: e.Event) -> ActionRow:
    try:
        return state.actions[event.action_id]
    except KeyError:
        raise CorruptLedger(
            f"event {event.run_seq} of run `{event.run_id}` speaks of an action that was never planned",
            hint="run `amends ledger verify`",
        ) from None


def _acted(state: RunState, action: ActionRow, event: e.Event) -> ActionRow:
    changes = _changes(state, action, event)
    return action.model_copy(update={"updated_us": event.ts_us, **changes})


def _changes(state: RunState, action: ActionRow, event: e.Event) -> dict[str, object]:
    body = event.body
    match body:
        case e.DecisionRecorded():
            return _decided(action, event, body)
        case e.ActionDenied():
            return _moved(action, Move.DENY) | {"withdrawn_reason": body.reason}
        case e.ActionQueued():
            return _moved(action, Move.QUEUE) | {
                "release_mode": body.mode,
                "content_digest": body.content_digest,
                "before_image": body.before_image,
            }
        case e.IntentRecorded():
            return _intent(state, action, event, body)
        case e.OutcomeRecorded():
            return _outcome(action, event, body)
        case e.ProbeSent():
            return {"probes": body.number, "probed_us": event.ts_us}
        case e.ProbeAnswered():
            return {"observation": body.observation}
        case e.LateEvidence():
            return {
                "late": (*action.late, body.evidence),
                "late_outcome": body.outcome,
                "late_effect": body.effect,
                "late_reference": body.reference,
            }
        case _:
            return _recovery_changes(action, event)


def _recovery_changes(action: ActionRow, event: e.Event) -> dict[str, object]:
    body = event.body
    match body:
        case e.CompensationStarted():
            tried = action.tried_rungs if body.rung in action.tried_rungs else (*action.tried_rungs, body.rung)
            return _moved(action, Move.COMPENSATE) | {"undo": body.undo, "tried_rungs": tried}
        case e.CompensationVerified():
            return _moved(action, Move.VERIFY_UNDONE) | {
                "undo": "",
                "compensated_us": event.ts_us,
                "compensated_how": body.how,
                "late_check_due_us": body.late_check_due_us,
                "parked_cause": None,
            }
        case e.LateCheckDone():
            return {"late_check_due_us": None}
        case e.EffectReappeared():
            return _moved(action, Move.REAPPEAR) | {
                "outcome": Outcome.SUCCEEDED,
                "observation": body.observation,
                "tried_rungs": (),
                "late_check_due_us": None,
                "compensated_us": None,
            }
        case e.ActionWithdrawn():
            return _moved(action, Move.WITHDRAW) | {"withdrawn_reason": body.reason}
        case e.ActionParked():
            return _moved(action, Move.PARK) | {"parked_cause": body.cause, "parked_detail": body.detail, "undo": ""}
        case e.ActionReopened():
            return _moved(action, _reopening(action)) | {
                "parked_cause": None,
                "parked_detail": "",
                "probes": 0,
                "tried_rungs": (),
                "unknown_since_us": event.ts_us if action.outcome is Outcome.UNKNOWN else action.unknown_since_us,
            }
        case e.ActionAccepted():
            return _moved(action, _reopening(action)) | {"parked_cause": None, "accepted_by": body.by}
        case e.RecoveryDecided():
            return {"last_decided": f"{body.decision}:{body.reason}"}
        case _:
            raise CorruptLedger(f"`{event.body.kind}` cannot be about an action", hint="run `amends ledger verify`")


def _moved(action: ActionRow, move: Move) -> dict[str, object]:
    return {"status": transition(action.status, move)}


def _decided(action: ActionRow, event: e.Event, body: e.DecisionRecorded) -> dict[str, object]:
    changes: dict[str, object] = {"decided": body.decision, "decided_us": event.ts_us}
    if body.phase in {"forward", "release"}:
        changes["forward_decision_id"] = body.decision.decision_id
        changes["forward_policy_version"] = body.decision.policy_version
    return changes


def _intent(state: RunState, action: ActionRow, event: e.Event, body: e.IntentRecorded) -> dict[str, object]:
    changes = _moved(action, Move.SEND) | {
        "attempt": body.attempt,
        "idempotency_key": body.idempotency_key,
        "deadline_us": body.deadline_us,
        "before_image": body.before_image,
        "allocated": body.allocated,
        "content_digest": body.content_digest,
        "approval_id": body.approval_id or action.approval_id,
        "error": None,
        "sent_epoch": event.epoch,
        "attempt_us": event.ts_us,
    }
    if action.sent_seq is None:
        changes["sent_seq"] = event.run_seq
        changes["sent_us"] = event.ts_us
        changes["after"] = tuple(a.action_id for a in state.actions.values() if _known(a))
    return changes


def _known(action: ActionRow) -> bool:
    return action.forward and action.outcome is not Outcome.NONE and action.ever_sent


def _outcome(action: ActionRow, event: e.Event, body: e.OutcomeRecorded) -> dict[str, object]:
    move = _MOVE_OF_OUTCOME[body.outcome]
    if action.status is ActionStatus.FAILED and body.outcome is Outcome.UNKNOWN:
        move = Move.CONTRADICT
    changes: dict[str, object] = {}
    if (action.status, body.outcome) != (ActionStatus.NEEDS_HUMAN, Outcome.UNKNOWN):
        changes = _moved(action, move)
    unknown = body.outcome is Outcome.UNKNOWN
    changes |= {
        "outcome": body.outcome,
        "evidence": (*action.evidence, body.evidence),
        "error": body.error,
        "outcome_us": event.ts_us,
        "outcome_seq": event.run_seq,
        "late": (),
        "late_outcome": Outcome.NONE,
        "parked_cause": action.parked_cause if unknown else None,
        "unknown_since_us": (action.unknown_since_us or event.ts_us) if unknown else None,
    }
    if action.outcome is not Outcome.UNKNOWN or not unknown:
        changes["probes"] = 0
    for name in ("effect", "output", "after_image", "reference", "parts"):
        value = getattr(body, name)
        if value:
            changes[name] = value
    return changes


_REOPENINGS = {
    Outcome.NONE: Move.REOPEN_QUEUED,
    Outcome.SUCCEEDED: Move.REOPEN_SUCCEEDED,
    Outcome.UNKNOWN: Move.REOPEN_UNKNOWN,
    Outcome.FAILED: Move.REOPEN_FAILED,
}


def _reopening(action: ActionRow) -> Move:
    return _REOPENINGS[action.outcome]


def _with_action(state: RunState, action: ActionRow) -> RunState:
    actions = {**state.actions, action.action_id: action}
    if not action.claim:
        return replace(state, actions=actions)
    held = action.status not in _RELEASES_CLAIM
    claim = ClaimRow(claim=action.claim, run_id=action.run_id, action_id=action.action_id, held=held)
    holder = state.claims.get(action.claim)
    if holder is not None and holder.action_id > action.action_id:
        return replace(state, actions=actions)  # a later generation holds it now
    return replace(state, actions=actions, claims={**state.claims, action.claim: claim})


# --- people -------------------------------------------------------------------------------------------------


def _approval(
    state: RunState, event: e.Event, body: e.ApprovalAsked | e.ApprovalGiven | e.ApprovalClosed
) -> RunState:
    match body:
        case e.ApprovalAsked():
            row = ApprovalRow(
                run_id=event.run_id,
                action_id=event.action_id,
                asked_us=event.ts_us,
                **body.model_dump(exclude={"kind"}),
            )
            action = _action(state, event)
            asked = action.model_copy(
                update=_moved(action, Move.ASK) | {"approval_id": body.approval_id, "updated_us": event.ts_us}
            )
            state = _with_action(state, asked)
        case e.ApprovalGiven():
            row = _given(state.approvals[body.approval_id], event, body)
        case e.ApprovalClosed():
            row = state.approvals[body.approval_id].model_copy(
                update={
                    "status": body.how,
                    "by": body.by,
                    "channel": body.channel,
                    "comment": body.comment,
                    "roll_back": body.roll_back,
                }
            )
    return replace(state, approvals={**state.approvals, row.approval_id: row})


def _given(row: ApprovalRow, event: e.Event, body: e.ApprovalGiven) -> ApprovalRow:
    return row.model_copy(
        update={
            "status": "approved",
            "approvers": (*row.approvers, body.by),
            "approver_roles": tuple(sorted({*row.approver_roles, *body.roles})),
            "granted_tier": max(row.granted_tier, body.tier),
            "granted_us": event.ts_us,
            "by": body.by,
            "channel": body.channel,
            "comment": body.comment,
        }
    )


def _escalation(
    state: RunState,
    event: e.Event,
    body: e.EscalationOpened | e.EscalationNotified | e.EscalationAcknowledged | e.EscalationResolved,
) -> RunState:
    match body:
        case e.EscalationOpened():
            row = EscalationRow(
                run_id=event.run_id,
                action_id=event.action_id,
                opened_us=event.ts_us,
                **body.model_dump(exclude={"kind"}),
            )
        case e.EscalationNotified():
            row = state.escalations[body.escalation_id]
            row = row.model_copy(
                update={
                    "notified_us": event.ts_us,
                    "deliveries": row.deliveries + 1,
                    "delivered": row.delivered or body.delivered,
                }
            )
        case e.EscalationAcknowledged():
            row = state.escalations[body.escalation_id].model_copy(update={"status": "acknowledged", "by": body.by})
        case e.EscalationResolved():
            row = state.escalations[body.escalation_id].model_copy(
                update={
                    "status": "resolved",
                    "choice": body.choice,
                    "by": body.by,
                    "comment": body.comment,
                    "resolved_us": event.ts_us,
                }
            )
    return replace(state, escalations={**state.escalations, row.escalation_id: row})


# --- the system stream --------------------------------------------------------------------------------------


def system_row(event: e.Event) -> PauseRow | BundleRow | QuarantineRow | CertificateRow | None:
    """The row an event of the system stream sets, if it sets one."""
    match event.body:
        case e.PauseSet(scope=scope, reason=reason, by=by):
            return PauseRow(scope=scope, active=True, reason=reason, by=by)
        case e.PauseLifted(scope=scope, by=by):
            return PauseRow(scope=scope, active=False, by=by)
        case e.BundleRecorded(effective_digest=effective, policy_version=version):
            return BundleRow(effective_digest=effective, policy_version=version)
        case e.RunQuarantined(quarantined_run=run_id, reason=reason):
            return QuarantineRow(run_id=run_id, reason=reason)
        case e.DrillCertified() as body:
            return CertificateRow(
                key=certificate_key(body.capability, body.contract_digest, body.subject_digest, body.engine_major),
                capability=body.capability,
                contract_digest=body.contract_digest,
                subject_digest=body.subject_digest,
                certified_us=event.ts_us,
                expires_us=body.expires_us,
            )
        case _:
            return None


def certificate_key(capability: str, contract_digest: str, subject_digest: str, engine_major: int) -> str:
    """What a drill certificate is about; any change of it makes the certificate void."""
    return f"{capability}|{contract_digest}|{subject_digest}|{engine_major}"
