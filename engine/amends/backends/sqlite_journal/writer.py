"""The writer: one thread that owns the writing connection and turns a queue of commands into few transactions.

It takes the write lock first and the queue second, so that whatever arrives while it waits shares the transaction.
A caller waits a bounded time; one that gives up takes its command out of the queue, and nothing of it is stored.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from amends.backends.sqlite_journal.append import Result, append_all
from amends.backends.sqlite_journal.lock import WriteLock
from amends.backends.sqlite_journal.schema import (
    data_is_at_fault,
    demand_extent,
    in_our_words,
    max_seq_of,
    read_meta,
    writer_connection,
)
from amends.core.errors import CallerError, InternalError, JournalUnavailable
from amends.ports.journal import Commit, CommitAnswer, Trim

BATCH_COMMANDS = 512
CHECKPOINT_EVERY_COMMANDS = 1000  # about 4 to 16 MB of log
TRUNCATE_ABOVE_BYTES = 16 * 1024 * 1024
_TRUNCATE_BUSY_MS = 50

_log = logging.getLogger("amends.journal")


class _Ticket:
    """A command, and the answer its caller waits for."""

    __slots__ = ("command", "done", "result")

    def __init__(self, command: Commit | Trim) -> None:
        self.command = command
        self.done = threading.Event()
        self.result: Result | None = None

    def answer(self, result: Result) -> None:
        self.result = result
        self.done.set()


class Writer:
    """Takes a connection opened under the lock, and closes it under the lock."""

    def __init__(
        self, database: Path, lock: WriteLock, connection: sqlite3.Connection, generation: str, busy_seconds: float
    ) -> None:
        self._database = database
        self._lock = lock
        self._connection: sqlite3.Connection | None = connection
        self._files = _identities(database)
        self._generation = generation
        self._busy_seconds = busy_seconds
        self._ready = threading.Condition()
        self._queue: deque[_Ticket] = deque()
        self._closing = False
        self._commands_since_checkpoint = 0
        self._thread = threading.Thread(target=self._run, name="amends-journal", daemon=True)
        self._thread.start()

    def submit(self, command: Commit) -> CommitAnswer:
        """The command's answer, once durable. Raises the port's errors, and what `wanted` raised."""
        answer = self._answer(command)
        if answer is None:
            raise InternalError("the journal answered nothing", hint="report it")
        return answer

    def trim(self, command: Trim) -> None:
        """Returns once it is durable. Raises the port's errors."""
        self._answer(command)

    def _answer(self, command: Commit | Trim) -> CommitAnswer | None:
        ticket = _Ticket(command)
        with self._ready:
            if self._closing:
                raise CallerError("the journal is closed", hint="open a new engine")
            self._queue.append(ticket)
            self._ready.notify()
        try:
            if not ticket.done.wait(self._busy_seconds) and self._withdraw(ticket):
                raise self._lock.busy(self._busy_seconds)
            ticket.done.wait()  # taken in time: its transaction ends with the disk's answer, not with a clock
        except BaseException:
            self._withdraw(ticket)
            raise
        if isinstance(ticket.result, BaseException):
            raise ticket.result
        return ticket.result

    def close(self) -> bool:
        """Store what is queued, checkpoint, close. False if the write lock could not be had in time: then only the
        checkpoint is missing, and the next opener makes up for it.
        """
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join(self._busy_seconds)
        return not self._thread.is_alive()

    def connection(self) -> sqlite3.Connection | None:
        """The open connection, for the fork guard."""
        return self._connection

    def _withdraw(self, ticket: _Ticket) -> bool:
        with self._ready:
            if ticket not in self._queue:
                return False
            self._queue.remove(ticket)
            return True

    def _take(self) -> list[_Ticket]:
        with self._ready:
            return [self._queue.popleft() for _ in range(min(BATCH_COMMANDS, len(self._queue)))]

    # --- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._wait_for_work():
                self._turn()
                if self._checkpoint_is_due():
                    self._checkpoint()
        finally:
            with self._ready:
                self._closing = True
            while self._queue:  # only after a failure: an orderly end leaves none
                for ticket in self._take():
                    ticket.answer(JournalUnavailable("the journal's writer ended", hint="open a new engine"))
        self._end()

    def _wait_for_work(self) -> bool:
        with self._ready:
            while not self._queue and not self._closing:
                self._ready.wait()
            return bool(self._queue)

    def _turn(self) -> None:
        """One turn under the lock, then the answers."""
        try:
            self._lock.acquire()
        except OSError as error:
            for ticket in self._take():
                ticket.answer(in_our_words(error, self._database))
            return
        tickets: list[_Ticket] = []
        try:
            tickets = self._take()
            results = self._results([ticket.command for ticket in tickets]) if tickets else []
        except BaseException as error:
            for ticket in tickets:
                ticket.answer(JournalUnavailable(f"the journal's writer failed: {error}", hint="open a new engine"))
            raise
        finally:
            self._lock.release()
        for ticket, result in zip(tickets, results, strict=True):
            ticket.answer(result)
        self._commands_since_checkpoint += len(tickets)

    def _results(self, commands: Sequence[Commit | Trim]) -> list[Result]:
        try:
            connection = self._opened()
            answers = append_all(connection, commands)
            with suppress(sqlite3.Error):  # it is durable, whatever comes now
                self._lock.remember(self._generation, max_seq_of(connection))
            return answers
        except Exception as error:  # noqa: BLE001 — whatever it is, each caller hears of it and nothing is half stored
            if data_is_at_fault(error) and len(commands) > 1:
                return [result for command in commands for result in self._results([command])]
            if not data_is_at_fault(error):
                self._drop_connection()
            return [in_our_words(error, self._database) for _ in commands]

    def _opened(self) -> sqlite3.Connection:
        """The connection, opened anew after an error or when a file is gone or another one. The lock is held.

        Without this look, events would be acknowledged into a file that has no name any more.
        """
        if self._connection is not None:
            if _identities(self._database) == self._files:
                return self._connection
            self._save_log(self._connection)
        self._drop_connection()
        self._database.stat()  # gone: said as such
        connection = writer_connection(self._database)
        try:
            found = read_meta(connection, "generation")
            if found != self._generation:
                raise JournalUnavailable(
                    f"journal `{self._database}` was replaced by another one while in use",
                    hint="stop every engine that uses it, then start anew",
                )
            demand_extent(connection, self._database, found, self._lock.remembered())
        except BaseException:
            connection.close()
            raise
        self._connection, self._files = connection, _identities(self._database)
        return connection

    def _save_log(self, connection: sqlite3.Connection) -> None:
        """Before letting go of a log whose name was removed: what is in it belongs into the database."""
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                _log.warning("journal %s: closing after an error failed: %s", self._database, error)

    # --- checkpoints ----------------------------------------------------------------------------------------

    def _checkpoint_is_due(self) -> bool:
        grown = self._commands_since_checkpoint
        idle = not self._queue
        return grown >= CHECKPOINT_EVERY_COMMANDS * (1 if idle else 4)

    def _checkpoint(self) -> None:
        """Move the log into the database, under the lock. A failure loses nothing and is tried again later."""
        self._commands_since_checkpoint = 0
        try:
            self._lock.acquire()
            try:
                connection = self._opened()
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                if _size(_log_of(self._database)) > TRUNCATE_ABOVE_BYTES:
                    self._truncate(connection)
            finally:
                self._lock.release()
        except Exception as error:  # noqa: BLE001 — no caller waits for it
            _log.warning("journal %s: checkpoint failed: %s", self._database, error)

    def _truncate(self, connection: sqlite3.Connection) -> None:
        """Shorten the log's file, unless a reader still needs it."""
        (patience_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout={_TRUNCATE_BUSY_MS}")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute(f"PRAGMA busy_timeout={int(patience_ms)}")

    def _end(self) -> None:
        self._checkpoint()
        try:
            self._lock.acquire()
            try:
                self._drop_connection()  # SQLite's own last checkpoint happens here, so under the lock
            finally:
                self._lock.release()
        except OSError as error:
            _log.warning("journal %s: closing failed: %s", self._database, error)


def _log_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def _identities(database: Path) -> tuple[tuple[int, int], ...]:
    """Which files the names of database and log stand for now; fewer than two if one is gone."""
    found: list[tuple[int, int]] = []
    for path in (database, _log_of(database)):
        with suppress(FileNotFoundError):
            there = path.stat()
            found.append((there.st_dev, there.st_ino))
    return tuple(found)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
