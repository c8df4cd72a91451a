"""Fold: events in, rows out. The one place that says what an event does to the state.

`apply` is total over the event kinds and changes nothing when it raises. Statuses move only through
`amends.core.status`. Replaying a run's events gives the rows the journal holds; that equality is tested after
every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amends.core import events as e
from amends.core.errors import CorruptLedger, IllegalTransition
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
    move the table does not have; the given state is never changed.
    """
    if isinstance(event.body, e.RunOpened):
        if state is not None:
            raise _corrupt(event, "opens the run twice")
        if event.run_seq != 1 or event.action_id:
            raise _corrupt(event, "opens the run, but is not its first fact")
        run = _opened(event, event.body)
        claim = ClaimRow(
            claim=run_claim(run.tenant, run.workflow, run.run_key), run_id=run.run_id, action_id="", held=True
        )
        return RunState(run=run, claims={claim.claim: claim})
    if state is None:
        raise _corrupt(event, "comes before `run_opened`")
    if event.run_id != state.run.run_id:
        raise _corrupt(event, f"stands among those of run `{state.run.run_id}`")
    if event.run_seq != state.run.head + 1:
        raise _corrupt(event, f"follows event {state.run.head}")
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


def _corrupt(event: e.Event, why: str) -> CorruptLedger:
    return CorruptLedger(
        f"event {event.run_seq} (`{event.body.kind}`) of run `{event.run_id}` {why}", hint="run `amends ledger verify`"
    )


def _apply_body(state: RunState, event: e.Event) -> RunState:
    body = event.body
    match body:
        case e.ActionPlanned():
            if not event.action_id or event.action_id in state.actions:
                raise _corrupt(event, "plans an action that has no name or is planned already")
            _still_open(state, event)
            row = planned_row(state.run, event.action_id, event.run_seq, event.ts_us, body)
            return _with_action(state, row)
        case e.ApprovalAsked() | e.ApprovalGiven() | e.ApprovalClosed():
            return _approval(state, event, body)
        case e.EscalationOpened() | e.EscalationNotified() | e.EscalationAcknowledged() | e.EscalationResolved():
            return _escalation(state, event, body)
        case e.IntentRecorded(approval_id=approval_id) if approval_id:
            approval = _approval_named(state, event, approval_id)
            if approval.status not in {"approved", "consumed"}:
                raise _decided_already(event, approval)
            consumed = approval.model_copy(update={"status": "consumed"})
            state = replace(state, approvals={**state.approvals, approval_id: consumed})
            return _with_action(state, _acted(state, _action(state, event), event))
        case _ if event.action_id:
            return _with_action(state, _acted(state, _action(state, event), event))
        case _:
            return replace(state, run=_run(state.run, event))


def _still_open(state: RunState, event: e.Event) -> None:
    """Terminal runs never change: later facts open a follow-up run (rule 25)."""
    if state.run.terminal:
        raise IllegalTransition(
            f"`{event.body.kind}` would change run `{event.run_id}`, which is `{state.run.status}`",
            hint="this is a defect of Amends: report it with the run's event list",
        )


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
            changes: dict[str, object] = {
                "status": status,
                "reason": body.reason,
                "moved_us": event.ts_us,
                "due_us": None,
            }
            if status is RunStatus.OPEN:
                changes["recover_to"] = ""
            if status in {RunStatus.RECOVERING, RunStatus.COMMITTING}:
                changes["forward"] = status is RunStatus.COMMITTING
            return run.model_copy(update=changes)
        case e.CheckpointReached(name=name):
            return run.model_copy(update={"checkpoints": {**run.checkpoints, name: event.run_seq}})
        case e.RecoveryTargeted(checkpoint=checkpoint):
            return run.model_copy(update={"recover_to": checkpoint})
        case e.CheckAnswered(answer=answer):
            return run.model_copy(update={"check_answer": answer, "checked_us": event.ts_us})
        case e.RecoveryWaiting(due_us=due_us):
            return run.model_copy(update={"due_us": due_us})
        case e.DecisionRecorded() | e.RecoveryDecided():
            return run  # said of the run as a whole; moves nothing
        case _:
            raise _corrupt(event, "is about an action, and none is named, or is no fact of a run")


# --- actions ------------------------------------------------------------------------------------------------


