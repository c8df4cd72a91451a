"""The write lock: one flock that every writer of the journal, thread or process, waits for in turn.

SQLite's own busy polling lets a writer starve for half a second under load; the kernel's queue does not. The file
is never the database: closing a second descriptor of the database would drop SQLite's locks.

It also remembers how far the journal had come. SQLite takes a log that is missing or damaged for one that never was,
so acknowledged events would be gone without a word.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from amends.core.errors import JournalBusy
from amends.ports.services import Clock

_NOTE_BYTES = 64
_EXTENT_BYTES = 64
_POLL_SECONDS = 0.01


class WriteLock:
    """An exclusive lock on `path`. Not re-entrant; one thread at a time may take it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._fd = self._open()

    def acquire(self) -> None:
        """Wait in the kernel's queue, without bound. Raises `OSError` if the file system refuses."""
        while True:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if self._still_there():
                self._note()
                return

    def acquire_within(self, seconds: float) -> bool:
        """Like `acquire`, but give up after `seconds`; False then."""
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    return False
                time.sleep(_POLL_SECONDS)
                continue
            if self._still_there():
                self._note()
                return True

    def release(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def remember(self, generation: str, max_seq: int) -> None:
        """Note how far the journal has come, once that is durable. Only under the lock."""
        note = f"{generation} {max_seq}\n".ljust(_EXTENT_BYTES)
        with suppress(OSError):  # an older note is still true
            os.pwrite(self._fd, note.encode(), _NOTE_BYTES)

    def remembered(self) -> tuple[str, int]:
        """The generation of the journal that was here, and how far it had come at least; empty and 0 if unknown."""
        try:
            generation, max_seq = os.pread(self._fd, _EXTENT_BYTES, _NOTE_BYTES).split()
            return generation.decode(), int(max_seq)
        except (OSError, ValueError):
            return "", 0

    def busy(self, waited_seconds: float) -> JournalBusy:
        """The error that names the present holder."""
        pid, since_us = self._holder()
        return JournalBusy(
            f"process `{pid}` has held the journal's write lock `{self._path}` for more than {waited_seconds:g} s",
            hint=f"nothing was sent; if process {pid} is frozen, resume or end it, then try again",
            pid=pid,
            since_us=since_us,
        )

    def close(self) -> None:
        """Close the descriptor; the lock, if held, is released. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def forget(self) -> None:
        """In a forked child: let go of the descriptor, so that the child cannot keep a dead parent's lock."""
        with suppress(OSError):
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _still_there(self) -> bool:
        """False, with the lock let go and the file opened anew, if somebody removed or replaced the file."""
        mine = os.fstat(self._fd)
        with suppress(FileNotFoundError):
            there = self._path.stat()
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                return True
        self.close()
        self._fd = self._open()
        return False

    def _note(self) -> None:
        note = f"{os.getpid()} {self._clock.now_us()}\n".ljust(_NOTE_BYTES)
        with suppress(OSError):  # a full disk must not keep the lock from being used: the note is a courtesy
            os.pwrite(self._fd, note.encode(), 0)

    def _holder(self) -> tuple[int, int]:
        try:
            pid, since_us = os.pread(self._fd, _NOTE_BYTES, 0).split()
            return int(pid), int(since_us)
        except (OSError, ValueError):
            return 0, 0
