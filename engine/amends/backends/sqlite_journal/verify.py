"""Verification: the shared audit over what SQLite holds, and SQLite's own check of its pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from amends.backends.sqlite_journal.reader import (
    SELECT_EVENTS,
    SELECT_ROWS,
    as_event,
    as_row,
    info,
    seals,
    with_lenient_text,
)
from amends.backends.sqlite_journal.schema import strange_objects
from amends.core.errors import CorruptLedger
from amends.ports.chain import audit
from amends.ports.journal import Head, StoredEvent, StoredRow


def problems(connection: sqlite3.Connection, location: str) -> tuple[str, ...]:
    """Every inconsistency, in words, of one snapshot. Damage that stops the reading is itself reported."""
    found: list[str] = []
    connection.execute("BEGIN")
    try:
        with_lenient_text(connection, lambda: _look(connection, location, found))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return tuple(found)


def _look(connection: sqlite3.Connection, location: str, found: list[str]) -> None:
    try:
        for (said,) in connection.execute("PRAGMA integrity_check"):
            if said != "ok":
                found.append(f"the database is damaged: {said}")
        found += strange_objects(connection)
        heads = {
            stream: Head(head, link, sealed)
            for stream, head, link, sealed in connection.execute("SELECT stream, head, hash, sealed FROM streams")
        }
        told = info(connection, location)
        for problem in audit(_events(connection), heads, _rows(connection), told, seals(connection)):
            found.append(problem)  # one by one: what was found before the damage is kept
    except CorruptLedger as error:
        found.append(error.message)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        found.append(f"the database cannot be read to its end: {error}")


def _events(connection: sqlite3.Connection) -> Iterator[StoredEvent]:
    for columns in connection.execute(f"{SELECT_EVENTS} ORDER BY run_id, run_seq"):
        yield as_event(columns)


def _rows(connection: sqlite3.Connection) -> Iterator[StoredRow]:
    for columns in connection.execute(f"{SELECT_ROWS} ORDER BY kind, key"):
        yield as_row(columns)
