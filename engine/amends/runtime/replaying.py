"""Events as stored, back into facts that fold."""

from __future__ import annotations

from collections.abc import Iterator

from amends.core import events as e
from amends.ports.journal import EventRecord, Journal, StoredEvent


def event_of(stored: StoredEvent) -> e.Event:
    """The fact in a stored event. Raises `CorruptLedger` if its payload does not read back."""
    record: EventRecord = stored.event
    body = e.decode(record.payload, f"`{record.event_id}` of run `{record.run_id}`")
    return e.Event(record.event_id, record.ts_us, record.run_id, record.run_seq, record.action_id, record.epoch, body)


def events_of(journal: Journal, stream: str) -> Iterator[StoredEvent]:
    """Every event of a stream that the journal holds, in order."""
    after = 0
    while page := journal.events(stream, after_run_seq=after):
        yield from page
        after = page[-1].event.run_seq
