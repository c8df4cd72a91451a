"""Bodies of undo actions, purely: registration, key, what an answer and a look say about an undo (rules 18 and 19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from amends.core import events as e
from amends.core.canonical import Json
from amends.core.contract import Alternative
from amends.core.evidence import Evidence, FailureNote, Observation
from amends.core.fold_actions import planned_row
from amends.core.identity import idempotency_key
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionKind, Outcome

# A receipt came back. An undo's answer need not name the effect it removed, as a forward answer must.
_ANSWERED = frozenset({"answered", "answer_is_no_proof", "reference_invalid", "parts_missing"})
How: TypeAlias = Literal["undone", "already_gone", "nothing_to_undo", "person"]


def planned(state: RunState, forward: ActionRow, rung: Alternative, undo_id: str) -> e.ActionPlanned:
    """The registration of an undo of `forward` by `rung`."""
    earlier = [u for u in state.undos_of(forward.action_id) if u.rung == rung.name and u.action_id != undo_id]
    return e.ActionPlanned(
        action_kind=ActionKind.UNDO,
        of=forward.action_id,
        rung=rung.name,
        capability=forward.capability if rung.undo == "own" else rung.undo,
        adapter=forward.adapter,
        instance=forward.instance,
        environment=forward.environment,
        slot=f"undo:{forward.slot}:{rung.name}",
        generation=1 + len(earlier),
        args=inputs(forward, rung),
        args_digest=forward.args_digest,
        input=forward.input,
        resource=forward.resource,
        contract=forward.contract,
    )


def row(state: RunState, forward: ActionRow, rung: Alternative, undo_id: str) -> ActionRow:
    """The undo action as recorded, or as it is about to be."""
    if undo_id in state.actions:
        return state.actions[undo_id]
    body = planned(state, forward, rung, undo_id)
    return planned_row(state.run, undo_id, state.run.head + 1, state.run.ledger_us, body)


def inputs(forward: ActionRow, rung: Alternative) -> dict[str, Json]:
    """The undo's arguments, from the source its contract names: the ledger, never a model."""
    observed: Mapping[str, Json] = forward.observation.effect if forward.observation else {}
    sources: dict[str, Mapping[str, Json]] = {
        "forward_input": forward.args,
        "forward_output": {**forward.effect, **forward.output, "reference": forward.reference},
        "reconciliation": {**forward.effect, **observed, "reference": forward.reference},
    }
    source = sources[rung.input_from]
    return {name: source[name] for name in rung.required_fields if name in source}


def key(forward: ActionRow, undo: ActionRow) -> str:
    """The undo's own key. An answer that was a lie would be replayed by the provider, so it opens a fresh one; an undo
    whose answer was lost keeps its key: it may still land, and the provider then takes both for one.
    """
    return idempotency_key(
        forward.run_id, ActionKind.UNDO, undo.slot, undo.generation + _lies(undo), forward.action_id, undo.rung
    )


def _lies(undo: ActionRow) -> int:
    """How many attempts were answered, and their effect found to be still there."""
    lies, answered = 0, False
    for item in undo.evidence:
        if item.code == "still_applied":
            lies, answered = lies + answered, False
        else:
            answered = answered or item.code == "answered"
    return lies


def claimed(body: e.OutcomeRecorded) -> e.OutcomeRecorded:
    """A provider's OK to an undo proves nothing: unknown until the system was read (rule 18). What is no OK stays as
    it is.
    """
    if body.outcome is Outcome.FAILED or body.evidence.code not in _ANSWERED:
        return body
    evidence = body.evidence.model_copy(update={"strength": "weak", "code": "answered"})
    note = FailureNote(code="answered", message="the undo was answered; not verified yet")
    return body.model_copy(update={"outcome": Outcome.UNKNOWN, "evidence": evidence, "error": note})


def seen(outcome: Outcome, at_us: int, code: str) -> e.OutcomeRecorded:
    """What a look proves about the undo itself."""
    failed = outcome is Outcome.FAILED
    return e.OutcomeRecorded(
        outcome=outcome,
        evidence=Evidence(source="probe", strength="authoritative", at_us=at_us, code=code),
        error=FailureNote(code=code, message="the effect is still there", resendable=True) if failed else None,
    )


def verified(
    forward: ActionRow, undo: ActionRow | None, observation: Observation, how: How, looked_us: int
) -> e.CompensationVerified:
    """The effect is gone, as a separate read found that began at `looked_us`."""
    return e.CompensationVerified(
        how=how,
        undo=undo.action_id if undo else "",
        observation=observation,
        late_check_due_us=_late_check_due(forward, undo, looked_us),
    )


def _late_check_due(forward: ActionRow, undo: ActionRow | None, looked_us: int) -> int | None:
    """When to look once more. Where an answer was lost, something can still land until its deadline + settle time. And
    an effect that is "already gone" before anybody undid it may only be too young for a read that lags (rule 4).
    """
    probe = forward.contract.probe
    settle = microseconds((probe.absent_final_after_seconds or 0.0) if probe else 0.0)
    lost = [
        action.deadline_us or 0
        for action in (forward, undo)
        if action is not None and any(_lost(item) for item in action.evidence)
    ]
    due = max(lost, default=0) + settle
    if undo is None and forward.outcome is Outcome.SUCCEEDED:
        due = max(due, (forward.outcome_us or 0) + settle)
    return due if due > looked_us else None


def _lost(evidence: Evidence) -> bool:
    return evidence.strength == "weak" and evidence.code not in _ANSWERED
