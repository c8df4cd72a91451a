"""The count after the killing: what the systems themselves say happened, against what the ledger says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from amends import bootstrap
from amends.core import fold
from amends.core.events import Event, decode
from amends.core.rows import ActionRow, RunState
from amends.core.status import TERMINAL_RUNS, ActionKind, ActionStatus, RunStatus
from amends.ports.journal import EventRecord
from amends.testing.loopback import LoopbackSystem

_S = ActionStatus
_SETTLED = frozenset({_S.COMPENSATED, _S.FAILED, _S.SUCCEEDED, _S.DENIED, _S.WITHDRAWN})
_GONE = frozenset({_S.COMPENSATED, _S.FAILED, _S.DENIED, _S.WITHDRAWN})
_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Findings:
    """What the systems' own side counts. Every list is empty after a sound campaign."""

    duplicates: list[str]  # one effect made twice by one action, or two of a kind at once on one thing
    undone_twice: list[str]  # one effect taken away twice
    residue: list[str]  # present, though nobody means it to be there


def audit(partner: LoopbackSystem, slack: LoopbackSystem, meant: Iterable[str]) -> Findings:
    """Count at the systems' side. `meant`: the markers of the effects that are meant to be there."""
    wanted = set(meant)
    left = [f"{e['kind']} {e['resource']} {e['reference']}" for e in partner.present() if e["marker"] not in wanted]
    return Findings([*_twice_made(partner), *_twice_made(slack)], _twice_gone(partner), left)


def _twice_made(system: LoopbackSystem) -> Iterator[str]:
    return (said for _, said in twice_made(system))


def again_made(system: LoopbackSystem) -> list[tuple[dict[str, Any], int]]:
    """Of each action that made more than one effect, the last and how many they are."""
    effects = [effect for effect in system.effects() if effect["marker"]]
    times = Counter((e["kind"], e["marker"]) for e in effects)
    last = {(e["kind"], e["marker"]): e for e in effects}
    return [(last[it], n) for it, n in times.items() if n > 1]


def twice_made(system: LoopbackSystem) -> Iterator[tuple[dict[str, Any], str]]:
    """Two effects of one marker, or one that appeared while its like was present: one of them, and it in words."""
    events = system.effect_events()  # before the effects: what lands meanwhile has no event here
    effects = {e["seq"]: e for e in system.effects()}
    yield from ((e, f"{e['kind']} of action {e['marker']}: {n} times") for e, n in again_made(system))
    if system.name == "slack":
        return  # a person may get many notes
    present: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event["actor"] != "agent":
            continue
        effect = effects[event["effect_seq"]]
        thing = (event["kind"], effect["resource"])
        if event["event"] in {"created", "restored"}:
            present[thing] += 1
            if present[thing] > 1:
                yield effect, f"{thing[0]} on {thing[1]}: {present[thing]} at once"
        elif event["event"] == "removed":
            present[thing] -= 1


def _twice_gone(system: LoopbackSystem) -> list[str]:
    gone = Counter(e["effect_seq"] for e in system.effect_events() if e["event"] == "removed")
    return [f"effect {seq} removed {n} times" for seq, n in gone.items() if n > 1]


def meant(desk: bootstrap.Engine) -> list[str]:
    """The markers of what committed runs meant to leave."""
    return [
        action.action_id
        for state in states(desk)
        if state.run.status is RunStatus.COMMITTED
        for action in state.actions.values()
        if action.status is _S.SUCCEEDED
    ]


def contradictions(desk: bootstrap.Engine, partner: LoopbackSystem, slack: LoopbackSystem) -> list[str]:
    """Where the ledger and the systems disagree, in words; and every run that did not settle."""
    made = [*partner.effects(), *slack.effects()]
    effects: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for effect in made:
        effects[effect["marker"]].append(effect)
    standing = Counter(effect["reference"] for effect in made if effect["state"] == "present")
    found: list[str] = []
    for state in states(desk):
        if state.run.status not in TERMINAL_RUNS:
            found.append(f"run {state.run.run_key} is {state.run.status}")
        found += [
            f"{action.capability} {action.action_id} of {state.run.run_key}, {state.run.status}: {wrong}"
            for action in state.actions.values()
            if (wrong := _wrong(state, action, effects[action.action_id], standing[action.reference]))
        ]
    return found


