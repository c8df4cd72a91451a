"""Copying: from the journal's events into an open ledger file, and whether the file still is a copy of that journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import duckdb

from amends.backends.duckdb_ledger.archive import ParquetArchive
from amends.backends.duckdb_ledger.connection import first_line
from amends.backends.duckdb_ledger.schema import (
    COLUMNS,
    NUMBERS,
    TABLE_VERSION,
    columns_of,
    create_tables,
    create_views,
    sql_digest,
    text,
)
from amends.core.errors import AmendsError
from amends.ports.chain import broken_link
from amends.ports.journal import JournalInfo, Seal, StoredEvent

CHUNK = 10_000
SHOWN_PROBLEMS = 200
_INT64 = 2**63


class EventSource(Protocol):
    """The part of `amends.ports.journal.Journal` that a mirror reads."""

    def events_after(self, seq: int, *, limit: int = CHUNK) -> tuple[StoredEvent, ...]:
        """Events of the whole ledger in order of `seq`, as stored and unchecked."""
        ...

    def info(self) -> JournalInfo:
        """Identity and extent of the content."""
        ...

    def seals(self) -> tuple[Seal, ...]:
        """Every archive file that runs of this journal went into."""
        ...


def start(connection: duckdb.DuckDBPyConnection, info: JournalInfo) -> None:
    """Make an empty database the mirror of that journal."""
    create_tables(connection)
    connection.execute("UPDATE internal.mirror SET journal_generation = ?", [info.generation])


def doubt(
    connection: duckdb.DuckDBPyConnection,
    source: EventSource,
    info: JournalInfo,
    archive: ParquetArchive,
    seals: Sequence[Seal],
) -> str:
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
        held = there[0].hash if there and there[0].seq == max_seq else archive.hash_at(seals, max_seq)
        if held not in {max_hash, None}:
            return f"it differs from the journal at seq {max_seq}"
    missed = {file for file, _, _ in _lacking(connection)}
    for seal in seals:
        if seal.file in missed and not archive.trouble(seal):
            return f"sealed file `{seal.file}` is whole again"
    return ""


def catch_up(
    connection: duckdb.DuckDBPyConnection, source: EventSource, archive: ParquetArchive, sealed: Sequence[Seal] = ()
) -> None:
    """Append everything that is new, in one transaction: whole or not at all. `sealed`: files to begin with, where the
    ledger is made anew.
    """
    connection.execute("BEGIN")
    try:
        if _state(connection)[2] != sql_digest():
            create_views(connection)
        _append(connection, source, archive, sealed)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def extent(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The greatest `seq` and the number of events."""
    return _state(connection)[:2]


def problems(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What is wrong with mirrored events and with the files they came from, in words; beyond a screenful, how many
    more.
    """
    found = connection.execute("SELECT seq, run_id, problem FROM problems ORDER BY seq, problem").fetchall()
    shown = [f"event seq {seq} (run `{run_id}`): {problem}" for seq, run_id, problem in found[:SHOWN_PROBLEMS]]
    if len(found) > SHOWN_PROBLEMS:
        shown.append(f"and {len(found) - SHOWN_PROBLEMS} more, in the table `problems`")
    return (*(problem for _, _, problem in _lacking(connection)), *shown)


def lacking(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many events the ledger lacks of each sealed file that was not whole when it was made."""
    return {file: events for file, events, _ in _lacking(connection)}


def _lacking(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int, str]]:
    return connection.execute("SELECT file, events, problem FROM internal.lacking ORDER BY file").fetchall()


def _append(
    connection: duckdb.DuckDBPyConnection, source: EventSource, archive: ParquetArchive, sealed: Sequence[Seal]
) -> None:
    before, _, _ = _state(connection)
    for seal in sealed:
        _load(connection, archive, seal)
    for batch in _batches(source, before):
        _store(connection, batch)
    asked = "SELECT count(*), max(seq), arg_max(hash, seq) FROM events WHERE seq > ?"
    ((count, max_seq, max_hash),) = connection.execute(asked, [before]).fetchall()
    if not count:
        return
    connection.execute(text("planned.sql"), [before])
    connection.execute(text("problems.sql"), [before])
    connection.execute(
        "UPDATE internal.mirror SET max_seq = ?, max_hash = ?, events = events + ?", [max_seq, max_hash, count]
    )


def _store(connection: duckdb.DuckDBPyConnection, batch: Iterable[StoredEvent]) -> None:
    rows: list[Sequence[object]] = []
    found: list[tuple[int, str, str]] = []
    for stored in batch:
        problem = _problem(stored)
        if problem:
            found.append((stored.seq, str(_plain("run_id", stored.event.run_id)), problem))
        rows.append(_row(stored, plain=bool(problem)))
    for table, columns, values in (("events", list(COLUMNS), rows), ("problems", None, found)):
        if values:
            appender = connection.appender(table, columns=columns) if columns else connection.appender(table)
            appender.append_rows(values)
            appender.flush()


def _load(connection: duckdb.DuckDBPyConnection, archive: ParquetArchive, seal: Seal) -> None:
    """A file that is what was sealed is taken as it is; of another one what can be read, and the rest is reported."""
    problem = archive.trouble(seal)
    before = _count(connection)
    if not problem:
        columns = ", ".join(COLUMNS)
        connection.execute(
            f"INSERT INTO events ({columns}) SELECT {columns} FROM read_parquet(?)",  # noqa: S608 — names only
            [str(archive.folder / seal.file)],
        )
        return
    try:
        for batch in archive.found_in(seal):
            _store(connection, batch)
    except duckdb.Error as error:
        problem = f"{problem}; {first_line(error)}"
    missed = seal.events - (_count(connection) - before)
    connection.execute("INSERT INTO internal.lacking VALUES (?, ?, ?)", [seal.file, missed, problem])


def _count(connection: duckdb.DuckDBPyConnection) -> int:
    return int(connection.execute("SELECT count(*) FROM events").fetchall()[0][0])


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
    values = (stored.seq, *columns_of(stored.event), stored.prev_hash, stored.hash)
    return [_plain(name, value) for name, value in zip(COLUMNS, values, strict=True)] if plain else values


def _plain(name: str, value: object) -> object:
    """What a column of the mirror can hold of a value that corruption may have made anything."""
    if name in NUMBERS:
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