def planned_row(run: RunRow, action_id: str, seq: int, at_us: int, body: e.ActionPlanned) -> ActionRow:
    """The row a registration makes."""
    return ActionRow(
        action_id=action_id,
        run_id=run.run_id,
        seq=seq,
        tenant=run.tenant,
        kind=body.action_kind,
        created_us=at_us,
        updated_us=at_us,
        **{name: getattr(body, name) for name in _REGISTERED},
    )


_REGISTERED = tuple(name for name in e.ActionPlanned.model_fields if name not in {"kind", "action_kind"})


def _action(state: RunState, event: e.Event) -> ActionRow:
    try:
        return state.actions[event.action_id]
    except KeyError:
        raise _corrupt(event, "speaks of an action that was never planned") from None


def _acted(state: RunState, action: ActionRow, event: e.Event) -> ActionRow:
    changes = _changes(state, action, event)
    if changes.get("status", action.status) is not action.status:
        _still_open(state, event)
    return action.model_copy(update={"updated_us": event.ts_us, **changes})


def _changes(state: RunState, action: ActionRow, event: e.Event) -> dict[str, object]:
    body = event.body
    match body:
        case e.DecisionRecorded():
            return _decided(event, body)
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
            return _late(action, body)
        case _:
            return _recovery_changes(action, event)


