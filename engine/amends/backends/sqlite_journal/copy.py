"""Backup: a whole copy of the journal, taken while in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from amends.backends.sqlite_journal.reader import info
from amends.core.errors import InvalidInput
from amends.ports.journal import JournalInfo


def copy_to(source: sqlite3.Connection, path: Path, generation: str) -> JournalInfo:
    """One consistent file at `path` that no crash leaves half-written, with its own generation.

    Raises `InvalidInput` if `path` or `path`.part is there already, `sqlite3.Error` or `OSError` if it cannot be
    written; nothing is left at `path` then.
    """
    part = path.with_name(path.name + ".part")
    for taken in (path, part):
        if taken.exists():
            raise InvalidInput(f"`{taken}` exists already", hint="name a new file, or remove this one")
    try:
        with closing(sqlite3.connect(part, isolation_level=None)) as target:
            source.backup(target)  # all pages in one step: one read transaction, one moment
            target.execute("PRAGMA journal_mode=DELETE")  # one file, no log beside it
            target.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (generation,))
            copied = info(target, str(path))
        _sync(part)
        os.link(part, path)  # unlike a rename it never replaces what somebody put there meanwhile
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)
    return copied


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
