"""Fold: events in, rows out. The one place that says what an event does to the state.

`apply` is total over the event kinds and changes nothing when it raises. Statuses move only through
`amends.core.status`. Replaying a run's events gives the rows the journal holds; that equality is tested after
every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amends.core import events as e
from amends.core import fold_people
from amends.core.errors import IllegalTransition
from amends.core.fold_actions import acted, action_of, corrupt, planned_row, still_open, with_action
from amends.core.identity import run_claim
from amends.core.rows import (
    BundleRow,
    CertificateRow,
    ClaimRow,
    PauseRow,
    PolicyRow,
    QuarantineRow,
    RunRow,
    RunState,
)
from amends.core.status import RunStatus, run_transition


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
            raise corrupt(event, "opens the run twice")
        if event.run_seq != 1 or event.action_id:
            raise corrupt(event, "opens the run, but is not its first fact")
        run = _opened(event, event.body)
        claim = ClaimRow(
            claim=run_claim(run.tenant, run.workflow, run.run_key), run_id=run.run_id, action_id="", held=True
        )
        return RunState(run=run, claims={claim.claim: claim})
    if state is None:
        raise corrupt(event, "comes before `run_opened`")
    if event.run_id != state.run.run_id:
        raise corrupt(event, f"stands among those of run `{state.run.run_id}`")
    if event.run_seq != state.run.head + 1:
        raise corrupt(event, f"follows event {state.run.head}")
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
            if not event.action_id or event.action_id in state.actions:
                raise corrupt(event, "plans an action that has no name or is planned already")
            still_open(state, event)
            row = planned_row(state.run, event.action_id, event.run_seq, event.ts_us, body)
            return with_action(state, row)
        case e.ApprovalAsked() | e.ApprovalGiven() | e.ApprovalClosed():
            return fold_people.approval(state, event, body)
        case e.EscalationOpened() | e.EscalationNotified() | e.EscalationAcknowledged() | e.EscalationResolved():
            return fold_people.escalation(state, event, body)
        case e.IntentRecorded(approval_id=approval_id) if approval_id:
            state = fold_people.consumed(state, event, approval_id)
            return with_action(state, acted(state, action_of(state, event), event))
        case _ if event.action_id:
            return with_action(state, acted(state, action_of(state, event), event))
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
            changes: dict[str, object] = {
                "status": status,
                "reason": body.reason,
                "moved_us": event.ts_us,
                "due_us": None,
            }
            if status is RunStatus.OPEN:
                after = run.checkpoints.get(run.recover_to, 0)
                changes |= {"recover_to": "", "taken_back": (*run.taken_back, (after, event.run_seq))}
            if status in {RunStatus.RECOVERING, RunStatus.COMMITTING}:
                changes["forward"] = status is RunStatus.COMMITTING
            return run.model_copy(update=changes)
        case e.CheckpointReached(name=name):
            return run.model_copy(update={"checkpoints": {**run.checkpoints, name: event.run_seq}})
        case e.RecoveryTargeted(checkpoint=checkpoint):
            return run.model_copy(update={"recover_to": checkpoint})
        case e.CheckAnswered(answer=answer):
            checked = {"check_answer": answer, "checked_us": event.ts_us, "checked_seq": event.run_seq}
            return run.model_copy(update=checked)
        case e.RecoveryWaiting(due_us=due_us):
            return run.model_copy(update={"due_us": due_us})
        case e.DecisionRecorded() | e.RecoveryDecided():
            return run  # said of the run as a whole; moves nothing
        case _:
            raise corrupt(event, "is about an action, and none is named, or is no fact of a run")


# --- the system stream --------------------------------------------------------------------------------------


def system_row(
    event: e.Event, quarantine: QuarantineRow | None = None
) -> PauseRow | BundleRow | PolicyRow | QuarantineRow | CertificateRow | None:
    """The row an event of the system stream sets, if it sets one. `quarantine`: what is known so far of the run that
    the event is about (`quarantined_run`). Raises `CorruptLedger` for a fact about a quarantine that never was, and
    `IllegalTransition` if it was lifted already.
    """
    match event.body:
        case e.PauseSet(scope=scope, reason=reason, by=by):
            return PauseRow(scope=scope, active=True, reason=reason, by=by)
        case e.PauseLifted(scope=scope, by=by):
            return PauseRow(scope=scope, active=False, by=by)
        case e.BundleRecorded(effective_digest=effective, policy_version=version):
            return BundleRow(effective_digest=effective, policy_version=version)
        case e.BundleActivated(policy_version=version, effective_digest=effective):
            return PolicyRow(key="active", policy_version=version, digest=effective, at_us=event.ts_us)
        case e.BundleRejected(role=role, policy_version=version, digest=digest, reasons=reasons, kept=kept):
            return PolicyRow(
                key="rejected:active" if role == "active" else "rejected:shadow",
                policy_version=version,
                digest=digest,
                at_us=event.ts_us,
                reasons=reasons,
                kept=kept,
            )
        case e.RunQuarantined(quarantined_run=run_id, reason=reason):
            return QuarantineRow(run_id=run_id, reason=reason, since_us=event.ts_us)
        case e.QuarantineNotified() | e.RunQuarantineLifted():
            return _quarantine(quarantine, event, event.body)
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


def quarantined_run(body: e.Body) -> str:
    """The run whose quarantine a fact of the system stream is about; empty for any other."""
    match body:
        case e.RunQuarantined() | e.QuarantineNotified() | e.RunQuarantineLifted():
            return body.quarantined_run
        case _:
            return ""


def _quarantine(
    known: QuarantineRow | None, event: e.Event, body: e.QuarantineNotified | e.RunQuarantineLifted
) -> QuarantineRow:
    if known is None:
        raise corrupt(event, "is about a quarantine that was never set")
    if isinstance(body, e.QuarantineNotified):
        told = body.delivered and known.active
        return known.model_copy(update={"status": "told"}) if told else known
    if not known.active:
        raise IllegalTransition(
            f"`{known.by}` has lifted the quarantine of run `{known.run_id}` already",
            hint="nothing holds it",
            run_id=known.run_id,
        )
    return known.model_copy(update={"status": "lifted", "by": body.by, "comment": body.comment})


def certificate_key(capability: str, contract_digest: str, subject_digest: str, engine_major: int) -> str:
    """What a drill certificate is about; any change of it makes the certificate void."""
    return f"{capability}|{contract_digest}|{subject_digest}|{engine_major}"
