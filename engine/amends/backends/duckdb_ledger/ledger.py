"""The DuckDB ledger: every event there ever was, in SQL; disposable: journal and sealed files can make it anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Container, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb

from amends.backends.duckdb_ledger import mirror, reader
from amends.backends.duckdb_ledger.archive import ParquetArchive
from amends.backends.duckdb_ledger.connection import (
    Held,
    Limits,
    Unreadable,
    first_line,
    open_reader,
    open_writer,
)
from amends.backends.duckdb_ledger.files import Generations, mirror_lock, remove, signature
from amends.backends.duckdb_ledger.mirror import EventSource
from amends.core.errors import CallerError, InvalidInput, SystemUnavailable
from amends.ports.journal import JournalInfo, Seal
from amends.ports.ledger import LedgerState, SqlValue, Table
from amends.ports.services import Clock


class DuckdbLedger:
    """Implements `amends.ports.ledger.Ledger` in `folder`, over any journal. Safe for threads and processes.

    The file is open only while it is refreshed or asked. `reader_patience_seconds`: how long a refresh waits for a
    reader before it leaves that file to it and goes on in a new generation.
    """

    def __init__(
        self,
        source: EventSource,
        folder: Path,
        clock: Clock,
        *,
        limits: Limits | None = None,
        lock_timeout_seconds: float = 10.0,
        reader_patience_seconds: float = 5.0,
    ) -> None:
        self._source = source
        self._folder = folder
        self._files = Generations(folder)
        self._archive = ParquetArchive(folder)
        self._clock = clock
        self._limits = limits or Limits()
        self._lock_timeout_seconds = lock_timeout_seconds
        self._reader_patience_seconds = reader_patience_seconds
        self._exact: tuple[JournalInfo, LedgerState] | None = None  # what the last refresh brought the file up to
        self._seen: tuple[object, LedgerState] | None = None
        self._doubtful = threading.Event()  # a query met damage: the next refresh makes the file anew
        self._closed = False

    def refresh(self) -> LedgerState:
        self._usable()
        known = self._known(self._source.info())
        if known is not None:
            return known
        with self._exclusively():
            return self._remember(self._refreshed())

    def query(
        self, sql: str, parameters: Sequence[SqlValue] = (), *, max_rows: int = 10_000, timeout_seconds: float = 30.0
    ) -> Table:
        self._usable()
        if max_rows < 1 or timeout_seconds <= 0:
            raise InvalidInput(
                f"a query cannot be limited to `{max_rows}` rows and `{timeout_seconds:g}` s",
                hint="use positive limits",
            )
        give_up = time.monotonic() + timeout_seconds
        if self._files.current() is None:
            self.refresh()
        try:
            connection = open_reader(self._published, self._limits, patience_seconds=timeout_seconds)
            try:
                return reader.run(
                    connection,
                    sql,
                    parameters,
                    max_rows=max_rows,
                    give_up=give_up,
                    timeout_seconds=timeout_seconds,
                    as_of_us=self._clock.now_us(),
                )
            finally:
                connection.close()
        except Unreadable:
            self._doubtful.set()
            raise

    def rebuild(self) -> LedgerState:
        self._usable()
        with self._exclusively():
            self._doubtful.clear()
            return self._remember(self._made_anew())

    def close(self) -> None:
        self._closed = True

    def _usable(self) -> None:
        if self._closed:
            raise CallerError("the ledger is closed", hint="open a new engine")

    def _published(self) -> Path:
        return self._files.current() or self._files.link

    # --- refreshing, under the mirror lock ------------------------------------------------------------------

    @contextmanager
    def _exclusively(self) -> Generator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with mirror_lock(self._folder / "mirror.lock", timeout_seconds=self._lock_timeout_seconds):
                yield
        except OSError as error:
            raise SystemUnavailable(
                f"the ledger folder `{self._folder}` cannot be used: {error.strerror}",
                hint="make it writable and give it space; the journal holds everything meanwhile",
            ) from error

    def _refreshed(self) -> LedgerState:
        current = self._files.current()
        if current is None:
            return self._made_anew()
        try:
            if self._doubtful.is_set():
                raise _DoubtError("a query met damage")
            return self._caught_up(current, patience_seconds=self._reader_patience_seconds)
        except Held:
            return self._left_to_its_reader(current)
        except _DoubtError as doubt:
            aside = self._files.set_aside(current)
            self._doubtful.clear()
            return self._made_anew(f"the mirror was made anew, the old one is `{aside.name}`: {doubt}")

    def _caught_up(self, path: Path, *, patience_seconds: float, rebuilt: bool = False, note: str = "") -> LedgerState:
        """Append what is new. Raises `Held` if somebody keeps the file, `_DoubtError` if it cannot be trusted."""
        try:
            connection = open_writer(path, self._limits, patience_seconds=patience_seconds)
        except Unreadable as error:
            raise _DoubtError(error.message) from error
        info = self._source.info()  # not earlier: the file may have been brought past an earlier answer
        seals = self._source.seals()
        try:
            if rebuilt:
                mirror.start(connection, info)
            elif reason := mirror.doubt(connection, self._source, info, self._archive, seals):
                raise _DoubtError(reason)
            mirror.catch_up(connection, self._source, self._archive, seals if rebuilt else ())
            max_seq, events = mirror.extent(connection)
            notes = [note] if note else []
            missed = mirror.lacking(connection)
            lasting = (*self._short_of(seals, missed), *mirror.problems(connection))
            if max_seq <= info.max_seq and events + sum(missed.values()) < info.events:
                lacking = f"it holds {events} events, the journal counts {info.events}"
                if not rebuilt:
                    raise _DoubtError(lacking)
                notes.append(lacking)
        except duckdb.Error as error:
            raise _failure(path, error) from error
        finally:
            _close(connection)
        state = LedgerState(str(self._files.link), max_seq, events, rebuilt, (*notes, *lasting))
        self._exact = (info, replace(state, rebuilt=False, problems=lasting))
        return state

    def _short_of(self, seals: Sequence[Seal], told: Container[str]) -> list[str]:
        """Sealed files that are missing or cut, in words: the ledger may be the last to hold their events."""
        found = [self._archive.trouble(seal, whole=False) for seal in seals if seal.file not in told]
        return [problem for problem in found if problem]

    def _left_to_its_reader(self, current: Path) -> LedgerState:
        """Go on in a copy. While our own reading connection is open nobody can be writing what is copied."""
        path = self._files.fresh()
        try:
            witness = open_reader(lambda: current, self._limits, patience_seconds=0)
            try:
                self._files.copy(current, path)
            finally:
                witness.close()
            state = self._caught_up(path, patience_seconds=0)
        except (Held, Unreadable, _DoubtError) as error:
            remove(path)
            reason = str(error) if isinstance(error, _DoubtError) else error.message
            return self._made_anew(f"the mirror was made anew: {reason}")
        self._files.publish(path)
        return state

    def _made_anew(self, note: str = "") -> LedgerState:
        path = self._files.fresh()
        try:
            state = self._caught_up(path, patience_seconds=0, rebuilt=True, note=note)
        except _DoubtError as error:
            remove(path)
            raise SystemUnavailable(
                f"the ledger cannot be made anew: {error}", hint="the journal holds everything; run `amends doctor`"
            ) from error
        except BaseException:
            remove(path)
            raise
        self._files.publish(path)
        return state

    # --- what need not be done again ------------------------------------------------------------------------

    def _known(self, info: JournalInfo) -> LedgerState | None:
        """The last state, if neither the journal nor the file has changed since."""
        current = self._files.current()
        if self._seen is None or current is None or self._doubtful.is_set():
            return None
        seen, state = self._seen
        return state if seen == (info, current, signature(current)) else None

    def _remember(self, state: LedgerState) -> LedgerState:
        current = self._files.current()
        if current is not None and self._exact is not None:
            info, lasting = self._exact
            self._seen = ((info, current, signature(current)), lasting)
        return state


class _DoubtError(Exception):
    """The file is not, or may not be, a copy of the journal."""


def _failure(path: Path, error: duckdb.Error) -> Exception:
    if "No space left" in str(error):
        return SystemUnavailable(
            f"the ledger file `{path}` cannot grow: {first_line(error)}",
            hint="give the disk space; the journal holds everything meanwhile",
        )
    return _DoubtError(first_line(error))


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    with suppress(duckdb.Error):  # after a fatal error the instance is gone already
        connection.close()
