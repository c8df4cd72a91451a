"""What must hold in the end, read from the ledger and from the world, never from what a process remembers."""

from __future__ import annotations

from collections import Counter

from amends.core.events import ActionPlanned, IntentRecorded, RunMoved, RunOpened, decode
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, RunStatus
from amends.testing.simulation import cast
from amends.testing.simulation.processes import RESTING, Stage
from amends.testing.worlds import ledger_faults

_S = ActionStatus
_BY_ANYBODY = frozenset({"evidence.late", "report_delivered"})  # what a driver that was taken over may still add
_GONE = frozenset({_S.FAILED, _S.DENIED, _S.WITHDRAWN, _S.COMPENSATED})


def violations(stage: Stage, states: list[RunState]) -> list[str]:
    """Every rule that does not hold, in words, with its number."""
    found = [f"rule 1: {fault}" for fault in ledger_faults(stage.world.journal)]
    found += _out_of_turn(stage)
    found += _unsettled(states)
    found += _sends(stage, states)
    for state in states:
        for action in state.actions.values():
            if action.kind in {ActionKind.DO, ActionKind.DUPLICATE}:
                found += _claims(stage, state, action)
        found += _past_the_pivot(stage, state)
    return found


def _out_of_turn(stage: Stage) -> list[str]:
    """Forward intents only while a run is open, releases only while it commits (rule 14); a driver that was taken over
    adds late evidence and nothing else (rule 13).
    """
    found: list[str] = []
    status: dict[str, str] = {}
    epoch: dict[str, int] = {}
    forward: dict[str, str] = {}
    for stored in stage.world.journal.events_after(0, limit=1_000_000):
        event, body = stored.event, decode(stored.event.payload, stored.event.event_id)
        match body:
            case RunOpened():
                status[event.run_id] = RunStatus.OPEN
            case RunMoved(to=to):
                status[event.run_id] = to
            case ActionPlanned(action_kind=ActionKind.DO, contract=contract):
                queued = contract.release is not None and contract.release.mode != "gate"
                forward[event.action_id] = RunStatus.COMMITTING if queued else RunStatus.OPEN
            case IntentRecorded() if forward.get(event.action_id, status[event.run_id]) != status[event.run_id]:
                found.append(f"rule 14: a forward intent while its run is `{status[event.run_id]}`")
            case _:
                pass
        if event.epoch < epoch.get(event.run_id, 0) and event.kind not in _BY_ANYBODY:
            found.append(f"rule 13: `{event.kind}` under epoch {event.epoch}, and the run has {epoch[event.run_id]}")
        epoch[event.run_id] = max(epoch.get(event.run_id, 0), event.epoch)
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
    if action.status is _S.SUCCEEDED and not own and state.run.status is not RunStatus.NEEDS_HUMAN:
        found.append(f"rule 33: {where} is `succeeded`, and it does not exist")
    if state.run.status is RunStatus.RECOVERED and mine and not action.contract.irreversible:
        found.append(f"rule 23: the run of {where} is `recovered`, and {len(mine)} of it exist")
    if len(own) > 1 and state.run.terminal:
        found.append(f"rule 7: {len(own)} of {where} exist, and the run is `{state.run.status}`")
    return found


def _claims_of_a_value(stage: Stage, state: RunState, action: ActionRow) -> list[str]:
    """A value that is called restored is not ours any more, unless somebody else has set the very same one."""
    name, ours = str(action.args["name"]), action.args["value"]
    known = stage.system.values.get(name, [])
    if action.status in _GONE and known and known[-1][1] == ours and known[-1][2] == action.action_id:
        return [f"rule 18: `{name}` of run `{state.run.run_key}` is `{action.status}`, and is still `{ours}`"]
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
    found += [
        f"rule 27: `{action.capability}` left without a person's yes"
        for action in released
        if action.capability == cast.ASK.capability and action.action_id not in asked
    ]
    return found
