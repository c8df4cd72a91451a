"""Backup and restore of a storage folder: journal, sealed files and digest key. The DuckDB ledger is made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from amends.backends import digest_key
from amends.backends.sqlite_journal import DATABASE_NAME, SqliteJournal
from amends.core.errors import Conflict, CorruptLedger, InvalidInput, SystemUnavailable
from amends.ports.archive import Archive
from amends.ports.journal import Journal, JournalInfo
from amends.ports.services import Clock, Ids

ArchiveOf = Callable[[Path], Archive]  # of a storage folder


def back_up(journal: Journal, storage: Path, folder: Path, archive_of: ArchiveOf) -> JournalInfo:
    """Copy the journal, while it is in use, its sealed files and its digest key into `folder`, which must not exist.

    Raises `InvalidInput` if it does, `CorruptLedger` if a sealed file is not what was sealed.
    """
    if folder.exists():
        raise InvalidInput(f"`{folder}` exists already", hint="name a new folder: a backup is never overwritten")
    folder.mkdir(mode=0o700, parents=True)
    copied = journal.backup(str(folder / DATABASE_NAME))
    archive_of(storage).copy_to(journal.seals(), str(folder))  # asked later: all that the copied journal names, or more
    shutil.copy2(storage / digest_key.FILE_NAME, folder / digest_key.FILE_NAME)
    return copied


def restore(
    folder: Path,
    storage: Path,
    archive_of: ArchiveOf,
    differences: Callable[[Journal], Iterable[str]],
    *,
    clock: Clock,
    ids: Ids,
) -> JournalInfo:
    """Make `storage`, which must be empty or not there, from a backup. It appears whole and verified, or not at all;
    its journal has a generation of its own.

    Raises `Conflict` if something is in `storage`, `InvalidInput` if `folder` is no backup, `CorruptLedger` if the
    backup is not sound, `ConfigError` if its format is another one.
    """
    if storage.exists() and any(storage.iterdir()):
        raise Conflict(f"`{storage}` is not empty", hint="move it away first: a journal is never overwritten")
    for name in (DATABASE_NAME, digest_key.FILE_NAME):
        if not (folder / name).is_file():
            raise InvalidInput(f"`{folder}` is no backup: it has no `{name}`", hint="name what `ledger backup` made")
    staging = storage.with_name(f"{storage.name}.restoring")
    shutil.rmtree(staging, ignore_errors=True)  # of a restore that was killed
    try:
        staging.mkdir(mode=0o700, parents=True)
        restored = _taken(folder, staging, archive_of, differences, clock, ids)
        _sync(staging)
        staging.replace(storage)
        _sync(storage.parent)
    except OSError as error:
        raise SystemUnavailable(f"`{storage}` cannot be restored: {error}", hint="check the disk") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return restored


def _taken(
    folder: Path,
    staging: Path,
    archive_of: ArchiveOf,
    differences: Callable[[Journal], Iterable[str]],
    clock: Clock,
    ids: Ids,
) -> JournalInfo:
    SqliteJournal.copy(folder / DATABASE_NAME, staging / DATABASE_NAME, ids)
    shutil.copy2(folder / digest_key.FILE_NAME, staging / digest_key.FILE_NAME)
    with closing(SqliteJournal.open(staging, clock=clock, ids=ids)) as journal:
        problems = [*journal.verify(), *archive_of(folder).problems(journal.seals())]
        problems = problems or [*differences(journal)]
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise CorruptLedger(
                f"backup `{folder}` is not sound: {problems[0]}{more}", hint="use an older backup", problems=problems
            )
        archive_of(folder).copy_to(journal.seals(), str(staging))
        return journal.info()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