def _wrong(state: RunState, action: ActionRow, effects: list[dict[str, Any]], standing: int) -> str:
    """`effects`: those with its marker; `standing`: how many with its reference are there."""
    present = [e for e in effects if e["state"] == "present"]
    if any(known.source == "adopted" for known in action.evidence):
        return _wrongly_adopted(effects, standing)
    if action.kind in {ActionKind.UNDO, ActionKind.DUPLICATE}:
        return ""  # what it is about bears another's marker, and is counted there
    if action.status not in _SETTLED:
        return f"it is {action.status}"
    if action.status in _GONE and present:
        return f"the ledger says {action.status}, and it is there"
    if action.status is _S.SUCCEEDED and not effects and _as_it_was(action):
        return ""  # what is there bears the marker of the run that set it first, and is counted there
    if action.status is _S.SUCCEEDED and len(present) != 1:
        return f"the ledger says succeeded, and it is there {len(present)} times"
    stands = action.status is _S.SUCCEEDED and action.kind is ActionKind.DO
    return "it stands in a run that did not commit" if stands and state.run.status is not RunStatus.COMMITTED else ""


def _wrongly_adopted(effects: list[dict[str, Any]], standing: int) -> str:
    """What was adopted bears the marker of the run it was adopted from: it is counted there, and is there once."""
    if effects:
        return f"it was adopted, and made {len(effects)} times all the same"
    return f"it was adopted, and is there {standing} times" if standing != 1 else ""


def _as_it_was(action: ActionRow) -> bool:
    """True if it set the very value that it found: the system has nothing new to count."""
    before, after = action.before_image, action.after_image
    values = action.contract.identity.value_fields
    sets = action.contract.effect.changes == "sets" and bool(values)
    return sets and all(f in before and before[f] == after.get(f) for f in values)


def states(desk: bootstrap.Engine) -> Iterator[RunState]:
    """Every run as its rows say."""
    for run in desk.runs(limit=100_000):
        yield desk.state(run.run_id)


def unfolded(desk: bootstrap.Engine) -> list[str]:
    """Runs whose rows are not the fold of their events. A released claim may have gone to a later run."""
    found: list[str] = []
    for state in states(desk):
        stored = desk.kit.journal.events(state.run.run_id)
        replayed = fold.replay([_event(event.event) for event in stored])
        if replayed is None:
            found.append(f"run {state.run.run_id}: it has no events")
            continue
        claims = {key: claim for key, claim in replayed.claims.items() if claim.held or key in state.claims}
        if replace(replayed, claims=claims) != state:
            found.append(f"run {state.run.run_id}: its rows are not the fold of its events")
    return found


def _event(record: EventRecord) -> Event:
    body = decode(record.payload, f"event {record.event_id}")
    return Event(record.event_id, record.ts_us, record.run_id, record.run_seq, record.action_id, record.epoch, body)


def unmirrored(desk: bootstrap.Engine) -> list[str]:
    """Differences between journal and DuckDB ledger, row by row and column by column."""
    names = [f.name for f in fields(EventRecord)]
    columns = ", ".join(["seq", *names, "prev_hash", "hash"])
    desk.ledger.refresh()
    found: list[str] = []
    seq = 0
    while stored := desk.kit.journal.events_after(seq, limit=_PAGE):
        last = stored[-1].seq
        table = desk.ledger.query(
            f"SELECT {columns} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq",  # noqa: S608 - our own names
            (seq, last),
            max_rows=_PAGE + 1,
        )
        mine = [(s.seq, *(getattr(s.event, name) for name in names), s.prev_hash, s.hash) for s in stored]
        if list(table.rows) != mine:
            theirs = {row[0]: row for row in table.rows}
            found += [f"seq {row[0]} differs: {row} {theirs.get(row[0])}" for row in mine if theirs.get(row[0]) != row]
        seq = last
    extra = desk.ledger.query("SELECT count(*) FROM events").rows[0][0]
    total = desk.kit.journal.info().events
    return [*found, f"{extra!r} events in the ledger, {total} in the journal"] if extra != total else found
