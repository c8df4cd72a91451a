"""Sealed files: whole runs in Parquet, out of the journal's way. They are the archive and what a ledger is remade from.

A file counts only if a seal of the journal names it: what an interrupted sealing left is swept away by the next one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import duckdb

from amends.backends.duckdb_ledger.connection import Limits, first_line, open_scratch
from amends.backends.duckdb_ledger.files import exclusive_lock
from amends.backends.duckdb_ledger.schema import COLUMNS, NUMBERS, columns_of
from amends.core.errors import CorruptLedger, SystemUnavailable
from amends.ports.chain import ends_of
from amends.ports.journal import EventRecord, Head, Seal, StoredEvent

FOLDER = "sealed"
_SELECTED = ", ".join(COLUMNS)
_TABLE = ", ".join(f"{name} {'BIGINT' if name in NUMBERS else 'VARCHAR'}" for name in COLUMNS)
_BATCH = 2_000
_PART = ".part"


class ParquetArchive:
    """Implements `amends.ports.archive.Archive` in the folder `sealed` of the storage folder."""

    def __init__(self, storage: Path, *, limits: Limits | None = None, lock_timeout_seconds: float = 10.0) -> None:
        self.folder = storage / FOLDER
        self._limits = limits or Limits()
        self._lock_timeout_seconds = lock_timeout_seconds

    @contextmanager
    def exclusively(self) -> Generator[None]:
        with _in_our_words(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.folder / "seal.lock"
        with exclusive_lock(lock, timeout_seconds=self._lock_timeout_seconds, what="seal lock", work="sealing"):
            yield

    def write(self, generation: str, events: Iterable[StoredEvent]) -> tuple[Seal, dict[str, Head]]:
        ends: dict[str, Head] = {}
        with _in_our_words(self.folder), self._scratch() as connection:
            connection.execute(f"CREATE TABLE events ({_TABLE})")
            appender = connection.appender("events")
            for batch in _batches(ends_of(events, ends)):
                appender.append_rows([(e.seq, *columns_of(e.event), e.prev_hash, e.hash) for e in batch])
                appender.flush()
            first, last, last_hash, count = connection.execute(
                "SELECT min(seq), max(seq), arg_max(hash, seq), count(*) FROM events"
            ).fetchall()[0]
            name = f"{generation}-{first}-{last}.parquet"
            part = self.folder / (name + _PART)
            connection.execute(
                f"COPY (SELECT {_SELECTED} FROM events ORDER BY seq) TO {_quoted(part)}"  # noqa: S608 — our own path
                " (FORMAT parquet, COMPRESSION zstd)"
            )
            _sync(part)
            self._compare(connection, part, ends)
            seal = Seal(name, first, last, last_hash, len(ends), count, part.stat().st_size, _sha256(part))
            part.replace(self.folder / name)
            _sync(self.folder)
        return seal, ends

    def events(self, seals: Sequence[Seal], run_id: str = "") -> Iterator[StoredEvent]:
        self._demand(seals)
        if not seals:
            return
        paths = [str(self.folder / seal.file) for seal in seals]
        where, values = (" WHERE run_id = ?", [run_id]) if run_id else ("", [])
        asked = f"SELECT {_SELECTED} FROM read_parquet(?){where} ORDER BY seq"  # noqa: S608 — column names only
        try:
            with self._scratch() as connection:
                yield from ends_of(_stored(connection.execute(asked, [paths, *values])), {})
        except duckdb.Error as error:
            raise CorruptLedger(
                f"the archive `{self.folder}` cannot be read: {first_line(error)}", hint="run `amends ledger verify`"
            ) from error

    def problems(self, seals: Sequence[Seal], on_file: Callable[[Seal], None] | None = None) -> tuple[str, ...]:
        found: list[str] = []
        for seal in seals:
            if on_file is not None:
                on_file(seal)
            if problem := self.trouble(seal):
                found.append(problem)
        return tuple(found)

    def copy_to(self, seals: Sequence[Seal], storage: str) -> None:
        self._demand(seals)
        if not seals:
            return
        target = Path(storage) / FOLDER
        with _in_our_words(target):
            target.mkdir(mode=0o700, exist_ok=True)
            for seal in seals:
                shutil.copyfile(self.folder / seal.file, target / seal.file)
                _sync(target / seal.file)
            _sync(target)

    def sweep(self, generation: str, seals: Sequence[Seal]) -> None:
        known = {seal.file for seal in seals}
        with _in_our_words(self.folder):
            for path in sorted(self.folder.glob("*.parquet*")):
                ours = path.name.startswith(f"{generation}-") and path.name not in known
                if ours or path.name.endswith(_PART):
                    path.unlink(missing_ok=True)

    def trouble(self, seal: Seal, *, whole: bool = True) -> str:
        """What is wrong with a file, in words; empty if it is what was sealed. Not `whole`: only that it is there and
        how long it is.
        """
        path = self.folder / seal.file
        where = f"sealed file `{path}` ({seal.events} events of {seal.runs} runs)"
        try:
            size = path.stat().st_size
            if size != seal.size_bytes:
                return f"{where} has {size} bytes, not {seal.size_bytes}"
            if whole and _sha256(path) != seal.sha256:
                return f"{where} differs from its hash"
        except FileNotFoundError:
            return f"{where} is missing"
        except OSError as error:
            return f"{where} cannot be read: {error.strerror}"
        return ""

    def hash_at(self, seals: Sequence[Seal], seq: int) -> str | None:
        """The hash of the event at `seq`; empty if it is in none of these files, `None` if one cannot be read."""
        for seal in seals:
            if seal.last_seq == seq:
                return seal.last_hash
            if seal.first_seq <= seq <= seal.last_seq:
                try:
                    with self._scratch() as connection:
                        asked = "SELECT hash FROM read_parquet(?) WHERE seq = ?"
                        found = connection.execute(asked, [str(self.folder / seal.file), seq]).fetchall()
                except duckdb.Error:
                    return None
                if found:
                    return str(found[0][0])
        return ""

    def found_in(self, seal: Seal) -> Iterator[list[StoredEvent]]:
        """Whatever can be read of a file that is not what was sealed, unchecked, in batches. Raises `duckdb.Error`."""
        asked = f"SELECT {_SELECTED} FROM read_parquet(?) ORDER BY seq"  # noqa: S608 — column names only
        with self._scratch() as connection:
            yield from _batches(_stored(connection.execute(asked, [str(self.folder / seal.file)])))

    def _demand(self, seals: Sequence[Seal]) -> None:
        for seal in seals:
            if problem := self.trouble(seal):
                raise CorruptLedger(problem, hint="put the file back from a backup", file=seal.file)

    def _compare(self, connection: duckdb.DuckDBPyConnection, path: Path, ends: dict[str, Head]) -> None:
        """Raise `CorruptLedger` unless the file holds exactly the events of the table, each as it was written."""
        read: dict[str, Head] = {}
        asked = connection.cursor().execute(f"SELECT {_SELECTED} FROM read_parquet(?) ORDER BY seq", [str(path)])  # noqa: S608
        count = sum(1 for _ in ends_of(_stored(asked), read))
        differing = "SELECT seq, hash FROM events EXCEPT ALL SELECT seq, hash FROM read_parquet(?)"
        lacking = connection.execute(differing, [str(path)]).fetchall()
        kept = connection.execute("SELECT count(*) FROM events").fetchall()
        if read != ends or lacking or [(count,)] != kept:
            raise CorruptLedger(
                f"`{path}` does not hold what was written to it", hint="check the disk, then seal again"
            )

    @contextmanager
    def _scratch(self) -> Generator[duckdb.DuckDBPyConnection]:
        with closing(open_scratch(self._limits, self.folder / "spill")) as connection:
            yield connection


def _stored(found: duckdb.DuckDBPyConnection) -> Iterator[StoredEvent]:
    while batch := found.fetchmany(_BATCH):
        for seq, *values, prev_hash, link in batch:
            yield StoredEvent(seq, EventRecord(*values), prev_hash, link)


def _batches(events: Iterable[StoredEvent]) -> Iterator[list[StoredEvent]]:
    rest = iter(events)
    while batch := list(islice(rest, _BATCH)):
        yield batch


@contextmanager
def _in_our_words(folder: Path) -> Generator[None]:
    try:
        yield
    except (OSError, duckdb.Error) as error:
        said = error.strerror if isinstance(error, OSError) else first_line(error)
        raise SystemUnavailable(
            f"the archive `{folder}` cannot be written: {said}",
            hint="make it writable and give it space; the journal holds everything that is not sealed yet",
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
