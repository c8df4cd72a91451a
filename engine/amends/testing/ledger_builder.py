"""Ledgers for tests: runs built from real events, as the columns a journal stores, in one sequence with its chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from amends.core import events as e
from amends.core import fold
from amends.core.rows import ActionRow, RunState
from amends.ports.journal import GENESIS_HASH, EventRecord, JournalInfo, Seal, StoredEvent, next_hash, seal
from amends.testing.run_record import RunRecord


@dataclass
class EventList:
    """The read side of a journal that a mirror needs, over a plain list which a test may cut, bend or replace."""

    generation: str = "generation-1"
    stored: list[StoredEvent] = field(default_factory=list[StoredEvent])

    def events_after(self, seq: int, *, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Events after `seq`, in order."""
        return tuple(event for event in self.stored if event.seq > seq)[:limit]

    def info(self) -> JournalInfo:
        """Identity and extent."""
        last = self.stored[-1] if self.stored else None
        max_seq, max_hash = (last.seq, last.hash) if last else (0, GENESIS_HASH)
        return JournalInfo(self.generation, e.LEDGER_FORMAT, max_seq, max_hash, len(self.stored), "a list")

    def seals(self) -> tuple[Seal, ...]:
        """Nothing was sealed."""
        return ()

    def append(self, record: EventRecord) -> None:
        """Store a sealed event at the end of its stream."""
        before = next((old for old in reversed(self.stored) if old.event.run_id == record.run_id), None)
        prev_hash = before.hash if before else GENESIS_HASH
        seq = self.stored[-1].seq + 1 if self.stored else 1
        self.stored.append(StoredEvent(seq, record, prev_hash, next_hash(prev_hash, record.digest)))

    def bend(self, seq: int, **columns: object) -> None:
        """Change columns of a stored event as corruption would: nothing is sealed anew."""
        place = next(place for place, old in enumerate(self.stored) if old.seq == seq)
        old = self.stored[place]
        self.stored[place] = replace(old, event=replace(old.event, **columns))  # type: ignore[arg-type]


def store(events: EventList, *runs: RunRecord) -> None:
    """Append all events of the runs, merged by time; equal times keep the order of the runs."""
    merged = [(record.ts_us, place, record) for place, run in enumerate(runs) for record in records(run.events)]
    for _, _, record in sorted(merged, key=lambda item: item[:2]):
        events.append(record)


def records(events: Iterable[e.Event]) -> list[EventRecord]:
    """The sealed records of one run's events, with the columns that stand beside the payload."""
    state: RunState | None = None
    found: list[EventRecord] = []
    for event in events:
        state = fold.apply(state, event)
        found.append(record_of(event, state))
    return found


def record_of(event: e.Event, state: RunState) -> EventRecord:
    """One event and the state after it as a sealed record."""
    action = state.actions.get(event.action_id)
    policy_version, decision_id = _decided(event.body, action)
    return seal(
        EventRecord(
            event_id=event.event_id,
            ts_us=event.ts_us,
            run_id=event.run_id,
            run_seq=event.run_seq,
            action_id=event.action_id,
            slot=action.slot if action else "",
            generation=action.generation if action else 0,
            attempt=action.attempt if action else 0,
            epoch=event.epoch,
            kind=event.body.kind,
            status=action.status.value if action else state.run.status.value,
            outcome=action.outcome.value if action else "",
            capability=action.capability if action else "",
            system=action.contract.effect.system if action else "",
            provider=action.instance if action else "",
            tenant=state.run.tenant,
            workflow=state.run.workflow,
            policy_version=policy_version,
            decision_id=decision_id,
            payload=e.encode(event.body),
        )
    )


def _decided(body: e.Body, action: ActionRow | None) -> tuple[str, str]:
    if isinstance(body, e.DecisionRecorded):
        return body.decision.policy_version, body.decision.decision_id
    if action is None or action.decided is None:
        return "", ""
    return action.forward_policy_version or action.decided.policy_version, action.decided.decision_id
