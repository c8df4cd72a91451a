"""Owner files: proof of life and death of the processes of this host (rule 12).

Each process holds a flock on a file of its own. The descriptor is inherited by the child processes of adapters, so
the lock is free only when the process *and* everything it started is gone: until then a child may still send.
Only a file that is there and free is a proof; a missing file proves nothing.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from pathlib import Path

from amends.core.errors import CallerError, ConfigError
from amends.core.events import Holder
from amends.ports.services import Clock, Ids

_SUFFIX = ".owner"
_KEPT_US = 7 * 24 * 3600 * 1_000_000  # far past any lease and call deadline: nobody needs the proof any more


class OwnerFiles:
    """`amends.ports.services.Owners` by flocked files in `folder`, on a local disk. What a file says (host, pid) is
    for people; its lock is what counts. Raises `ConfigError` if the folder cannot be used.
    """

    def __init__(self, folder: Path, clock: Clock, ids: Ids, *, host: str = "") -> None:
        self._folder = folder.absolute()
        self._closing = threading.Lock()
        owner_id = ids.new()
        path = self._folder / f"{owner_id}{_SUFFIX}"
        self._me = Holder(owner_id=owner_id, host=host or socket.gethostname(), pid=os.getpid(), owner_file=str(path))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = _locked_new_file(path, f"{self._me.host} {self._me.pid}\n")
            self._remove_stale(clock.now_us())
        except OSError as error:
            raise ConfigError(
                f"owner files cannot be kept in `{folder}`: {error.strerror}",
                hint="use a folder on a local disk that this user may write",
            ) from error

    def me(self) -> Holder:
        if os.getpid() != self._me.pid:
            raise CallerError(
                f"the engine belongs to process `{self._me.pid}`, and this is a forked child of it",
                hint="fork before opening the engine, or start the child with `spawn`",
                pid=self._me.pid,
            )
        return self._me

    def proven_dead(self, holder: Holder) -> bool:
        me = self.me()
        if holder.host != me.host or holder.owner_id == me.owner_id:
            return False
        return _is_free(self._folder / Path(holder.owner_file).name)

    def orphaned(self, holder: Holder) -> bool:
        if holder.host != self.me().host or self.proven_dead(holder):
            return False
        try:
            os.kill(holder.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def close(self) -> None:
        """Let go: this owner counts as dead as soon as no child process holds the lock either. Idempotent."""
        with self._closing:
            fd, self._fd = self._fd, -1
        if fd >= 0 and os.getpid() == self._me.pid:
            os.close(fd)

    def _remove_stale(self, now_us: int) -> None:
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if _age_us(path, now_us) > _KEPT_US and _is_free(path):
                path.unlink(missing_ok=True)


def _locked_new_file(path: Path, text: str) -> int:
    """An inheritable descriptor of a new file that nobody ever sees unlocked: locked first, then given its name."""
    hidden = path.with_name(f".{path.name}")
    fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, text.encode())
        hidden.rename(path)
        os.set_inheritable(fd, True)  # noqa: FBT003 — the standard library's signature
    except BaseException:
        os.close(fd)
        hidden.unlink(missing_ok=True)
        raise
    return fd


def _is_free(path: Path) -> bool:
    """True if the file is there and nobody holds its lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look at once do not see each other
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _age_us(path: Path, now_us: int) -> int:
    try:
        return now_us - path.stat().st_mtime_ns // 1000
    except FileNotFoundError:
        return 0
