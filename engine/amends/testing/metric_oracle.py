"""The ledger's metrics computed a second time, in plain Python over raw events, for tests that compare the two.

Slow and literal on purpose: it walks each action's events one by one and shares nothing with the SQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

from amends.core import events as e
from amends.ports.journal import StoredEvent

Group: TypeAlias = tuple[str, ...]
Row: TypeAlias = dict[str, Any]
Facts: TypeAlias = Iterator[tuple[StoredEvent, Group, Row]]  # the event that selects and groups, more groups, numbers

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JUDGED = {"succeeded", "failed"}
_FORWARD = {"do", "duplicate"}


class History:
    """A ledger's events with their bodies, by action and by run."""

    def __init__(self, events: Iterable[StoredEvent], as_of_us: int) -> None:
        self.events = sorted(events, key=lambda stored: stored.seq)
        self.as_of_us = as_of_us
        self.bodies = {x.seq: e.decode(x.event.payload, f"seq {x.seq}") for x in self.events}
        self.actions: dict[str, list[StoredEvent]] = defaultdict(list)
        self.runs: dict[str, list[StoredEvent]] = defaultdict(list)
        self.plans: dict[str, e.ActionPlanned] = {}
        for stored in self.events:
            body = self.bodies[stored.seq]
            if isinstance(body, e.ActionPlanned):
                self.plans[stored.event.action_id] = body
            self.runs[stored.event.run_id].append(stored)
            if stored.event.action_id:
                self.actions[stored.event.action_id].append(stored)

    def plan(self, action_id: str) -> e.ActionPlanned:
        """How the action was registered."""
        return self.plans[action_id]

    def of_kind(self, *kinds: str) -> Iterator[tuple[str, list[StoredEvent]]]:
        """Actions of these kinds with their events."""
        for action_id, events in self.actions.items():
            if self.plan(action_id).action_kind.value in kinds:
                yield action_id, events

    def policy(self, events: Sequence[StoredEvent]) -> str:
        """The policy version an action is counted under."""
        named = [x.event for x in events if x.event.policy_version and x.event.kind != "evidence.late"]
        settled = [event for event in named if event.kind != "decision_recorded"]
        return settled[-1].policy_version if settled else (named[0].policy_version if named else "")


def expected(metric: str, events: Iterable[StoredEvent], *, as_of_us: int) -> dict[Group, Row]:
    """What `FROM <metric>` must answer: numbers by group (day, tenant, … , policy_version, and any further group)."""
    history = History(events, as_of_us)
    fact, total = _METRICS[metric]
    groups: dict[Group, list[Row]] = defaultdict(list)
    for stored, more, row in fact(history):
        group = _group(stored, row.pop("policy", None))
        group = (*group[:3], *row.pop("place", group[3:]))
        groups[(*group, *more)].append(row)
    return {group: total(rows) for group, rows in groups.items()}


def _group(stored: StoredEvent, policy: str | None) -> Group:
    event = stored.event
    day = (_EPOCH + timedelta(microseconds=event.ts_us)).date().isoformat()
    place = (event.tenant, event.workflow, event.capability, event.system, event.provider)
    return (day, *place, event.policy_version if policy is None else policy)


# --- facts: one per thing counted -----------------------------------------------------------------------------


def _sends(history: History) -> Iterator[tuple[str, StoredEvent, list[StoredEvent]]]:
    for action_id, events in history.of_kind("do"):
        for sent in events:
            if sent.event.kind == "intent_recorded":
                told = [
                    x for x in events if x.event.kind == "outcome_recorded" and x.event.attempt == sent.event.attempt
                ]
                yield action_id, sent, told


def _unknown_rate(history: History) -> Facts:
    for _, sent, told in _sends(history):
        unknown = not told or any(x.event.outcome == "unknown" for x in told)
        yield sent, (), {"ever_unknown": unknown, "unanswered": not told}


