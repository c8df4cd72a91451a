"""Ports that are ours, and proof of who still lives: a lease is a locked file that a server inherits from its starter.

A lock goes with the last process that holds the file open, so it tells the truth whatever died and however: a lease
that can be locked again has no process left, and an owner file that can be locked has no test process left. Process
ids alone would not do, for they are used again.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from systems.catalog import HOME

_FOLDER = HOME / "run"
_PORTS = range(21000, 30000)  # below the ports that the kernel gives to clients
_PATIENCE_SECONDS = 5.0
_owner = (0, -1)  # this process and the open file that stands for it


@dataclass(slots=True)
class Lease:
    """A loopback port that no other test process takes."""

    port: int
    path: Path
    _file: int | None

    @classmethod
    def take(cls) -> Lease:
        """Lease a free port; raises OSError if there is none."""
        _stand_for_this_process()
        start = random.randrange(len(_PORTS))
        for port in [*_PORTS[start:], *_PORTS[:start]]:
            path = _FOLDER / f"{port}.lease"
            file = _lock(path)
            if file is None:
                continue
            if _is_free(port):
                return cls(port, path, file)
            os.close(file)
        raise OSError(f"no free port in {_PORTS}")

    @property
    def descriptor(self) -> int:
        """The open file that the server must inherit."""
        if self._file is None:
            raise ValueError(f"the lease of port {self.port} was handed over")
        return self._file

    def hand_over(self, name: str, pid: int, stop_signal: signal.Signals) -> None:
        """From now on the server's processes alone hold the lease."""
        facts = {"name": name, "pid": pid, "signal": int(stop_signal), "owner": os.getpid()}
        self.path.write_text(json.dumps(facts), encoding="utf-8")
        self.release()

    def release(self) -> None:
        """Let go of our own copy."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_held(self) -> bool:
        """Whether any process that inherited the lease still lives; to be asked after `hand_over`."""
        file = _lock(self.path)
        if file is None:
            return True
        os.close(file)
        return False


def sweep() -> Iterator[str]:
    """End every server whose test process is gone and yield its name and process id."""
    for path in sorted(_FOLDER.glob("*.lease")):
        lease = Lease(int(path.stem), path, None)
        if not lease.is_held():
            continue
        facts = json.loads(path.read_text(encoding="utf-8") or "{}")
        if not facts or _lives(facts["owner"]):
            continue
        for number in (facts["signal"], signal.SIGKILL):
            os.killpg(facts["pid"], number)
            if wait_until_free(lease, _PATIENCE_SECONDS):
                break
        yield f"{facts['name']} (process {facts['pid']})"


def wait_until_free(lease: Lease, seconds: float) -> bool:
    """Wait until no process holds the lease; False if one still does after that time."""
    until = time.monotonic() + seconds
    while lease.is_held():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _stand_for_this_process() -> None:
    global _owner  # noqa: PLW0603 - open for as long as this process lives
    if _owner[0] != os.getpid():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        file = _lock(_FOLDER / f"{os.getpid()}.owner")
        if file is None:
            raise OSError(f"another process holds the owner file of process {os.getpid()}")
        _owner = (os.getpid(), file)


def _lives(owner: int) -> bool:
    if owner == os.getpid():
        return True
    path = _FOLDER / f"{owner}.owner"
    file = _lock(path)
    if file is None:
        return True
    path.unlink()
    os.close(file)
    return False


def _lock(path: Path) -> int | None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
