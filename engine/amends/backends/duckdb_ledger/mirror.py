"""Copying: from the journal's events into an open ledger file, and whether the file still is a copy of that journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Protocol

import duckdb

from amends.backends.duckdb_ledger.schema import TABLE_VERSION, create_tables, create_views, sql_digest, text
from amends.core.errors import AmendsError
from amends.ports.chain import broken_link
from amends.ports.journal import EVENT_COLUMNS, EventRecord, JournalInfo, StoredEvent

CHUNK = 10_000
SHOWN_PROBLEMS = 200
COLUMNS = ("seq", *EVENT_COLUMNS, "prev_hash", "hash")
_NUMBERS = frozenset({"seq", "ts_us", "run_seq", "generation", "attempt", "epoch"})
_INT64 = 2**63
_columns_of: Callable[[EventRecord], tuple[object, ...]] = attrgetter(*EVENT_COLUMNS)


class EventSource(Protocol):
    """The part of `amends.ports.journal.Journal` that a mirror reads."""

    def events_after(self, seq: int, *, limit: int = CHUNK) -> tuple[StoredEvent, ...]:
        """Events of the whole ledger in order of `seq`, as stored and unchecked."""
        ...

    def info(self) -> JournalInfo:
        """Identity and extent of the content."""
        ...


def start(connection: duckdb.DuckDBPyConnection, info: JournalInfo) -> None:
    """Make an empty database the mirror of that journal."""
    create_tables(connection)
    connection.execute("UPDATE internal.mirror SET journal_generation = ?", [info.generation])


def doubt(connection: duckdb.DuckDBPyConnection, source: EventSource, info: JournalInfo) -> str:
    """Why this file is not a copy of that journal's beginning, in words; empty if it is."""
    found = connection.execute(
        "SELECT table_version, journal_generation, max_seq, max_hash, events FROM internal.mirror"
    ).fetchall()
    if len(found) != 1 or found[0][0] != TABLE_VERSION:
        return "it was made by another version"
    _, generation, max_seq, max_hash, events = found[0]
    if generation != info.generation:
        return "it mirrors another journal"
    if max_seq > info.max_seq:
        return f"it is at seq {max_seq}, the journal at {info.max_seq}"
    if connection.execute("SELECT count(*), coalesce(max(seq), 0) FROM events").fetchall() != [(events, max_seq)]:
        return f"it does not hold the {events} events it counted"
    if max_seq:
        there = source.events_after(max_seq - 1, limit=1)
        if not there or (there[0].seq, there[0].hash) != (max_seq, max_hash):
            return f"it differs from the journal at seq {max_seq}"
    return ""


def catch_up(connection: duckdb.DuckDBPyConnection, source: EventSource) -> None:
    """Append everything that is new, in one transaction: whole or not at all."""
    connection.execute("BEGIN")
    try:
        if _state(connection)[2] != sql_digest():
            create_views(connection)
        _append(connection, source)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def extent(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The greatest `seq` and the number of events."""
    return _state(connection)[:2]


def problems(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What is wrong with mirrored events, in words; beyond a screenful, how many more."""
    found = connection.execute("SELECT seq, run_id, problem FROM problems ORDER BY seq, problem").fetchall()
    shown = [f"event seq {seq} (run `{run_id}`): {problem}" for seq, run_id, problem in found[:SHOWN_PROBLEMS]]
    if len(found) > SHOWN_PROBLEMS:
        shown.append(f"and {len(found) - SHOWN_PROBLEMS} more, in the table `problems`")
    return tuple(shown)


def _append(connection: duckdb.DuckDBPyConnection, source: EventSource) -> None:
    before, count, _ = _state(connection)
    last: StoredEvent | None = None
    found: list[tuple[int, str, str]] = []
    appender = connection.appender("events", columns=list(COLUMNS))
    for batch in _batches(source, before):
        rows: list[Sequence[object]] = []
        for stored in batch:
            problem = _problem(stored)
            if problem:
                found.append((stored.seq, str(_plain("run_id", stored.event.run_id)), problem))
            rows.append(_row(stored, plain=bool(problem)))
        appender.append_rows(rows)
        appender.flush()
        count, last = count + len(batch), batch[-1]
    if last is None:
        return
    if found:
        reports = connection.appender("problems")
        reports.append_rows(found)
        reports.flush()
    connection.execute(text("planned.sql"), [before])
    connection.execute(text("problems.sql"), [before])
    connection.execute(
        "UPDATE internal.mirror SET max_seq = ?, max_hash = ?, events = ?", [last.seq, _plain("hash", last.hash), count]
    )


def _batches(source: EventSource, after: int) -> Iterator[tuple[StoredEvent, ...]]:
    while batch := source.events_after(after, limit=CHUNK):
        yield batch
        after = batch[-1].seq


def _problem(stored: StoredEvent) -> str:
    try:
        return broken_link(stored)
    except AmendsError as error:
        return error.message


def _row(stored: StoredEvent, *, plain: bool) -> Sequence[object]:
    values = (stored.seq, *_columns_of(stored.event), stored.prev_hash, stored.hash)
    return [_plain(name, value) for name, value in zip(COLUMNS, values, strict=True)] if plain else values


def _plain(name: str, value: object) -> object:
    """What a column of the mirror can hold of a value that corruption may have made anything."""
    if name in _NUMBERS:
        return value if isinstance(value, int) and -_INT64 <= value < _INT64 else None
    return str(value).encode("utf-8", "backslashreplace").decode()


def _state(connection: duckdb.DuckDBPyConnection) -> tuple[int, int, str]:
    ((max_seq, events, digest),) = connection.execute(
        "SELECT max_seq, events, sql_digest FROM internal.mirror"
    ).fetchall()
    return int(max_seq), int(events), str(digest)


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute("ROLLBACK")
    except duckdb.Error:
        return  # the transaction, or the whole instance, is gone already