def _time_to_resolution(history: History) -> Facts:
    for action_id, sent, told in _sends(history):
        first = next((x for x in told if x.event.outcome == "unknown"), None)
        if told and first is None:
            continue
        since = first or sent
        proof = next(
            (
                x
                for x in history.actions[action_id]
                if first is not None
                and x.seq > first.seq
                and x.event.attempt == sent.event.attempt
                and x.event.kind in {"outcome_recorded", "effect_reappeared"}
                and x.event.outcome in _JUDGED
            ),
            None,
        )
        ends = {"compensation_verified", "action_accepted", "action_withdrawn"}
        closed = any(x.seq > sent.seq and x.event.kind in ends for x in history.actions[action_id])
        seconds = (proof.event.ts_us - since.event.ts_us) / 1e6 if proof else None
        # Grouped by the intent's policy version, counted on the day it became unknown.
        yield since, (), {"seconds": seconds, "closed": not proof and closed, "policy": sent.event.policy_version}


def _compensated(history: History) -> Iterator[tuple[str, StoredEvent]]:
    for action_id, events in history.actions.items():
        first = next((x for x in events if x.event.kind == "compensation_started"), None)
        if first is not None:
            yield action_id, first


def _compensation_success(history: History) -> Facts:
    told = {"compensation_started", "compensation_verified", "effect_reappeared", "outcome_recorded"}
    moves = told | {"action_parked", "action_reopened", "action_accepted", "action_withdrawn"}
    for action_id, first in _compensated(history):
        events = history.actions[action_id]
        status = [x for x in events if x.event.kind != "evidence.late"][-1].event.status
        how = [b.how for b in (history.bodies[x.seq] for x in events) if isinstance(b, e.CompensationVerified)]
        accepted = [x for x in events if x.event.kind in moves][-1].event.kind == "action_accepted"
        state = "accepted" if accepted else "open"
        if status == "needs_human":
            state = "parked"
        if status == "compensated":
            state = "by_person" if how[-1] == "person" else "verified"
        yield first, (), {"state": state}


def _effects(history: History) -> Iterator[tuple[str, StoredEvent]]:
    for action_id, events in history.of_kind(*_FORWARD):
        first = next((x for x in events if x.event.kind == "outcome_recorded" and x.event.outcome == "succeeded"), None)
        if first is not None and (first.event.attempt > 0 or history.plan(action_id).action_kind.value == "duplicate"):
            yield action_id, first


def _compensation_rate(history: History) -> Facts:
    for action_id, first in _effects(history):
        gone = any(x.event.kind == "compensation_verified" for x in history.actions[action_id])
        yield first, (), {"compensated": gone}


def _compensation_retries(history: History) -> Facts:
    for action_id, first in _compensated(history):
        sends = sum(
            x.event.kind == "intent_recorded"
            for undo, events in history.of_kind("undo")
            if history.plan(undo).of == action_id
            for x in events
        )
        if sends:
            yield first, (), {"sends": sends}


def _escalation_rate(history: History) -> Facts:
    for run_id, events in history.runs.items():
        if events[0].event.kind != "run_opened":
            continue
        parked = any(x.event.kind == "run_moved" and x.event.status == "needs_human" for x in events)
        asked = any(
            isinstance(body, e.ApprovalAsked) and body.phase in {"forward", "release"}
            for body in (history.bodies[x.seq] for x in events)
        )
        used = {
            (*_group(own[0], None)[3:6], history.policy(own))
            for _, own in history.of_kind(*_FORWARD)
            if own[0].event.run_id == run_id
        }
        for place in used or {("", "", "", "")}:
            yield events[0], (), {"needs_human": parked, "planned_approvals": asked, "place": place}


def _unregistered_inverse(history: History) -> Facts:
    for _, events in history.of_kind("do"):
        bodies = [history.bodies[x.seq] for x in events]
        denied = any(isinstance(b, e.ActionDenied) and b.code.startswith("unregistered") for b in bodies)
        yield events[0], (), {"unregistered": denied, "policy": history.policy(events)}


def _duplicate_effects(history: History) -> Facts:
    made = {action_id for action_id, _ in _effects(history)}
    for action_id, events in history.of_kind("do"):
        twins = sum(history.plan(twin).of == action_id for twin, _ in history.of_kind("duplicate"))
        if twins or action_id in made:
            row = {"effects": int(action_id in made), "duplicates": twins, "policy": history.policy(events)}
            yield events[0], (), row
    for twin, events in history.of_kind("duplicate"):
        of = history.plan(twin).of
        if of not in history.actions or history.plan(of).action_kind.value != "do":
            yield events[0], (), {"effects": 0, "duplicates": 1, "policy": history.policy(events)}


