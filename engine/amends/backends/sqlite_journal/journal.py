"""The journal's front: the port's methods over one writer and a few readers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from amends.backends.sqlite_journal import fork, reader
from amends.backends.sqlite_journal.copy import copy_to
from amends.backends.sqlite_journal.lock import WriteLock
from amends.backends.sqlite_journal.migrate import migrate
from amends.backends.sqlite_journal.reader import Reader
from amends.backends.sqlite_journal.schema import (
    demand_extent,
    demand_file,
    in_our_words,
    max_seq_of,
    prepare,
    writer_connection,
)
from amends.backends.sqlite_journal.verify import problems
from amends.backends.sqlite_journal.writer import Writer
from amends.core.errors import CallerError
from amends.core.rows import RowKind
from amends.ports.journal import (
    Commit,
    CommitAnswer,
    JournalInfo,
    RowKey,
    Seal,
    StoredEvent,
    StoredRow,
    Trim,
    check_shape,
)
from amends.ports.services import Clock, Ids

DATABASE_NAME = "journal.sqlite"
LOCK_NAME = "journal.lock"
BUSY_TIMEOUT_SECONDS = 5.0

T = TypeVar("T")


class SqliteJournal:
    """`amends.ports.journal.Journal` on a local disk. Build it with `open`."""

    def __init__(self, database: Path, lock: WriteLock, writer: Writer, ids: Ids) -> None:
        self._database = database
        self._lock = lock
        self._writer = writer
        self._reader = Reader(database)
        self._ids = ids
        self._pid = os.getpid()
        self._closed = False
        fork.guard(self)

    @classmethod
    def open(
        cls, folder: Path, *, clock: Clock, ids: Ids, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
    ) -> SqliteJournal:
        """The journal in `folder`, created if there is none. Commands wait `busy_timeout_seconds` for the write lock.

        Raises `ConfigError` (not a journal, another format), `JournalBusy`, `JournalUnavailable`, `CorruptLedger`.
        """
        database = folder.absolute() / DATABASE_NAME
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = WriteLock(database.with_name(LOCK_NAME), clock)
        except OSError as error:
            raise in_our_words(error, database) from error
        try:
            if not lock.acquire_within(busy_timeout_seconds):
                raise lock.busy(busy_timeout_seconds)
            try:
                demand_file(database, lock.remembered())
                connection = writer_connection(database, create=True)
                try:
                    generation = prepare(connection, database, ids.new())
                    demand_extent(connection, database, generation, lock.remembered())
                    _note_extent(connection, lock, generation)
                    _sync_folder(database.parent)
                except BaseException:
                    connection.close()
                    raise
            finally:
                lock.release()
            return cls(database, lock, Writer(database, lock, connection, generation, busy_timeout_seconds), ids)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            lock.close()
            raise in_our_words(error, database) from error
        except BaseException:
            lock.close()
            raise

    @classmethod
    def migrate(
        cls, folder: Path, *, clock: Clock, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
    ) -> tuple[int, int]:
        """Bring the journal in `folder`, which nobody uses, to the present format; the formats it had and has.

        Raises what `migrate.migrate` raises.
        """
        database = folder.absolute() / DATABASE_NAME
        return migrate(database, database.with_name(LOCK_NAME), clock=clock, busy_seconds=busy_timeout_seconds)

    @classmethod
    def copy(cls, database: Path, target: Path, ids: Ids) -> JournalInfo:
        """Copy a journal that is not opened here, under a generation of its own. Raises as `open`, and `InvalidInput`
        if something is at `target`.
        """
        return Reader(database).run(lambda connection: copy_to(connection, target, ids.new()))

    def commit(self, command: Commit) -> CommitAnswer:
        self._usable()
        check_shape(command)
        return self._writer.submit(command)

    def load(self, run_id: str) -> tuple[StoredRow, ...]:
        return self._read(lambda connection: reader.load(connection, run_id))

    def row(self, key: RowKey) -> StoredRow | None:
        return self._read(lambda connection: reader.row(connection, key))

    def rows(
        self,
        kind: RowKind,
        *,
        statuses: frozenset[str] | None = None,
        due_before_us: int | None = None,
        active: bool | None = None,
        after_key: str = "",
        limit: int = 1000,
    ) -> tuple[StoredRow, ...]:
        return self._read(
            lambda connection: reader.rows(
                connection,
                kind,
                statuses=statuses,
                due_before_us=due_before_us,
                active=active,
                after_key=after_key,
                limit=limit,
            )
        )

    def events(self, stream: str, *, after_run_seq: int = 0, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        return self._read(
            lambda connection: reader.events(connection, stream, after_run_seq=after_run_seq, limit=limit)
        )

    def events_after(self, seq: int, *, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        return self._read(lambda connection: reader.events_after(connection, seq, limit=limit))

    def info(self) -> JournalInfo:
        return self._read(lambda connection: reader.info(connection, str(self._database)))

    def verify(self) -> tuple[str, ...]:
        return self._read(lambda connection: problems(connection, str(self._database)))

    def trim(self, command: Trim) -> None:
        self._usable()
        self._writer.trim(command)

    def seals(self) -> tuple[Seal, ...]:
        return self._read(reader.seals)

    def backup(self, path: str) -> JournalInfo:
        return self._read(lambda connection: copy_to(connection, Path(path), self._ids.new()))

    def close(self) -> None:
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        self._reader.close()
        if self._writer.close():
            self._lock.close()

    def forget(self) -> None:
        """In a forked child: leave the parent's lock and connections alone."""
        self._lock.forget()
        for connection in [self._writer.connection(), *self._reader.connections()]:
            if connection is not None:
                fork.keep_for_ever(connection)

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._usable()
        return self._reader.run(query)

    def _usable(self) -> None:
        if self._pid != os.getpid():
            raise CallerError(
                f"the journal belongs to process `{self._pid}`, and this is a forked child of it",
                hint="fork before opening the engine, or start the child with `spawn`",
                pid=self._pid,
            )
        if self._closed:
            raise CallerError("the journal is closed", hint="open a new engine")


def _note_extent(connection: sqlite3.Connection, lock: WriteLock, generation: str) -> None:
    """A journal that comes from elsewhere, such as a backup, is missed from now on, not from its first commit here."""
    if lock.remembered()[1]:
        return
    with suppress(sqlite3.DatabaseError):  # so that `verify` can say what is damaged
        max_seq = max_seq_of(connection)
        if max_seq:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # what is noted must be durable
            lock.remember(generation, max_seq)


def _sync_folder(folder: Path) -> None:
    """Make the new file's name as durable as its content."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
