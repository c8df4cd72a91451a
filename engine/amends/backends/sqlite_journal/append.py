"""What one write transaction does: check each command, then store it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from amends.backends.sqlite_journal.reader import as_row
from amends.backends.sqlite_journal.schema import ROW_COLUMNS, SEAL_COLUMNS
from amends.ports.journal import (
    EVENT_COLUMNS,
    GENESIS_HASH,
    Commit,
    CommitAnswer,
    Committed,
    Refused,
    RowKey,
    RowWrite,
    StoredRow,
    Trim,
    moved_on,
    next_hash,
)

Result = CommitAnswer | BaseException | None  # of a trim: `None`

_STORE_EVENT = (
    f"INSERT INTO events(seq, {', '.join(EVENT_COLUMNS)}, prev_hash, hash)"  # noqa: S608 — column names only
    f" VALUES ({', '.join('?' * (len(EVENT_COLUMNS) + 3))})"
)
_STORE_ROW = (
    "INSERT INTO rows(kind, key, run_id, status, body, epoch, due_us, active, version) VALUES (?,?,?,?,?,?,?,?,1)"
    " ON CONFLICT(kind, key) DO UPDATE SET run_id = excluded.run_id, status = excluded.status, body = excluded.body,"
    " epoch = excluded.epoch, due_us = excluded.due_us, active = excluded.active, version = version + 1"
)
_STORE_HEAD = (
    "INSERT INTO streams(stream, head, hash) VALUES (?,?,?)"
    " ON CONFLICT(stream) DO UPDATE SET head = excluded.head, hash = excluded.hash"
)
_FIND_ROW = f"SELECT {', '.join(ROW_COLUMNS)} FROM rows WHERE kind = ? AND key = ?"  # noqa: S608
_KEEP_SEAL = f"INSERT INTO seals({', '.join(SEAL_COLUMNS)}) VALUES ({', '.join('?' * len(SEAL_COLUMNS))})"  # noqa: S608


def append_all(connection: sqlite3.Connection, commands: Sequence[Commit | Trim]) -> list[Result]:
    """Store the commands in one transaction; a result for each, durable once this returns.

    A refused command, or one whose `wanted` raised, stores nothing. Any other exception rolls everything back and is
    raised. The caller holds the write lock.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        work = _Transaction(connection)
        results = [work.result(command) for command in commands]
        work.finish()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return results


class _Transaction:
    """Totals are read once at the start and written once at the end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._events, self._seq, self._hash = connection.execute(
            "SELECT events, max_seq, max_hash FROM totals"
        ).fetchone()
        self._begun_at = self._seq

    def result(self, command: Commit | Trim) -> Result:
        return self._trimmed(command) if isinstance(command, Trim) else self._committed(command)

    def _committed(self, command: Commit) -> Result:
        run = self._row(RowKey("run", command.stream))
        found = self._connection.execute(
            "SELECT head, hash, sealed FROM streams WHERE stream = ?", (command.stream,)
        ).fetchone()
        head, link, sealed = found or (0, GENESIS_HASH, "")
        refused = (
            self._forbidden(command)
            or _stale(command, run)
            or _closed(sealed, run)
            or self._moved(command, head, run)
            or self._changed(command)
        )
        if refused is not None:
            return refused
        try:
            if command.wanted is not None and not command.wanted():
                return Refused("unwanted", "the caller gave up")
        except BaseException as error:  # noqa: BLE001 — it is the caller's, raised again in the caller's thread
            return error
        return self._store(command, link)

    def finish(self) -> None:
        if self._seq != self._begun_at:
            self._connection.execute(
                "UPDATE totals SET events = ?, max_seq = ?, max_hash = ?", (self._events, self._seq, self._hash)
            )

    def _store(self, command: Commit, link: str) -> Committed:
        first = self._seq + 1
        records: list[tuple[object, ...]] = []
        for event in command.events:
            self._seq += 1
            before, link = link, next_hash(link, event.digest)
            records.append((self._seq, *(getattr(event, name) for name in EVENT_COLUMNS), before, link))
        self._connection.executemany(_STORE_EVENT, records)
        self._store_rows(command.rows)
        self._connection.execute(_STORE_HEAD, (command.stream, command.events[-1].run_seq, link))
        self._events += len(records)
        self._hash = link
        return Committed(first, self._seq)

    def _store_rows(self, rows: Sequence[RowWrite]) -> None:
        self._connection.executemany(
            _STORE_ROW,
            [
                (row.key.kind, row.key.key, row.run_id, row.status, row.body, row.epoch, row.due_us, row.active)
                for row in rows
            ],
        )

    def _trimmed(self, command: Trim) -> BaseException | None:
        file = command.seal.file
        if self._connection.execute("SELECT 1 FROM seals WHERE file = ?", (file,)).fetchone():
            return None
        for run_id, end in command.ends.items():
            found = self._connection.execute(
                "SELECT head, hash, sealed FROM streams WHERE stream = ?", (run_id,)
            ).fetchone()
            if found != (end.run_seq, end.hash, ""):
                return moved_on(run_id, file)
        streams = [(run_id,) for run_id in command.ends]
        self._connection.executemany("DELETE FROM events WHERE run_id = ?", streams)
        self._connection.executemany("DELETE FROM rows WHERE run_id = ? AND kind <> 'claim'", streams)
        self._connection.executemany(
            "UPDATE streams SET sealed = ? WHERE stream = ?", [(file, run_id) for run_id in command.ends]
        )
        self._connection.execute(_KEEP_SEAL, [getattr(command.seal, name) for name in SEAL_COLUMNS])
        self._store_rows(command.rows)
        return None

    def _forbidden(self, command: Commit) -> Refused | None:
        for key in command.forbidden:
            row = self._row(key)
            if row is not None and row.active:
                return Refused("forbidden", f"{key.kind} `{key.key}` is active", row)
        return None

    def _moved(self, command: Commit, head: int, run: StoredRow | None) -> Refused | None:
        if head != command.expected_head:
            return Refused("head_moved", f"head is {head}, not {command.expected_head}", run)
        for event in command.events:
            if self._connection.execute("SELECT 1 FROM events WHERE event_id = ?", (event.event_id,)).fetchone():
                return Refused("head_moved", f"event {event.event_id} is stored already", run)
        return None

    def _changed(self, command: Commit) -> Refused | None:
        for key, version in command.expected_versions.items():
            row = self._row(key)
            found = row.version if row else 0
            if found != version:
                return Refused("row_changed", f"{key.kind} `{key.key}` is at version {found}, not {version}", row)
        return None

    def _row(self, key: RowKey) -> StoredRow | None:
        found = self._connection.execute(_FIND_ROW, (key.kind, key.key)).fetchone()
        return as_row(found) if found else None


def _closed(sealed: str, run: StoredRow | None) -> Refused | None:
    return Refused("status", f"run is sealed in `{sealed}`", run) if sealed else None


def _stale(command: Commit, run: StoredRow | None) -> Refused | None:
    if run is None:
        return None
    if command.epoch is not None and run.epoch != command.epoch:
        return Refused("stale_epoch", f"epoch is {run.epoch}, not {command.epoch}", run)
    if command.allowed_statuses is not None and run.status not in command.allowed_statuses:
        return Refused("status", f"run is `{run.status}`", run)
    return None