def _contradicted_outcomes(history: History) -> Facts:
    for events in history.actions.values():
        for attempt in {x.event.attempt for x in events}:
            first: StoredEvent | None = None
            said, contradicted = "", False
            for stored in (x for x in events if x.event.attempt == attempt):
                body = history.bodies[stored.seq]
                match body:
                    case e.OutcomeRecorded(outcome=outcome):
                        contradicted |= bool(said) and outcome.value != said
                        if not said and outcome.value in _JUDGED:
                            said, first = outcome.value, first or stored
                    case e.LateEvidence(outcome=outcome, evidence=evidence) if evidence.strength != "weak":
                        contradicted |= bool(said) and outcome.value in _JUDGED and outcome.value != said
                    case e.CompensationVerified():
                        first = first or stored
                    case e.EffectReappeared():
                        contradicted |= first is not None
                    case _:
                        pass
            if first is not None:
                yield first, (), {"contradicted": contradicted}


def _open_unknowns(history: History) -> Facts:
    for action_id, events in history.actions.items():
        kind = history.plan(action_id).action_kind.value
        since: StoredEvent | None = None
        unanswered: dict[int, StoredEvent] = {}
        for stored in events:
            body = history.bodies[stored.seq]
            if isinstance(body, e.OutcomeRecorded):
                unanswered.pop(stored.event.attempt, None)
                since = (since or stored) if body.outcome.value == "unknown" else None
            elif isinstance(body, e.CompensationVerified | e.ActionAccepted | e.ActionWithdrawn | e.EffectReappeared):
                since = None
            elif isinstance(body, e.IntentRecorded) and body.deadline_us < history.as_of_us:
                unanswered[body.attempt] = stored
        for stored, overdue in [*((x, True) for x in unanswered.values()), *([(since, False)] if since else [])]:
            yield stored, (kind,), {"overdue": overdue, "seconds": _age(stored, history.as_of_us)}


_LEAVES = {
    "outbox": {"intent_recorded", "action_withdrawn", "action_denied"},
    "approvals": {"approval_given", "approval_closed"},
    "escalations": {"escalation_resolved"},
}


def _queue_age(history: History) -> Facts:
    entered: dict[tuple[str, str], StoredEvent] = {}
    left: dict[tuple[str, str], StoredEvent] = {}
    for stored in history.events:
        body = history.bodies[stored.seq]
        names = {
            "outbox": stored.event.action_id,
            "approvals": getattr(body, "approval_id", ""),
            "escalations": getattr(body, "escalation_id", ""),
        }
        for queue, kind in (
            ("outbox", "action_queued"),
            ("approvals", "approval_asked"),
            ("escalations", "escalation_opened"),
        ):
            item = (queue, names[queue])
            if stored.event.kind == kind:
                entered.setdefault(item, stored)
            elif stored.event.kind in _LEAVES[queue] and item in entered:
                left.setdefault(item, stored)
    for item, stored in entered.items():
        gone = left.get(item)
        waited = (gone.event.ts_us - stored.event.ts_us) / 1e6 if gone else None
        yield stored, (item[0],), {"age": _age(stored, history.as_of_us), "waited": waited}


_MOVERS = {"run_opened", "run_moved"}


def _time_in_state(history: History) -> Facts:
    for run in history.runs.values():
        yield from _stays([x for x in run if x.event.kind in _MOVERS], "run")
    for events in history.actions.values():
        yield from _stays([x for x in events if x.event.kind != "evidence.late"], "action")


def _stays(events: Sequence[StoredEvent], subject: str) -> Facts:
    entries = [
        x for before, x in pairwise([None, *events]) if x and (not before or before.event.status != x.event.status)
    ]
    for stored, after in pairwise([*entries, None]):
        if stored is not None:
            seconds = max(after.event.ts_us - stored.event.ts_us, 0) / 1e6 if after else None
            yield stored, (subject, stored.event.status), {"seconds": seconds}


def _age(stored: StoredEvent, as_of_us: int) -> float:
    return max(as_of_us - stored.event.ts_us, 0) / 1e6


