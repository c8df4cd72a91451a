"""One SQLite file per loopback system: its objects, its effects, its request log and its armed faults.

Everything runs under one lock and one connection, so a handler is a transaction that nobody else sees half of. The file
outlives the process; a system started again on the same file goes on where it stopped.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amends.testing.loopback.wire import Doc

SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, ts REAL, method TEXT, path TEXT, query TEXT, headers TEXT,
    authorization TEXT, idempotency_key TEXT, body TEXT, handled_status INTEGER, answered_status INTEGER, fault TEXT,
    finished_ts REAL);
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, ts REAL, kind TEXT, resource TEXT, reference TEXT, marker TEXT, state TEXT,
    actor TEXT, account TEXT, request_seq INTEGER, detail TEXT);
CREATE TABLE IF NOT EXISTS effect_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, ts REAL, effect_seq INTEGER, event TEXT, kind TEXT, resource TEXT,
    reference TEXT, actor TEXT, request_seq INTEGER);
CREATE TABLE IF NOT EXISTS objects (
    ord INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT, id TEXT, created_ts REAL, updated_ts REAL, removed INTEGER,
    doc TEXT, UNIQUE (collection, id));
CREATE TABLE IF NOT EXISTS object_versions (
    ord INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT, id TEXT, ts REAL, undo INTEGER, doc TEXT);
CREATE INDEX IF NOT EXISTS object_versions_by_id ON object_versions (collection, id);
CREATE TABLE IF NOT EXISTS faults (
    id INTEGER PRIMARY KEY AUTOINCREMENT, spec TEXT, seen INTEGER DEFAULT 0, fired INTEGER DEFAULT 0,
    cleared INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER);
"""
TABLES = ("requests", "effects", "effect_events", "objects", "object_versions", "faults", "settings", "counters")


class Rows:
    """Statements inside one open transaction. Only `Store.transaction` hands these out."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Doc]:
        """Every row as a document, column by column."""
        return [dict(row) for row in self._connection.execute(sql, args)]

    def first(self, sql: str, args: Sequence[Any] = ()) -> Doc | None:
        """The first row, or None."""
        row = self._connection.execute(sql, args).fetchone()
        return None if row is None else dict(row)

    def run(self, sql: str, args: Sequence[Any] = ()) -> int:
        """Execute one statement and return the id of the row that it inserted."""
        return self._connection.execute(sql, args).lastrowid or 0

    def next_number(self, name: str, at_least: int = 1) -> int:
        """The next value of a named counter: one more than the last, and at least so much."""
        row = self.first(
            "INSERT INTO counters VALUES (?1, ?2)"
            " ON CONFLICT (name) DO UPDATE SET value = max(value + 1, ?2) RETURNING value",
            (name, at_least),
        )
        return 0 if row is None else int(row["value"])

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """A part of the transaction that is taken back alone when it raises."""
        self.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK TO part")
            raise
        finally:
            self.run("RELEASE part")


class Store:
    """The system's file (or memory, without a path). Safe to use from any thread of this process."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path, isolation_level=None, check_same_thread=False
        )
        self._connection.row_factory = sqlite3.Row
        # A killed loopback process loses nothing with these two; only a power cut could, and nobody tests that here.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Generator[Rows]:
        """Run statements as one transaction; an exception rolls all of them back."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Rows(self._connection)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def clear(self, tables: Sequence[str] = TABLES) -> None:
        """Empty the named tables (all by default)."""
        with self.transaction() as rows:
            for table in tables:
                rows.run(f"DELETE FROM {table}")  # noqa: S608 - names come from TABLES

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._lock:
            self._connection.close()


def read_setting(rows: Rows, name: str, default: Any) -> Any:
    """A setting's value, or the default when it was never set."""
    row = rows.first("SELECT value FROM settings WHERE name = ?", (name,))
    return default if row is None else json.loads(row["value"])


def write_setting(rows: Rows, name: str, value: Any) -> None:
    """Set a setting to any JSON value."""
    rows.run(
        "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, json.dumps(value)),
    )
