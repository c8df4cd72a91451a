"""What must hold in the end, read from the ledger and from the world, never from what a process remembers."""

from __future__ import annotations

from collections import Counter

from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, RunStatus
from amends.testing.simulation import cast
from amends.testing.simulation.processes import RESTING, Stage
from amends.testing.worlds import ledger_faults

_S = ActionStatus
_GONE = frozenset({_S.FAILED, _S.DENIED, _S.WITHDRAWN, _S.COMPENSATED})


def violations(stage: Stage, states: list[RunState]) -> list[str]:
    """Every rule that does not hold, in words, with its number."""
    found = [f"rule 1: {fault}" for fault in ledger_faults(stage.world.journal)]
    found += _unsettled(states)
    found += _sends(stage, states)
    for state in states:
        for action in state.actions.values():
            if action.kind in {ActionKind.DO, ActionKind.DUPLICATE}:
                found += _claims(stage, state, action)
        found += _past_the_pivot(stage, state)
    return found


def _unsettled(states: list[RunState]) -> list[str]:
    """Every run settles, or a person has an open item (rule 23)."""
    found: list[str] = []
    for state in states:
        run = state.run
        asked = any(row.status == "pending" for row in state.approvals.values())
        told = any(item.status == "open" for item in state.escalations.values())
        if run.status not in RESTING and not asked:
            found.append(f"rule 23: run `{run.run_key}` rests as `{run.status}`, and nobody is asked")
        if run.status is RunStatus.NEEDS_HUMAN and not told and not asked:
            found.append(f"rule 34: run `{run.run_key}` needs a person, and none is told")
    return found


def _sends(stage: Stage, states: list[RunState]) -> list[str]:
    """No send without its intent, and none for an action nobody registered (rule 1)."""
    actions = {a.action_id: a for s in states for a in s.actions.values()}
    found: list[str] = []
    for (verb, marker), sent in Counter((verb, marker) for verb, marker, _ in stage.system.sends).items():
        action = actions.get(marker)
        if action is None:
            found.append(f"rule 1: {verb} of `{marker}` was sent, and no intent is recorded")
            continue
        bearers = {marker} | {a.action_id for a in actions.values() if a.of == marker}  # twins bear the same marker
        undos = [a for a in actions.values() if a.kind is ActionKind.UNDO and a.of in bearers]
        meant = action.attempt if verb == "do" else sum(undo.attempt for undo in undos)
        if sent > meant:
            found.append(f"rule 1: {sent} {verb} of `{action.capability}` were sent on {meant} intents")
    return found


def _claims(stage: Stage, state: RunState, action: ActionRow) -> list[str]:
    """What the ledger claims of an effect is what the world shows (rules 7, 18 and 33)."""
    if action.capability == cast.SET.capability:
        return _claims_of_a_value(stage, state, action)
    things = stage.system.there(action.action_id)
    mine = [t for t in things if action.kind is ActionKind.DO or t.reference == action.reference]
    where = f"`{action.capability}` of run `{state.run.run_key}`"
    twins = {a.reference for a in state.actions.values() if a.kind is ActionKind.DUPLICATE and a.of == action.action_id}
    own = [t for t in mine if t.reference not in twins]
    found: list[str] = []
    if action.status in _GONE and own:
        found.append(f"rule 18: {where} is `{action.status}`, and {len(own)} of it exist")
    if action.status is _S.SUCCEEDED and not own and not state.run.status == RunStatus.NEEDS_HUMAN:
        found.append(f"rule 33: {where} is `succeeded`, and it does not exist")
    if state.run.status is RunStatus.RECOVERED and mine and not action.contract.irreversible:
        found.append(f"rule 23: the run of {where} is `recovered`, and {len(mine)} of it exist")
    if len(own) > 1 and state.run.terminal:
        found.append(f"rule 7: {len(own)} of {where} exist, and the run is `{state.run.status}`")
    return found


def _claims_of_a_value(stage: Stage, state: RunState, action: ActionRow) -> list[str]:
    name, value = str(action.args["name"]), str(action.args["value"])
    now = stage.system.value(name)
    set_by = [by for _, _, by in stage.system.values.get(name, [])]
    foreign = "somebody else" in set_by
    where = f"`{name}` of run `{state.run.run_key}`"
    if action.status is _S.COMPENSATED and now == value and value != action.before_image.get("value") and not foreign:
        return [f"rule 18: {where} is `compensated`, and is still `{value}`"]
    if foreign and set_by[-1] != "somebody else" and set_by.index("somebody else") < len(set_by) - 1:
        after = set_by[set_by.index("somebody else") + 1 :]
        if any(by != action.action_id for by in after):
            return [f"rule 18: {where} was set by somebody else, and was overwritten by recovery"]
    return []


def _past_the_pivot(stage: Stage, state: RunState) -> list[str]:
    """After a release nothing is taken back by itself, and nothing is released before its time (rules 27 and 28)."""
    released = [
        a
        for a in state.actions.values()
        if a.kind is ActionKind.DO
        and a.contract.release is not None
        and a.contract.release.mode != "gate"
        and stage.system.there(a.action_id)
    ]
    if not released:
        return []
    found: list[str] = []
    if state.run.status is RunStatus.RECOVERED:
        found.append(f"rule 28: run `{state.run.run_key}` is `recovered`, and an irreversible effect left")
    asked = {row.action_id for row in state.approvals.values() if row.status in {"approved", "consumed"}}
    for action in released:
        if action.capability == cast.ASK.capability and action.action_id not in asked:
            found.append(f"rule 27: `{action.capability}` left without a person's yes")
    return found
