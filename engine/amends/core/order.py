"""Order: which action may depend on which, and what that forbids while undoing (rule 20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from amends.core.canonical import Json
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind

_SHORTEST_TELLING_VALUE = 6


def depends_on(state: RunState, action: ActionRow) -> frozenset[str]:
    """The actions that `action` may rest on, directly.

    Declared ones win; outputs used as inputs are always added (an extra edge only makes the order stricter); with
    nothing declared, everything whose outcome was recorded before this intent. Nothing rests on what was sent after
    it, whatever was declared, so no circle of waits exists; nor on a twin that the provider made: nobody has used it.
    """
    declared = (*(action.depends_on or ()), *action.inputs_from)
    found = {a for a in declared if a in state.actions and _place(state.actions[a]) < _place(action)}
    if action.depends_on is None:
        found |= set(action.after)
        found -= {a for a in found if state.actions[a].kind is ActionKind.DUPLICATE}
    if action.of:
        found |= depends_on(state, state.actions[action.of]) if action.of in state.actions else set()
    return frozenset(found)


def dependents(state: RunState, action_id: str) -> tuple[ActionRow, ...]:
    """Every forward action that may rest on `action_id`, directly or through others."""
    edges = {a.action_id: depends_on(state, a) for a in state.forward_actions()}
    found: set[str] = set()
    frontier = {action_id}
    while frontier:
        frontier = {name for name, on in edges.items() if on & frontier and name not in found}
        found |= frontier
    return tuple(a for a in state.forward_actions() if a.action_id in found)


def inputs_from(state: RunState, args: Mapping[str, Json]) -> tuple[str, ...]:
    """The actions one of whose recorded output values appears among the arguments.

    Short values and booleans tell nothing and make no edge.
    """
    used = set(_telling(args.values()))
    found: list[str] = []
    for action in state.forward_actions():
        produced = set(_telling([action.reference, *action.output.values(), *action.effect.values()]))
        own = set(_telling(action.args.values()))
        if used & (produced - own):
            found.append(action.action_id)
    return tuple(found)


def _place(action: ActionRow) -> tuple[bool, int]:
    """Where an action stands in time: what was sent or found by the moment of that, then the unsent as planned."""
    if action.sent_seq is not None:
        return False, action.sent_seq
    return not action.ever_sent, action.seq


def _telling(values: Iterable[Json]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str) and len(value) >= _SHORTEST_TELLING_VALUE:
            yield value
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**_SHORTEST_TELLING_VALUE:
            yield str(value)
        elif isinstance(value, dict):
            yield from _telling(value.values())
        elif isinstance(value, list):
            yield from _telling(value)
