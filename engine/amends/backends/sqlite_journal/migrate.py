"""From one ledger format to the next. A migration changes tables and rows; events are read as they were written, for
ever (their hashes bind them), so `amends.core.events.decode` understands every format there ever was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from amends.backends.sqlite_journal.copy import copy_to
from amends.backends.sqlite_journal.lock import WriteLock
from amends.backends.sqlite_journal.schema import in_our_words, read_meta, writer_connection, wrong_format
from amends.core.errors import ConfigError
from amends.core.events import LEDGER_FORMAT
from amends.ports.services import Clock

Migration: TypeAlias = Callable[[sqlite3.Connection], None]

# Format n -> what makes it n + 1, inside a transaction of the caller. Format 1 is the first one.
MIGRATIONS: Mapping[int, Migration] = {}


def migrate(
    database: Path,
    lock_path: Path,
    *,
    clock: Clock,
    busy_seconds: float,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    to: int = LEDGER_FORMAT,
) -> tuple[int, int]:
    """Bring a journal that nobody uses to the format `to`; the formats it had and has. What it was stays beside it as
    `journal.format-<n>.sqlite`; each step is whole or not at all.

    Raises `ConfigError` for a format that is newer, unknown or of no known next one, `JournalBusy`,
    `JournalUnavailable`, and `InvalidInput` if the copy's name is taken.
    """
    try:
        lock = WriteLock(lock_path, clock)
        with closing(lock):
            if not lock.acquire_within(busy_seconds):
                raise lock.busy(busy_seconds)
            with closing(writer_connection(database)) as connection:
                return _migrated(connection, database, migrations, to)
    except (sqlite3.Error, OSError) as error:
        raise in_our_words(error, database) from error


def _migrated(
    connection: sqlite3.Connection, database: Path, migrations: Mapping[int, Migration], to: int
) -> tuple[int, int]:
    found = read_meta(connection, "format")
    if not found.isdecimal() or int(found) > to:
        raise wrong_format(database, found, to)
    before = int(found)
    missing = [step for step in range(before, to) if step not in migrations]
    if missing:
        raise ConfigError(
            f"nothing leads from ledger format `{missing[0]}` of journal `{database}` to the next",
            hint="migrate with the engine version that followed the one that wrote it",
            format=found,
        )
    if before < to:
        kept = database.with_name(f"{database.stem}.format-{before}{database.suffix}")
        copy_to(connection, kept, read_meta(connection, "generation"))
    for step in range(before, to):
        _step(connection, migrations[step], step + 1)
    return before, to


def _step(connection: sqlite3.Connection, migration: Migration, reached: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        migration(connection)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(reached),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
