"""The files of the mirror: generations behind a symlink, and the lock that lets one process refresh at a time.

`ledger.duckdb` points to `ledger.<n>.duckdb`. A new generation appears by one rename; who still reads the old one keeps
it, since an unlinked file lives until its last reader closes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from amends.core.errors import SystemUnavailable

_GENERATION = re.compile(r"ledger\.(\d+)\.duckdb")
_ASIDE = re.compile(r"ledger\.(\d+)\.aside\.duckdb")
_KEPT_ASIDE = 2
_POLL_SECONDS = 0.01


class Generations:
    """The ledger files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.link = folder / "ledger.duckdb"

    def current(self) -> Path | None:
        """The published file; `None` if there is none. A link that leads nowhere counts as none."""
        try:
            return self.link.resolve(strict=True)
        except (OSError, RuntimeError):  # missing, in a folder that is none, or a circle of links
            return None

    def fresh(self) -> Path:
        """A path for the next generation, with nothing at it."""
        taken = [int(found[1]) for name in self._names() if (found := _GENERATION.match(name) or _ASIDE.match(name))]
        return self._folder / f"ledger.{max(taken, default=0) + 1}.duckdb"

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file with what its last writer left in the write-ahead log. Nobody may be writing it."""
        shutil.copyfile(source, target)
        with suppress(FileNotFoundError):
            shutil.copyfile(_wal(source), _wal(target))

    def publish(self, path: Path) -> None:
        """Make `path` the ledger, atomically, and remove every other generation."""
        temporary = self._folder / "ledger.duckdb.new"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(path.name)
        temporary.replace(self.link)
        for name in self._names():
            if _GENERATION.fullmatch(name) and name != path.name:
                remove(self._folder / name)

    def set_aside(self, path: Path) -> Path:
        """Keep a doubtful file under another name, for a person to look at; only the last few are kept."""
        number = _GENERATION.fullmatch(path.name)
        stem = number[1] if number else self.fresh().name.split(".")[1]
        aside = self._folder / f"ledger.{stem}.aside.duckdb"
        path.rename(aside)
        with suppress(FileNotFoundError):
            _wal(path).rename(_wal(aside))
        kept = sorted((int(found[1]), name) for name in self._names() if (found := _ASIDE.fullmatch(name)))
        for _, name in kept[:-_KEPT_ASIDE]:
            remove(self._folder / name)
        return aside

    def _names(self) -> list[str]:
        return os.listdir(self._folder)  # noqa: PTH208 - names are all that is looked at


def remove(path: Path) -> None:
    """Remove a ledger file and its write-ahead log, if there."""
    path.unlink(missing_ok=True)
    _wal(path).unlink(missing_ok=True)


def signature(path: Path) -> tuple[int, int, int]:
    """Changes whenever the file does; all zero where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def exclusive_lock(path: Path, *, timeout_seconds: float, what: str, work: str) -> Generator[None]:
    """Hold the lock file `path`. Raises `SystemUnavailable` naming the holder after `timeout_seconds`, with `what` and
    `work` as the words for the lock and for what is done under it.

    A file of its own: opening and closing the database itself in a process that uses it would drop DuckDB's locks.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, timeout_seconds, what, work)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def mirror_lock(path: Path, *, timeout_seconds: float) -> AbstractContextManager[None]:
    """The lock of who refreshes the ledger file."""
    return exclusive_lock(path, timeout_seconds=timeout_seconds, what="mirror lock", work="refresh")


def _acquire(descriptor: int, path: Path, timeout_seconds: float, what: str, work: str) -> None:
    give_up = time.monotonic() + timeout_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                raise SystemUnavailable(
                    f"process `{pid}` has held the {what} `{path}` for more than {timeout_seconds:g} s",
                    hint=f"wait for its {work} to end, or end that process if it is frozen",
                    pid=pid,
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")
