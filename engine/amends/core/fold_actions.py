"""Fold, actions: what an event does to the action it is about. Statuses move only through `amends.core.status`."""

from __future__ import annotations

from dataclasses import replace

from amends.core import events as e
from amends.core.errors import CorruptLedger, IllegalTransition
from amends.core.rows import ActionRow, ClaimRow, RunRow, RunState
from amends.core.status import TRANSITIONS, ActionStatus, Move, Outcome, transition

_MOVE_OF_OUTCOME = {Outcome.SUCCEEDED: Move.SUCCEED, Outcome.FAILED: Move.FAIL, Outcome.UNKNOWN: Move.LOSE}
_RELEASES_CLAIM = frozenset(
    {ActionStatus.FAILED, ActionStatus.DENIED, ActionStatus.WITHDRAWN, ActionStatus.COMPENSATED}
)


def corrupt(event: e.Event, why: str) -> CorruptLedger:
    """An event that cannot follow what is recorded."""
    return CorruptLedger(
        f"event {event.run_seq} (`{event.body.kind}`) of run `{event.run_id}` {why}", hint="run `amends ledger verify`"
    )


def still_open(state: RunState, event: e.Event) -> None:
    """Terminal runs never change: later facts open a follow-up run (rule 25)."""
    if state.run.terminal:
        raise IllegalTransition(
            f"`{event.body.kind}` would change run `{event.run_id}`, which is `{state.run.status}`",
            hint="this is a defect of Amends: report it with the run's event list",
        )


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


def action_of(state: RunState, event: e.Event) -> ActionRow:
    """The action an event is about. Raises `CorruptLedger` if it was never planned."""
    try:
        return state.actions[event.action_id]
    except KeyError:
        raise corrupt(event, "speaks of an action that was never planned") from None


def acted(state: RunState, action: ActionRow, event: e.Event) -> ActionRow:
    """The action after the event."""
    changes = _changes(state, action, event)
    if changes.get("status", action.status) is not action.status:
        still_open(state, event)
    return action.model_copy(update={"updated_us": event.ts_us, **changes})


def _changes(state: RunState, action: ActionRow, event: e.Event) -> dict[str, object]:
    body = event.body
    match body:
        case e.DecisionRecorded():
            return _decided(event, body)
        case e.ActionDenied():
            return moved(action, Move.DENY) | {"withdrawn_reason": body.reason}
        case e.ActionQueued():
            return moved(action, Move.QUEUE) | {
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
            return moved(action, Move.COMPENSATE) | {"undo": body.undo, "tried_rungs": tried, "probes": 0}
        case e.CompensationVerified():
            return moved(action, Move.VERIFY_UNDONE) | {
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
            return moved(action, Move.REAPPEAR) | {
                "outcome": Outcome.SUCCEEDED,
                "observation": body.observation,
                "tried_rungs": (),
                "late_check_due_us": None,
                "compensated_us": None,
            }
        case e.ActionWithdrawn():
            return moved(action, Move.WITHDRAW) | {"withdrawn_reason": body.reason}
        case e.ActionParked():
            return moved(action, Move.PARK) | {"parked_cause": body.cause, "parked_detail": body.detail, "undo": ""}
        case e.ActionReopened():
            return moved(action, _reopening(action)) | {
                "parked_cause": None,
                "parked_detail": "",
                "probes": 0,
                "tried_rungs": (),
                "unknown_since_us": event.ts_us if action.outcome is Outcome.UNKNOWN else action.unknown_since_us,
            }
        case e.ActionAccepted():
            return moved(action, _reopening(action)) | {"parked_cause": None, "accepted_by": body.by}
        case e.RecoveryDecided():
            return {"last_decided": f"{body.decision}:{body.reason}"}
        case _:
            raise corrupt(event, "cannot be about an action")


def _late(action: ActionRow, body: e.LateEvidence) -> dict[str, object]:
    changes: dict[str, object] = {"late": (*action.late, body.evidence)}
    tells = body.outcome is not Outcome.UNKNOWN and body.evidence.strength != "weak"
    if tells or action.late_outcome is Outcome.NONE:  # what proves nothing never hides what does
        changes |= {"late_outcome": body.outcome, "late_effect": body.effect, "late_reference": body.reference}
    return changes


def moved(action: ActionRow, move: Move) -> dict[str, object]:
    """The status after a move, as a change of a row."""
    return {"status": transition(action.status, move)}


def _decided(event: e.Event, body: e.DecisionRecorded) -> dict[str, object]:
    if body.phase == "probe" and body.decision.allowed:
        return {}  # a permitted look says nothing about the action's own decision
    changes: dict[str, object] = {"decided": body.decision, "decided_us": event.ts_us}
    if body.phase in {"forward", "release"}:
        changes["forward_decision_id"] = body.decision.decision_id
        changes["forward_policy_version"] = body.decision.policy_version
    return changes


def _intent(state: RunState, action: ActionRow, event: e.Event, body: e.IntentRecorded) -> dict[str, object]:
    changes = moved(action, Move.SEND) | {
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


_CONTRADICTED = frozenset(status for status, move in TRANSITIONS if move is Move.CONTRADICT)


def _outcome(action: ActionRow, event: e.Event, body: e.OutcomeRecorded) -> dict[str, object]:
    move = _MOVE_OF_OUTCOME[body.outcome]
    if action.status in _CONTRADICTED and body.outcome is Outcome.UNKNOWN and action.outcome is Outcome.FAILED:
        move = Move.CONTRADICT
        if action.proven_failed:
            raise IllegalTransition(
                f"action `{action.action_id}` is proven `failed`, which nothing contradicts",
                hint="this is a defect of Amends: report it with the run's event list",
            )
    changes: dict[str, object] = {}
    if (action.status, body.outcome) != (ActionStatus.NEEDS_HUMAN, Outcome.UNKNOWN):
        changes = moved(action, move)
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


def with_action(state: RunState, action: ActionRow) -> RunState:
    """The state with an action put in, and the claim it holds or has released (rule 6)."""
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
