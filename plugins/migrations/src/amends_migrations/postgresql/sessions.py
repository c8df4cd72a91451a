"""Sessions on a PostgreSQL server: made for one use, known by name, one migration at a time.

The lock is taken in the session that migrates: while the server still works on a statement of a client that was
killed, the lock is still held. It is asked for again and again rather than waited for: a session that waits inside
`pg_advisory_lock` holds a snapshot, and `CREATE INDEX CONCURRENTLY` of the holder would wait for that for ever.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.pool import NullPool

from amends_migrations.faults import Held
from amends_migrations.notes import Note
from amends_migrations.target import TransactionStatus

_CONNECT_SECONDS = 5
_LOOK_LOCK = "5s"  # a look waits so long for a table that is being changed
_NAME_BYTES = 63  # of an application_name
_LOCK_CLASS = 0x616D656E  # "amen", the first half of our advisory locks
_POLL_SECONDS = 0.05
_ENDS_IDLE_SESSIONS = (14,)
_STATUS: dict[str | None, TransactionStatus] = {
    "committed": "committed",
    "aborted": "aborted",
    "in progress": "in progress",
    None: "forgotten",
}


class Watch:
    """Stands beside a session that migrates: notes what is about to become durable before it is sent, and lets no
    transaction wait longer than `wait_seconds` for a table, because everybody who comes after it waits with it. What
    runs outside of transactions (a concurrent index) stands in nobody's way, and waits as long as it must.
    """

    def __init__(self, note: Note, wait_seconds: float) -> None:
        self._note = note
        self._wait_ms = max(1, round(wait_seconds * 1000))
        self._outside = False

    def beginning(self, connection: Connection) -> None:
        """Limit how long the transaction waits for locks."""
        driver = _driver(connection)
        if not driver.autocommit:
            driver.execute(f"SET LOCAL lock_timeout = {self._wait_ms}")

    def committing(self, connection: Connection) -> None:
        """Note the transaction, if it changes anything."""
        driver = _driver(connection)
        if driver.autocommit:
            return
        found = driver.execute("SELECT txid_current_if_assigned()").fetchone()[0]
        if found is not None:
            self._note.transaction(int(found))

    def executing(self, connection: Connection, *_rest: object) -> None:
        """Note once that a statement runs outside of a transaction."""
        if not self._outside and _driver(connection).autocommit:
            self._note.outside()
            self._outside = True


@contextmanager
def connected(url: str, name: str, *, autocommit: bool = False, watch: Watch | None = None) -> Generator[Connection]:
    """One session named `name`, made now; no pool, no retry."""
    with _engine(url, name, autocommit=autocommit).connect() as connection:
        if watch is not None:
            event.listen(connection, "begin", watch.beginning)
            event.listen(connection, "commit", watch.committing)
            event.listen(connection, "before_cursor_execute", watch.executing)
        yield connection


@lru_cache(maxsize=32)
def _engine(url: str, name: str, *, autocommit: bool) -> Engine:
    """Kept, because a new one asks the server four things about itself."""
    address = make_url(url)
    return create_engine(
        address,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED",
        connect_args={
            "application_name": name.encode()[:_NAME_BYTES].decode("utf-8", "ignore"),
            **({} if "connect_timeout" in address.query else {"connect_timeout": _CONNECT_SECONDS}),
        },
    )


@contextmanager
def looking(url: str) -> Generator[Connection]:
    """One read-only transaction that sees one state."""
    with connected(url, "amends look") as connection:
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOOK_LOCK}'"))
        yield connection


def lock(connection: Connection, version_table: str, *, wait_seconds: float) -> None:
    """Take the database's migration lock for the rest of the session. Raises `Held` naming the holder."""
    end = time.monotonic() + wait_seconds
    key = {"class": _LOCK_CLASS, "object": _lock_object(version_table)}
    while not _one(connection, "SELECT pg_try_advisory_lock(:class, :object)", key):
        connection.commit()
        if time.monotonic() >= end:
            raise Held(f"another migration holds the lock: {at_work(connection, version_table, '')}")
        time.sleep(_POLL_SECONDS)
    connection.commit()


def limit(connection: Connection, seconds: float) -> None:
    """Let no statement of the session take longer, nor the session wait longer for its client: one whose network went
    silent would hold the lock for hours.
    """
    limits = ["statement_timeout", "idle_in_transaction_session_timeout"]
    if (connection.dialect.server_version_info or ()) >= _ENDS_IDLE_SESSIONS:
        limits.append("idle_session_timeout")
    for name in limits:
        connection.execute(text(f"SET {name} = {max(1, round(seconds * 1000))}"))
    connection.commit()


def at_work(connection: Connection, version_table: str, marker: str) -> str:
    """The session that holds the migration lock, or is known as `marker`, in words; empty if there is none."""
    found = connection.execute(
        text(
            "SELECT a.pid, a.application_name, a.backend_start::text FROM pg_stat_activity a"
            " WHERE a.datname = current_database() AND (a.application_name = :name OR EXISTS ("
            " SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted"
            " AND l.classid = :class AND l.objid = :object AND l.objsubid = 2"
            " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))"
            " ORDER BY a.backend_start LIMIT 1"
        ),
        {
            "name": marker.encode()[:_NAME_BYTES].decode("utf-8", "ignore") or None,
            "class": _LOCK_CLASS,
            "object": _lock_object(version_table),
        },
    ).one_or_none()
    connection.rollback()
    return "" if found is None else f"session {found[0]} ({found[1]}) since {found[2]}"


def statuses(connection: Connection, transactions: Sequence[int]) -> tuple[TransactionStatus, ...]:
    """What became of transactions; `forgotten` for one the server no longer knows."""
    found: list[TransactionStatus] = [_status(connection, number) for number in transactions]
    connection.rollback()
    return tuple(found)


def _status(connection: Connection, number: int) -> TransactionStatus:
    newest = _one(connection, "SELECT txid_snapshot_xmax(txid_current_snapshot())", {})
    if number >= newest:
        return "forgotten"  # a server restored to an earlier time has not come so far yet
    return _STATUS[_one(connection, "SELECT txid_status(:number)", {"number": number})]


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _one(connection: Connection, sql: str, parameters: dict[str, Any]) -> Any:
    return connection.execute(text(sql), parameters).scalar_one()


def _lock_object(version_table: str) -> int:
    return zlib.crc32(version_table.encode()) & 0x7FFFFFFF
