"""Corrections: what is posted where people saw a signal, and when it is due (rule 32)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from amends.core.canonical import Json, digest
from amends.core.contract import Contract, Effect, Keying, Readers, Release, Signal
from amends.core.errors import InvalidInput
from amends.core.identity import render
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, Outcome

_S = ActionStatus
_OPEN = frozenset({_S.PLANNED, _S.QUEUED, _S.AWAITING_APPROVAL, _S.RUNNING})


@dataclass(frozen=True, slots=True)
class Correction:
    """One note: place, finished text, the actions it speaks of, and a digest of what it says of them."""

    place: str
    revision: int
    text: str
    covers: tuple[str, ...]
    says: str


def place_of(action: ActionRow) -> str:
    """Where people could see the effect; empty if nowhere or if it cannot be named yet."""
    if action.place:
        return action.place
    signal = action.contract.signal
    if signal is None:
        return ""
    values = {**action.args, **action.allocated, **action.effect, "reference": action.reference}
    try:
        return render(signal.place, values)
    except InvalidInput:
        return ""


def was_visible(action: ActionRow) -> bool:
    """True if somebody could have seen it: it was sent (an adopted effect was not), and nothing proves that it never
    existed.
    """
    if not action.ever_sent or action.contract.signal is None:
        return False
    return action.outcome is not Outcome.FAILED and action.status not in {_S.DENIED, _S.WITHDRAWN}


def corrections_due(state: RunState, quiet: frozenset[str]) -> Iterator[str]:
    """Places whose signals are all quiet (settled or parked) and whose readers have not been told the present state."""
    for place, actions in _by_place(state).items():
        if any(a.action_id not in quiet for a in actions):
            continue
        told = latest(state, place)
        if told is None or told.label != says(actions):
            if told is not None and not told.accepted_by and (told.status in _OPEN or told.outcome is Outcome.UNKNOWN):
                continue  # first learn what became of the earlier note
            yield place


def unserved_contract(scheme: str) -> Contract:
    """The contract of a correction that no enabled adapter can post: it is recorded, and a person posts it."""
    return Contract(
        capability="correction.unserved",
        summary=f"a note at a `{scheme}:` place that no enabled adapter serves",
        effect=Effect(kind="note", system=scheme or "unknown", resource="place:{place}"),
        readers=Readers(audience="team", where=scheme or "unknown"),
        reversibility="irreversible",
        keying=Keying(kind="blind"),
        release=Release(mode="on_success"),
        corrects=True,
    )


def latest(state: RunState, place: str) -> ActionRow | None:
    """The newest correction of a place."""
    found = [a for a in state.actions.values() if a.kind is ActionKind.CORRECT and a.place == place]
    return found[-1] if found else None


def _by_place(state: RunState) -> dict[str, list[ActionRow]]:
    places: dict[str, list[ActionRow]] = {}
    checkpoint = state.run.checkpoints.get(state.run.recover_to, 0)
    for action in state.forward_actions():
        if action.seq <= checkpoint or not (was_visible(action) or _told_of(state, action)):
            continue
        place = place_of(action)
        if place:
            places.setdefault(place, []).append(action)
    return places


def _told_of(state: RunState, action: ActionRow) -> bool:
    """True if a note speaks of it already: its readers learn how the doubt ended."""
    return any(
        a.kind is ActionKind.CORRECT and a.ever_sent and action.action_id in a.covers for a in state.actions.values()
    )


def says(actions: list[ActionRow]) -> str:
    """A digest of what a correction of these actions would say about them."""
    return digest([[a.action_id, a.status.value, a.outcome.value, a.parked_cause] for a in actions])


def compose(state: RunState, place: str) -> Correction:
    """The note for a place, every field filled (rule 32). Pure: the same state gives the same text."""
    actions = _by_place(state)[place]
    earlier = latest(state, place)
    revision = earlier.revision + 1 if earlier else 1
    head = f"[Automated correction - run {state.run.run_id}]"
    if revision > 1:
        head = f"{head} (update {revision}; it replaces the earlier note)"
    blocks = [_block(state, a, a.contract.signal) for a in actions if a.contract.signal is not None]
    return Correction(
        place=place,
        revision=revision,
        text="\n".join([head, *blocks, f"Questions: {_owner(state, actions)}, not this bot."]),
        covers=tuple(a.action_id for a in actions),
        says=says(actions),
    )


def _block(state: RunState, action: ActionRow, signal: Signal) -> str:
    values: dict[str, Json] = {
        **action.args,
        **action.allocated,
        **action.effect,
        "reference": action.reference,
        "run_id": state.run.run_id,
    }
    return "\n".join(
        [
            f"What you may have seen: {_fill(signal.seen, values)}, at {_time(action.sent_us)}.",
            f"Status: {_status(action)}",
            f"What you need to do: {_fill(signal.reader_must, values)}",
            f"When it will come back: {_fill(signal.comes_back, values)}",
        ]
    )


def _status(action: ActionRow) -> str:
    """What became of it, never more than the evidence says: `reverted` only after a verified undo."""
    if action.status is _S.COMPENSATED:
        previous = _previous(action)
        how = "a person made sure" if action.compensated_how == "person" else "the system was read again to make sure"
        return f"this was premature. It has been reverted{previous}; {how}."
    if action.gated_residue or (action.accepted_by and action.outcome is Outcome.SUCCEEDED):
        return "this stands and will not be taken back."
    if action.outcome is Outcome.FAILED:
        return "this did not take effect, and nothing of it is left."
    if action.outcome is Outcome.SUCCEEDED:
        return "this was premature and has not been reverted yet; a person is deciding."
    return "it is not certain that this took effect; a person is checking it."


def _previous(action: ActionRow) -> str:
    """The former state as the adapter words it: `summary` of the before-image, or of what it noted in `prepare`."""
    state = action.before_image.get("summary") or action.allocated.get("summary")
    return f" to {state}" if isinstance(state, str) and state else " to the state before"


def _fill(template: str, values: dict[str, Json]) -> str:
    try:
        return render(template, values)
    except InvalidInput:
        return template


def _time(at_us: int | None) -> str:
    if at_us is None:
        return "an unknown time"
    return datetime.fromtimestamp(at_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _owner(state: RunState, actions: list[ActionRow]) -> str:
    for action in actions:
        if action.contract.signal is not None and action.contract.signal.owner:
            return action.contract.signal.owner
    return state.run.owner