# --- totals: the columns beside the group ---------------------------------------------------------------------


def _count(rows: Sequence[Row], name: str) -> int:
    return sum(int(row[name]) for row in rows)


def _share(of: str, part: str) -> Callable[[Sequence[Row]], Row]:
    def total(rows: Sequence[Row]) -> Row:
        counts = {name: _count(rows, name) for name in rows[0]}
        return {of: len(rows), **counts, "rate": counts[part] / len(rows)}

    return total


def _spread(values: Iterable[float | None], prefix: str = "") -> Row:
    known = sorted(value for value in values if value is not None)
    if not known:
        return {f"{prefix}median_seconds": None, f"{prefix}p95_seconds": None}
    place = 0.95 * (len(known) - 1)
    below = int(place)
    above = min(below + 1, len(known) - 1)
    p95 = known[below] + (known[above] - known[below]) * (place - below)
    return {f"{prefix}median_seconds": median(known), f"{prefix}p95_seconds": p95}


def _resolutions(rows: Sequence[Row]) -> Row:
    resolved = sum(row["seconds"] is not None for row in rows)
    closed = _count(rows, "closed")
    counts = {"unknowns": len(rows), "resolved": resolved, "closed_unresolved": closed}
    return counts | {"open": len(rows) - resolved - closed} | _spread(row["seconds"] for row in rows)


def _successes(rows: Sequence[Row]) -> Row:
    states = [row["state"] for row in rows]
    found = {name: states.count(name) for name in ("verified", "by_person", "parked", "accepted", "open")}
    ended = len(rows) - found["open"]
    return {"started": len(rows), **found, "rate": found["verified"] / ended if ended else None}


def _retries(rows: Sequence[Row]) -> Row:
    sends = [row["sends"] for row in rows]
    retries = sum(sends) - len(sends)
    counts = {"compensations": len(rows), "undo_sends": sum(sends), "retries": retries}
    return counts | {"most_sends": max(sends), "retries_each": retries / len(rows)}


def _twins(rows: Sequence[Row]) -> Row:
    effects, twins = _count(rows, "effects"), _count(rows, "duplicates")
    return {"effects": effects, "duplicates": twins, "rate": twins / effects if effects else None}


def _doubts(rows: Sequence[Row]) -> Row:
    ages = [row["seconds"] for row in rows]
    overdue = _count(rows, "overdue")
    counts = {"open": len(rows) - overdue, "overdue": overdue}
    return counts | {"median_seconds": median(ages), "oldest_seconds": max(ages)}


def _waits(rows: Sequence[Row]) -> Row:
    ages = [row["age"] for row in rows if row["waited"] is None]
    waits = [row["waited"] for row in rows if row["waited"] is not None]
    return {
        "waiting": len(ages),
        "median_seconds": median(ages) if ages else None,
        "oldest_seconds": max(ages, default=None),
        "departed": len(waits),
        "median_wait_seconds": median(waits) if waits else None,
    }


def _visits(rows: Sequence[Row]) -> Row:
    ended = [row["seconds"] for row in rows if row["seconds"] is not None]
    counts = {"visits": len(rows), "ended": len(ended), "open": len(rows) - len(ended)}
    return counts | _spread(ended) | {"total_seconds": sum(ended) if ended else None}


_METRICS: dict[str, tuple[Callable[[History], Facts], Callable[[Sequence[Row]], Row]]] = {
    "unknown_rate": (_unknown_rate, _share("intents", "ever_unknown")),
    "time_to_resolution": (_time_to_resolution, _resolutions),
    "compensation_success": (_compensation_success, _successes),
    "compensation_rate": (_compensation_rate, _share("effects", "compensated")),
    "compensation_retries": (_compensation_retries, _retries),
    "escalation_rate": (_escalation_rate, _share("runs", "needs_human")),
    "unregistered_inverse": (_unregistered_inverse, _share("calls", "unregistered")),
    "duplicate_effects": (_duplicate_effects, _twins),
    "contradicted_outcomes": (_contradicted_outcomes, _share("judged", "contradicted")),
    "open_unknowns": (_open_unknowns, _doubts),
    "queue_age": (_queue_age, _waits),
    "time_in_state": (_time_in_state, _visits),
}
