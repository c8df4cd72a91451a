"""Reads: short, read-only connections beside the writer. Each call sees one snapshot."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from amends.backends.sqlite_journal.schema import ROW_COLUMNS, SEAL_COLUMNS, in_our_words, reader_connection
from amends.core.errors import CorruptLedger
from amends.core.rows import RowKind
from amends.ports.chain import broken_link
from amends.ports.journal import EVENT_COLUMNS, EventRecord, JournalInfo, RowKey, Seal, StoredEvent, StoredRow

T = TypeVar("T")
_KEPT_OPEN = 4
_ROW = ", ".join(ROW_COLUMNS)
SELECT_ROWS = f"SELECT {_ROW} FROM rows"  # noqa: S608 — column names only, here and below
SELECT_EVENTS = f"SELECT seq, {', '.join(EVENT_COLUMNS)}, prev_hash, hash FROM events"  # noqa: S608
_INTEGERS = frozenset({"ts_us", "run_seq", "generation", "attempt", "epoch"})


class Reader:
    """Lends connections to threads. A connection that met an error, or whose file is gone, is not lent again."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._free: list[tuple[tuple[int, int], sqlite3.Connection]] = []
        self._closed = False

    def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """`query`'s answer. Raises the port's errors."""
        try:
            file, connection = self._borrow()
            try:
                answer = query(connection)
            except BaseException:
                connection.close()
                raise
        except (
            sqlite3.Error,
            OSError,
            UnicodeDecodeError,
        ) as error:  # the last: SQLite's own words, of a ruined schema
            raise in_our_words(error, self._database) from error
        self._give_back(file, connection)
        return answer

    def close(self) -> None:
        """Close what is free; what is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, connection in free:
            connection.close()

    def connections(self) -> list[sqlite3.Connection]:
        """What is free now, for the fork guard."""
        return [connection for _, connection in self._free]

    def _borrow(self) -> tuple[tuple[int, int], sqlite3.Connection]:
        there = self._database.stat()
        file = (there.st_dev, there.st_ino)
        with self._lock:
            while self._free:
                of, connection = self._free.pop()
                if of == file:
                    return file, connection
                connection.close()
        return file, reader_connection(self._database)

    def _give_back(self, file: tuple[int, int], connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._free) < _KEPT_OPEN:
                self._free.append((file, connection))
                return
        connection.close()


def as_row(found: Sequence[Any]) -> StoredRow:
    """A row from its columns."""
    kind, key, run_id, status, body, epoch, due_us, active, version = found
    return StoredRow(RowKey(kind, key), run_id, status, body, epoch, due_us, bool(active), version)


def as_event(found: Sequence[Any]) -> StoredEvent:
    """An event from its columns. A column of the wrong type is made to fit: its digest then tells."""
    seq, *values, prev_hash, link = found
    if not all(type(v) is (int if n in _INTEGERS else str) for n, v in zip(EVENT_COLUMNS, values, strict=True)):
        values = [_fitting(name, value) for name, value in zip(EVENT_COLUMNS, values, strict=True)]
    return StoredEvent(seq, EventRecord(*values), str(prev_hash), str(link))


def _fitting(name: str, value: object) -> Any:
    if name in _INTEGERS:
        return value if type(value) is int else -1
    return value if type(value) is str else repr(value)


def load(connection: sqlite3.Connection, run_id: str) -> tuple[StoredRow, ...]:
    """All rows of a run."""
    found = connection.execute(f"{SELECT_ROWS} WHERE run_id = ? ORDER BY kind, key", (run_id,))
    return tuple(as_row(row) for row in found.fetchall())


def row(connection: sqlite3.Connection, key: RowKey) -> StoredRow | None:
    """One row."""
    found = connection.execute(f"{SELECT_ROWS} WHERE kind = ? AND key = ?", (key.kind, key.key)).fetchall()
    return as_row(found[0]) if found else None


def rows(
    connection: sqlite3.Connection,
    kind: RowKind,
    *,
    statuses: frozenset[str] | None,
    due_before_us: int | None,
    active: bool | None,
    after_key: str,
    limit: int,
) -> tuple[StoredRow, ...]:
    """Rows of a kind in key order."""
    # With statuses the index that holds every filtered column is named, or SQLite walks all keys in order.
    source = SELECT_ROWS if statuses is None else f"{SELECT_ROWS} INDEXED BY rows_status"
    where, values = ["kind = ?", "key > ?"], list[object]([kind, after_key])
    if statuses is not None:
        where.append(f"status IN ({', '.join('?' * len(statuses))})")
        values += sorted(statuses)
    if due_before_us is not None:
        where.append("(due_us IS NULL OR due_us <= ?)")
        values.append(due_before_us)
    if active is not None:
        where.append("active = ?")
        values.append(active)
    found = connection.execute(f"{source} WHERE {' AND '.join(where)} ORDER BY key LIMIT ?", [*values, limit])
    return tuple(as_row(row) for row in found.fetchall())


def events(connection: sqlite3.Connection, stream: str, *, after_run_seq: int, limit: int) -> tuple[StoredEvent, ...]:
    """Events of one stream, each checked. Raises `CorruptLedger` at the first that is not what was written."""
    found = connection.execute(
        f"{SELECT_EVENTS} WHERE run_id = ? AND run_seq > ? ORDER BY run_seq LIMIT ?", (stream, after_run_seq, limit)
    ).fetchall()
    stored = tuple(as_event(event) for event in found)
    for event in stored:
        problem = broken_link(event)
        if problem:
            raise CorruptLedger(
                f"event seq {event.seq} of run `{stream}` {problem}",
                hint="the run is quarantined; run `amends ledger verify`",
                seq=event.seq,
                run_id=stream,
            )
    return stored


def events_after(connection: sqlite3.Connection, seq: int, *, limit: int) -> tuple[StoredEvent, ...]:
    """Events of the whole ledger as stored, unchecked, even where text is no text."""
    ask = f"{SELECT_EVENTS} WHERE seq > ? ORDER BY seq LIMIT ?"
    try:
        found = connection.execute(ask, (seq, limit)).fetchall()
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
        found = with_lenient_text(connection, lambda: connection.execute(ask, (seq, limit)).fetchall())
    return tuple(as_event(event) for event in found)


def with_lenient_text(connection: sqlite3.Connection, read: Callable[[], T]) -> T:
    """`read` while broken text is replaced instead of refused."""
    connection.text_factory = _lenient_text
    try:
        return read()
    finally:
        connection.text_factory = str


def _lenient_text(data: bytes) -> str:
    return data.decode(errors="replace")


def seals(connection: sqlite3.Connection) -> tuple[Seal, ...]:
    """Every archive file, oldest events first."""
    found = connection.execute(f"SELECT {', '.join(SEAL_COLUMNS)} FROM seals ORDER BY first_seq, file")  # noqa: S608
    return tuple(Seal(*columns) for columns in found.fetchall())


def info(connection: sqlite3.Connection, location: str) -> JournalInfo:
    """Identity and extent, of one snapshot."""
    found = connection.execute(
        "SELECT events, max_seq, max_hash, (SELECT value FROM meta WHERE name = 'generation'),"
        " (SELECT value FROM meta WHERE name = 'format') FROM totals"
    ).fetchall()
    if not found:
        raise CorruptLedger(f"journal `{location}` has lost its totals", hint="restore a backup", location=location)
    count, max_seq, max_hash, generation, ledger_format = found[0]
    return JournalInfo(str(generation), int(ledger_format), max_seq, max_hash, count, location)
