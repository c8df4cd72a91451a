"""Tables, connections and the words for what SQLite says when it cannot."""

from __future__ import annotations

import sqlite3
from dataclasses import fields
from pathlib import Path
from urllib.parse import quote

from amends.core.errors import (
    AmendsError,
    ConfigError,
    CorruptLedger,
    InternalError,
    JournalBusy,
    JournalUnavailable,
)
from amends.core.events import LEDGER_FORMAT
from amends.ports.journal import EVENT_COLUMNS, GENESIS_HASH, Seal

READER_BUSY_SECONDS = 5.0
WRITER_BUSY_SECONDS = 2.0  # only a program that ignores the write lock can make the writer wait inside SQLite
SMALLEST_BYTES = 512  # SQLite takes a file that is shorter than any page for an empty database
OLDEST_SQLITE = (3, 37, 0)  # STRICT tables

_INTEGERS = frozenset({"ts_us", "run_seq", "generation", "attempt", "epoch"})
_EVENT_DDL = ", ".join(f"{name} {'INTEGER' if name in _INTEGERS else 'TEXT'} NOT NULL" for name in EVENT_COLUMNS)
SEAL_COLUMNS = tuple(column.name for column in fields(Seal))
_SEAL_TEXTS = frozenset({"file", "last_hash", "sha256"})
_SEAL_DDL = ", ".join(f"{name} {'TEXT' if name in _SEAL_TEXTS else 'INTEGER'} NOT NULL" for name in SEAL_COLUMNS)
ROW_COLUMNS = ("kind", "key", "run_id", "status", "body", "epoch", "due_us", "active", "version")

TABLES = (
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    f"CREATE TABLE events(seq INTEGER PRIMARY KEY, {_EVENT_DDL}, prev_hash TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
    "CREATE UNIQUE INDEX events_id ON events(event_id)",
    "CREATE UNIQUE INDEX events_run ON events(run_id, run_seq)",
    """CREATE TABLE streams(stream TEXT PRIMARY KEY, head INTEGER NOT NULL, hash TEXT NOT NULL,
    sealed TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID""",
    f"CREATE TABLE seals({_SEAL_DDL}, PRIMARY KEY (file)) STRICT",
    """CREATE TABLE totals(one INTEGER PRIMARY KEY CHECK (one = 1), events INTEGER NOT NULL,
    max_seq INTEGER NOT NULL, max_hash TEXT NOT NULL) STRICT""",
    """CREATE TABLE rows(kind TEXT NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, status TEXT NOT NULL,
    body TEXT NOT NULL, epoch INTEGER NOT NULL, due_us INTEGER, active INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (kind, key)) STRICT""",
    "CREATE INDEX rows_run ON rows(run_id, kind, key)",
    # Holds all that `rows()` filters by, so that a million settled runs are never looked at to find the few due.
    "CREATE INDEX rows_status ON rows(kind, status, key, due_us, active)",
)


def writer_connection(database: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection that may write: WAL, every commit synced, no checkpoint of its own accord.

    Only to be called, used and closed under the write lock. Raises `sqlite3.Error`.
    """
    connection = _connect(database, "rwc" if create else "rw", WRITER_BUSY_SECONDS)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def reader_connection(database: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises `sqlite3.Error`."""
    return _connect(database, "ro", READER_BUSY_SECONDS)


def _connect(database: Path, mode: str, busy_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(database))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=busy_seconds,
        cached_statements=256,
    )


def prepare(connection: sqlite3.Connection, database: Path, generation: str) -> str:
    """Create the tables of a new journal, or check those that are there; the journal's generation.

    Raises `ConfigError` for a file that is no journal or has another format, `sqlite3.Error` for the rest.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise ConfigError(
            f"SQLite `{sqlite3.sqlite_version}` is too old for the journal",
            hint="use a Python built with SQLite 3.37 or newer",
        )
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and not {"meta", "events", "streams", "totals", "rows"} <= names:
        raise ConfigError(
            f"`{database}` is a database, but no journal", hint="move it away, or configure another folder"
        )
    if names and (found := read_meta(connection, "format")) != str(LEDGER_FORMAT):
        raise wrong_format(database, found, LEDGER_FORMAT)
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise ConfigError(
            f"the disk of `{database}` does not carry a write-ahead log (SQLite answers `{mode}`)",
            hint="put the journal on a local disk",
        )
    if not names:
        _create(connection, generation)
    return read_meta(connection, "generation")


def strange_objects(connection: sqlite3.Connection) -> list[str]:
    """Tables and indexes that a journal lacks, and whatever somebody else made in its file, in words. A trigger could
    undo what is committed. Raises `sqlite3.Error`.
    """
    names = (statement.split("(")[0].removeprefix("CREATE ").removeprefix("UNIQUE ") for statement in TABLES)
    ours = {" ".join(name.lower().split()[:2]) for name in names}
    found = connection.execute("SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    there = {str(name) for (name,) in found}
    return [
        *(f"the database lacks the {name}" for name in sorted(ours - there)),
        *(f"the database holds a {name}, which is not the journal's" for name in sorted(there - ours)),
    ]


def read_meta(connection: sqlite3.Connection, name: str) -> str:
    """One value of the meta table; empty if it is not there."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(found[0]) if found else ""