def _recovery_changes(action: ActionRow, event: e.Event) -> dict[str, object]:
    body = event.body
    match body:
        case e.CompensationStarted():
            tried = action.tried_rungs if body.rung in action.tried_rungs else (*action.tried_rungs, body.rung)
            return _moved(action, Move.COMPENSATE) | {"undo": body.undo, "tried_rungs": tried, "probes": 0}
        case e.CompensationVerified():
            return _moved(action, Move.VERIFY_UNDONE) | {
                "undo": "",
                "compensated_us": event.ts_us,
                "compensated_how": body.how,
                "late_check_due_us": body.late_check_due_us,
                "parked_cause": None,
                "probes": 0,
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
            raise _corrupt(event, "cannot be about an action")


def _late(action: ActionRow, body: e.LateEvidence) -> dict[str, object]:
    changes: dict[str, object] = {"late": (*action.late, body.evidence)}
    tells = body.outcome is not Outcome.UNKNOWN and body.evidence.strength != "weak"
    if tells or action.late_outcome is Outcome.NONE:  # what proves nothing never hides what does
        changes |= {"late_outcome": body.outcome, "late_effect": body.effect, "late_reference": body.reference}
    return changes


def _moved(action: ActionRow, move: Move) -> dict[str, object]:
    return {"status": transition(action.status, move)}


def _decided(event: e.Event, body: e.DecisionRecorded) -> dict[str, object]:
    changes: dict[str, object] = {"decided": body.decision, "decided_us": event.ts_us}
    if body.phase in {"forward", "release"}:
        changes["forward_decision_id"] = body.decision.decision_id
        changes["forward_policy_version"] = body.decision.policy_version
    return changes


def _intent(state: RunState, action: ActionRow, event: e.Event, body: e.IntentRecorded) -> dict[str, object]:
    changes = _moved(action, Move.SEND) | {
        "outcome": Outcome.NONE,  # what a former attempt proved says nothing of this one
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
        if action.proven_failed:
            raise IllegalTransition(
                f"action `{action.action_id}` is proven `failed`, which nothing contradicts",
                hint="this is a defect of Amends: report it with the run's event list",
            )
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
        "parked_cause": action.parked_cause if unknown else None,
        "unknown_since_us": (action.unknown_since_us or event.ts_us) if unknown else None,
    }
    if move is not Move.LOSE:
        changes |= {"late": (), "late_outcome": Outcome.NONE}  # folded; a lost answer leaves it for the next re-plan
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
    newer = state.actions.get(holder.action_id) if holder is not None else None
    if newer is not None and newer.seq > action.seq:
        return replace(state, actions=actions)  # a later generation holds it now
    return replace(state, actions=actions, claims={**state.claims, action.claim: claim})


# --- people -------------------------------------------------------------------------------------------------


def _approval(state: RunState, event: e.Event, body: e.ApprovalAsked | e.ApprovalGiven | e.ApprovalClosed) -> RunState:
    match body:
        case e.ApprovalAsked():
            if body.approval_id in state.approvals:
                raise _corrupt(event, f"asks for approval `{body.approval_id}` twice")
            row = ApprovalRow(
                run_id=event.run_id,
                action_id=event.action_id,
                asked_us=event.ts_us,
                **body.model_dump(exclude={"kind", "content_digest"}),
            )
            action = _action(state, event)
            asked = action.model_copy(
                update=_moved(action, Move.ASK)
                | {
                    "approval_id": body.approval_id,
                    "content_digest": body.content_digest or action.content_digest,
                    "updated_us": event.ts_us,
                }
            )
            state = _with_action(state, asked)
        case e.ApprovalGiven():
            row = _given(_approval_named(state, event, body.approval_id), event, body)
        case _:
            row = _closed(_approval_named(state, event, body.approval_id), event, body)
    return replace(state, approvals={**state.approvals, row.approval_id: row})


def _approval_named(state: RunState, event: e.Event, approval_id: str) -> ApprovalRow:
    if approval_id not in state.approvals:
        raise _corrupt(event, f"speaks of approval `{approval_id}`, which was never asked for")
    return state.approvals[approval_id]


def _decided_already(event: e.Event, row: ApprovalRow) -> IllegalTransition:
    return IllegalTransition(
        f"`{event.body.kind}` cannot follow: approval `{row.approval_id}` is `{row.status}`",
        hint="somebody decided first: read the item again",
        approval_id=row.approval_id,
    )


def _given(row: ApprovalRow, event: e.Event, body: e.ApprovalGiven) -> ApprovalRow:
    if row.status not in {"pending", "approved"}:
        raise _decided_already(event, row)
    if row.digest != body.digest:
        raise IllegalTransition(
            f"approval `{row.approval_id}` was asked for other content than what was approved",
            hint="show the item again and ask anew",
        )
    return row.model_copy(
        update={
            "status": "approved",
            "approvers": row.approvers if body.by in row.approvers else (*row.approvers, body.by),
            "approver_roles": tuple(sorted({*row.approver_roles, *body.roles})),
            "granted_tier": max(row.granted_tier, body.tier),
            "granted_us": event.ts_us,
            "by": body.by,
            "channel": body.channel,
            "comment": body.comment,
        }
    )


def _closed(row: ApprovalRow, event: e.Event, body: e.ApprovalClosed) -> ApprovalRow:
    if row.status not in {"pending", "approved", "consumed"}:
        raise _decided_already(event, row)
    return row.model_copy(
        update={
            "status": body.how,
            "by": body.by,
            "channel": body.channel,
            "comment": body.comment,
            "roll_back": body.roll_back,
        }
    )


def _escalation(
    state: RunState,
    event: e.Event,
    body: e.EscalationOpened | e.EscalationNotified | e.EscalationAcknowledged | e.EscalationResolved,
) -> RunState:
    match body:
        case e.EscalationOpened():
            if body.escalation_id in state.escalations:
                raise _corrupt(event, f"opens escalation `{body.escalation_id}` twice")
            if event.action_id:
                _action(state, event)
            row = EscalationRow(
                run_id=event.run_id,
                action_id=event.action_id,
                opened_us=event.ts_us,
                **body.model_dump(exclude={"kind"}),
            )
        case e.EscalationNotified():
            row = _escalation_named(state, event, body.escalation_id)
            row = row.model_copy(
                update={
                    "notified_us": event.ts_us,
                    "deliveries": row.deliveries + 1,
                    "delivered": row.delivered or body.delivered,
                }
            )
        case e.EscalationAcknowledged():
            row = _open_escalation(state, event, body.escalation_id).model_copy(
                update={"status": "acknowledged", "by": body.by}
            )
        case _:
            row = _open_escalation(state, event, body.escalation_id).model_copy(
                update={
                    "status": "resolved",
                    "choice": body.choice,
                    "by": body.by,
                    "comment": body.comment,
                    "resolved_us": event.ts_us,
                }
            )
    return replace(state, escalations={**state.escalations, row.escalation_id: row})


def _escalation_named(state: RunState, event: e.Event, escalation_id: str) -> EscalationRow:
    if escalation_id not in state.escalations:
        raise _corrupt(event, f"speaks of escalation `{escalation_id}`, which was never opened")
    return state.escalations[escalation_id]


def _open_escalation(state: RunState, event: e.Event, escalation_id: str) -> EscalationRow:
    row = _escalation_named(state, event, escalation_id)
    if row.status == "resolved":
        raise IllegalTransition(
            f"`{event.body.kind}` cannot follow: `{row.by}` resolved escalation `{escalation_id}` (`{row.choice}`)",
            hint="somebody decided first: read the item again",
            escalation_id=escalation_id,
        )
    return row


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
