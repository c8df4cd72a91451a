"""How a journal's content is audited: pure checks that every journal implementation shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from amends.core.errors import AmendsError, CorruptLedger
from amends.core.events import LEDGER_FORMAT, decode
from amends.core.reading import json_of
from amends.ports.journal import (
    GENESIS_HASH,
    Head,
    JournalInfo,
    Seal,
    StoredEvent,
    StoredRow,
    event_digest,
    next_hash,
)


def broken_link(stored: StoredEvent) -> str:
    """What is wrong with one event by itself, in words; empty if it is what was written."""
    event = stored.event
    try:
        found = event_digest(event)
    except (AmendsError, TypeError, ValueError) as error:
        return f"cannot be digested: {error}"
    if event.digest != found:
        return "differs from its digest"
    if stored.hash != next_hash(stored.prev_hash, event.digest):
        return "differs from its hash"
    return ""


def ends_of(events: Iterable[StoredEvent], ends: dict[str, Head]) -> Iterator[StoredEvent]:
    """The same events, each checked to be what was written and to follow the one before it in its stream, from the
    stream's first. `ends` becomes the head of each stream. Raises `CorruptLedger` at the first that is not.
    """
    for stored in events:
        run_id, place = stored.event.run_id, stored.event.run_seq
        end = ends.get(run_id, Head(0, GENESIS_HASH))
        problem = broken_link(stored)
        if not problem and (place, stored.prev_hash) != (end.run_seq + 1, end.hash):
            problem = f"does not follow place {end.run_seq} of its run"
        if problem:
            raise CorruptLedger(
                f"event seq {stored.seq} of run `{run_id}` {problem}", hint="run `amends ledger verify`", seq=stored.seq
            )
        ends[run_id] = Head(place, stored.hash)
        yield stored


def audit(
    events: Iterable[StoredEvent],
    heads: Mapping[str, Head],
    rows: Iterable[StoredRow],
    info: JournalInfo,
    seals: Sequence[Seal] = (),
) -> Iterator[str]:
    """Every inconsistency, in words. `events` come in order of run and `run_seq`; nothing is skipped.

    Looked at: format; per event its digest, hash, link, place, payload; per stream its head; over all the ends,
    the count and the greatest `seq`; per row that its body is a JSON object. What was sealed is accounted for by its
    seal, so an event that was removed in another way is still missed; the files themselves are not read.
    """
    if info.format != LEDGER_FORMAT:
        yield f"ledger format is {info.format}, this engine reads {LEDGER_FORMAT}"
    before: StoredEvent | None = None
    count, last = 0, None
    streams: set[str] = set()
    for stored in events:
        if before is None or before.event.run_id != stored.event.run_id:
            yield from _stream_end(before, heads)
            before = None
            streams.add(stored.event.run_id)
        yield from _event_problems(before, stored)
        before, count = stored, count + 1
        last = stored if last is None or stored.seq > last.seq else last
    yield from _stream_end(before, heads)
    for stream in sorted(heads.keys() - streams):
        if not heads[stream].sealed:
            yield f"stream {stream} ends at {heads[stream].run_seq}, but has no events"
    yield from _sealed(heads, seals)
    yield from _totals(count, last, info, seals)
    for row in rows:
        yield from _row_problems(row)


def _event_problems(before: StoredEvent | None, stored: StoredEvent) -> Iterator[str]:
    event = stored.event
    where = f"event seq {stored.seq} (run {event.run_id}, place {event.run_seq})"
    problem = broken_link(stored)
    if problem:
        yield f"{where} {problem}"
    place, link, seq = (before.event.run_seq, before.hash, before.seq) if before else (0, GENESIS_HASH, 0)
    if event.run_seq != place + 1:
        yield f"{where} follows place {place}: events are missing or doubled"
    if stored.prev_hash != link:
        yield f"{where} does not chain to the event before it"
    if stored.seq <= seq:
        yield f"{where} comes after seq {seq}: the order of the ledger is broken"
    try:
        body = decode(event.payload, where)
    except CorruptLedger as error:
        yield error.message
        return
    if body.kind != event.kind:
        yield f"{where} says `{event.kind}`, its payload `{body.kind}`"


def _stream_end(last: StoredEvent | None, heads: Mapping[str, Head]) -> Iterator[str]:
    if last is None:
        return
    stream = last.event.run_id
    head = heads.get(stream)
    if head is None:
        yield f"stream {stream} has events, but no head"
    elif head.sealed:
        yield f"stream {stream} is sealed in {head.sealed}, but has events"
    elif (head.run_seq, head.hash) != (last.event.run_seq, last.hash):
        yield f"stream {stream} ends at {last.event.run_seq}, its head says {head.run_seq} (or another hash)"


def _sealed(heads: Mapping[str, Head], seals: Sequence[Seal]) -> Iterator[str]:
    held: dict[str, list[int]] = {seal.file: [] for seal in seals}
    for stream, head in sorted(heads.items()):
        if head.sealed in held:
            held[head.sealed].append(head.run_seq)
        elif head.sealed:
            yield f"stream {stream} is sealed in {head.sealed}, which the journal does not know"
    for seal in seals:
        runs, events = len(held[seal.file]), sum(held[seal.file])
        if (runs, events) != (seal.runs, seal.events):
            yield (
                f"the seal of {seal.file} counts {seal.events} events of {seal.runs} runs, "
                f"the heads of its streams {events} of {runs}"
            )


def _totals(count: int, last: StoredEvent | None, info: JournalInfo, seals: Sequence[Seal]) -> Iterator[str]:
    sealed = sum(seal.events for seal in seals)
    if count + sealed != info.events:
        besides = f" besides {sealed} sealed ones" if sealed else ""
        yield f"the journal holds {count} events{besides}, it counted {info.events}"
    ends = [(last.seq, last.hash)] if last else []
    ends += [(seal.last_seq, seal.last_hash) for seal in seals]
    seq, link = max(ends, default=(0, GENESIS_HASH))
    if (seq, link) != (info.max_seq, info.max_hash):
        yield f"the last event is seq {seq}, the journal remembers {info.max_seq} (or another hash)"


def _row_problems(row: StoredRow) -> Iterator[str]:
    where = f"row {row.key.kind} {row.key.key}"
    if row.version < 1:
        yield f"{where} has version {row.version}"
    try:
        body = json_of(row.body)
    except ValueError as error:
        yield f"{where} is no JSON: {error}"
        return
    if not isinstance(body, dict):
        yield f"{where} is no JSON object"