def max_seq_of(connection: sqlite3.Connection) -> int:
    """The greatest `seq` ever given; 0 if that is lost. Raises `sqlite3.Error`."""
    found = connection.execute("SELECT max_seq FROM totals").fetchone()
    return found[0] if found and type(found[0]) is int else 0


def demand_file(database: Path, remembered: tuple[str, int]) -> None:
    """Raise `CorruptLedger` if a journal that was here is gone or empty: it must not be taken for a new one."""
    if remembered[1] and not (database.exists() and database.stat().st_size >= SMALLEST_BYTES):
        raise _lost(database, remembered[1], "its file is gone or empty")


def demand_extent(connection: sqlite3.Connection, database: Path, generation: str, remembered: tuple[str, int]) -> None:
    """Raise `CorruptLedger` if this is another journal than the one that was here, or has not come as far."""
    was, max_seq = remembered
    if max_seq and generation != was:
        raise _lost(database, max_seq, "another journal is in its place")
    try:
        found = max_seq_of(connection)
    except sqlite3.DatabaseError:
        return  # so that `verify` can say all that is damaged; no commit gets past it
    if found < max_seq:
        raise _lost(database, max_seq, f"it ends at seq {found}")


def _lost(database: Path, remembered: int, found: str) -> CorruptLedger:
    return CorruptLedger(
        f"journal `{database}` has lost events: it had come to seq {remembered}, and {found}",
        hint=f"put the file and its `{database.name}-wal` back as they were, or restore a backup into an empty folder; "
        "removing `journal.lock` accepts the loss, and calls that were sent may then be sent again",
        location=str(database),
    )


def wrong_format(database: Path, found: str, wanted: int) -> ConfigError:
    """Why a journal of this format cannot be used, with its remedy."""
    if not found.isdecimal():
        hint = "restore a backup"
    elif int(found) > wanted:
        hint = "install the engine version that wrote it, or a later one"
    else:
        hint = "stop every engine that uses it, then run `amends journal migrate`"
    return ConfigError(
        f"journal `{database}` has ledger format `{found}`, and this engine reads `{wanted}`", hint=hint, format=found
    )


def _create(connection: sqlite3.Connection, generation: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in TABLES:
            connection.execute(statement)
        connection.executemany(
            "INSERT INTO meta(name, value) VALUES (?, ?)",
            [("format", str(LEDGER_FORMAT)), ("generation", generation)],
        )
        connection.execute("INSERT INTO totals VALUES (1, 0, 0, ?)", (GENESIS_HASH,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def data_is_at_fault(error: Exception) -> bool:
    """True if the values of one command caused it, so that its batch mates may still be stored."""
    if isinstance(error, sqlite3.Error):
        return isinstance(
            error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError | sqlite3.ProgrammingError
        )
    return not isinstance(error, OSError | AmendsError | UnicodeDecodeError)


def in_our_words(error: Exception, database: Path) -> AmendsError:
    """The error of the port for what SQLite or the system raised, with its remedy."""
    if isinstance(error, AmendsError):
        return error
    said = str(error)
    if data_is_at_fault(error):
        return InternalError(f"an event or row cannot be stored: {said}", hint="report it with the event's kind")
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return JournalBusy(
            f"another program holds the database of journal `{database}`",
            hint="close it: only Amends may open this file",
        )
    if (
        primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
        or isinstance(error, UnicodeDecodeError)
        or "decode to UTF-8" in said
    ):
        return CorruptLedger(
            f"journal `{database}` is damaged: {said}",
            hint="run `amends ledger verify`, then restore a backup",
            location=str(database),
        )
    what, remedy = _UNAVAILABLE.get(primary, ("does not answer", "check the disk; the journal goes on by itself"))
    return JournalUnavailable(f"journal `{database}` {what}: {said}", hint=remedy, location=str(database))


_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: ("has no space left", "free space on its disk; the journal goes on by itself"),
    sqlite3.SQLITE_READONLY: ("is read-only", "make the file and its folder writable for this user"),
    sqlite3.SQLITE_PERM: ("may not be opened", "make the file and its folder writable for this user"),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "check that its folder exists and that this user may read and write it",
    ),
}
