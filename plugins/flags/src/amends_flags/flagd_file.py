"""A flagd JSON file: read whole, changed under an advisory lock, replaced in one step.

Readers (flagd itself, people) never see half a file: the new content is written beside it, synced, and renamed over it.
Writers that know the lock wait for each other; whoever writes without it is noticed immediately before the rename, and
then nothing is replaced. Indentation, order, mode and everything that is not ours are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from amends.spi import Json, NotSent
from amends.spi.http import Unreadable

_POLL_SECONDS = 0.02
_MAX_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class FlagFile:
    """The file at `path`; a symbolic link is followed, so that the link stays one."""

    path: Path

    def read(self) -> dict[str, Json]:
        """The whole document. Raises `Unreadable`."""
        return _parsed(self._bytes(), self.path)

    def change(
        self,
        edit: Callable[[dict[str, Json]], bool],
        *,
        timeout_seconds: float,
        still_wanted: Callable[[], bool],
    ) -> None:
        """Let `edit` change the document under the lock; it returns False if there is nothing to write.

        Raises `NotSent` as long as the file is as it was (and whatever `edit` raises); what goes wrong from the rename
        on is not known, and is raised as it is.
        """
        with self._locked(timeout_seconds):
            try:
                before = self._bytes()
                document = _parsed(before, self.path)
            except Unreadable as lost:
                raise NotSent(str(lost), code=lost.code) from None
            if not edit(document):
                return
            beside = self._write_beside(_rendered(document, before))
            try:
                self._last_look(before, still_wanted)
            except NotSent:
                beside.unlink()
                raise
            beside.rename(self._real)
        _sync_folder(self._real.parent)

    @property
    def _real(self) -> Path:
        return Path(os.path.realpath(self.path))

    def _bytes(self) -> bytes:
        try:
            content = self._real.read_bytes()
        except OSError as error:
            raise Unreadable(f"`{self.path.name}` cannot be read: {error.strerror}", code="unreadable") from None
        if len(content) > _MAX_BYTES:
            raise Unreadable(f"`{self.path.name}` has more than {_MAX_BYTES} bytes", code="too_large")
        return content

    def _write_beside(self, content: bytes) -> Path:
        """The new content, synced, under the one name that the lock's holder uses. Raises `NotSent`."""
        beside = self._real.with_name(f".{self._real.name}.amends-new")
        try:
            mode = self._real.stat().st_mode & 0o7777
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()  # left by a process that was killed
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as out:
                os.fchmod(handle, mode)
                out.write(content)
                out.flush()
                os.fsync(handle)
        except OSError as error:
            raise NotSent(f"`{self.path.name}` cannot be written: {error.strerror}", code="unwritable") from None
        return beside

    def _last_look(self, before: bytes, still_wanted: Callable[[], bool]) -> None:
        try:
            now = self._bytes()
        except Unreadable as lost:
            raise NotSent(str(lost), code=lost.code) from None
        if now != before:
            raise NotSent(f"`{self.path.name}` was changed by somebody without the lock", code="changed_meanwhile")
        if not still_wanted():
            raise NotSent("the change is no longer wanted", code="not_wanted")

    @contextlib.contextmanager
    def _locked(self, timeout_seconds: float) -> Generator[None]:
        """Hold the lock on the side file: the file itself is replaced, so a lock on it would be nobody's."""
        until = time.monotonic() + timeout_seconds
        try:
            handle = os.open(self._real.with_name(f"{self._real.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            text = f"the lock beside `{self.path.name}` cannot be opened: {error.strerror}"
            raise NotSent(text, code="unwritable") from None
        try:
            while not _acquired(handle):
                if time.monotonic() >= until:
                    raise NotSent(f"`{self.path.name}` is locked by another process", code="locked")
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)


def fingerprint(value: Json) -> str:
    """A digest of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def _acquired(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parsed(content: bytes, path: Path) -> dict[str, Json]:
    try:
        value: Json = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"`{path.name}` is not the JSON that flagd reads: {error}", code="undecodable") from None
    if not isinstance(value, dict) or not isinstance(value.get("flags"), dict):
        raise Unreadable(f"`{path.name}` has no object `flags`", code="undecodable")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object. A key that stands twice would be lost by writing: refused."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(f"`{name}` is no JSON number")


def _rendered(document: dict[str, Json], before: bytes) -> bytes:
    """The document as it was laid out before."""
    indent = re.search(rb"\{[ \t]*\r?\n([ \t]+)", before)
    layout = cast("str | None", indent[1].decode() if indent else None)
    text = json.dumps(document, ensure_ascii=False, indent=layout)
    return (text + ("\n" if before.endswith(b"\n") else "")).encode()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
