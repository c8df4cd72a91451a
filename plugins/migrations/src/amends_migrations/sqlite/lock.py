"""One migration at a time per database: a `flock` on a file beside it, held by the runner and gone with it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from amends_migrations.faults import Held

_POLL_SECONDS = 0.05


@contextmanager
def locked(file: Path, wait_seconds: float, marker: str) -> Generator[None]:
    """Hold the database's lock. Raises `Held` if it does not come free in time; it is never broken by age."""
    end = time.monotonic() + wait_seconds
    with _beside(file).open("a+", encoding="utf-8") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    lock.seek(0)
                    raise Held(f"another migration holds the lock: {lock.read().strip()}") from None
            time.sleep(_POLL_SECONDS)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} ({marker})\n")
        lock.flush()
        yield


def require_free(file: Path) -> None:
    """Raise `Held` if a migration runs now. Creates and changes nothing."""
    try:
        with _beside(file).open(encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Held(f"a migration is running: {lock.read().strip()}") from None
    except FileNotFoundError:
        return  # nobody ever migrated through us


def _beside(file: Path) -> Path:
    return Path(f"{file}.amends-lock")
