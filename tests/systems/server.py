"""`Server`: one process of an independent system: its own process group, a leased port, a log, a bounded wait."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from systems.catalog import HOME, Block
from systems.install import is_installed
from systems.leases import Lease, wait_until_free

_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02
_TAIL_CHARACTERS = 3000
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")  # a server's settings are ours, never the shell's


class NotInstalled(Exception):
    """A system that a test asks for is not there: names the command that brings it."""


class StartFailed(Exception):
    """A system did not become ready, or a process outlived it: the text shows the end of its log."""


def require(*needed: Block) -> None:
    """Raise NotInstalled unless all of them stand as their locks want them."""
    for block in needed:
        if not is_installed(block):
            raise NotInstalled(
                f"`{block.name}` is not installed from {block.lock.name}. `make test-real` installs every system, "
                f"`make test` those of the pip tier (this one belongs to: {block.tier})"
            )


@dataclass(slots=True)
class Server:
    """A running system at `127.0.0.1:port`; stop it with `stop` or by leaving its `with`."""

    name: str
    port: int
    log: Path
    process: subprocess.Popen[bytes]
    lease: Lease
    stop_signal: signal.Signals = signal.SIGTERM

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        lease: Lease,
        ready: Callable[[Server], object],
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_seconds: float = 40.0,
        stop_signal: signal.Signals = signal.SIGTERM,
        user: str | None = None,
    ) -> Server:
        """Start a process and wait until its port answers and `ready`, one real call, raises nothing.

        Raises StartFailed with the end of the log if it ends, or is not ready in time; nothing is left running then.
        """
        log = HOME / "logs" / f"{name}-{lease.port}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        scratch = HOME / "scratch"  # some systems write into the folder that they are started in
        scratch.mkdir(exist_ok=True)
        kept = {key: os.environ[key] for key in _INHERITED if key in os.environ}
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**kept, **(environment or {})},
                    cwd=cwd or scratch,
                    pass_fds=[lease.descriptor],
                    start_new_session=True,
                    user=user,
                    extra_groups=None if user is None else [],
                )
        except BaseException:
            lease.release()
            raise
        lease.hand_over(name, process.pid, stop_signal)
        server = cls(name, lease.port, log, process, lease, stop_signal)
        try:
            server._wait(ready, timeout_seconds)
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def pid(self) -> int:
        """The process, which leads its own group."""
        return self.process.pid

    @property
    def url(self) -> str:
        """Its address as the root of an HTTP service, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """End it and whatever it started; raises StartFailed if a process lives on even after SIGKILL."""
        for number in (self.stop_signal, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_SECONDS)
                if wait_until_free(self.lease, _STOP_SECONDS):
                    return
        raise StartFailed(f"{self.name} left a process behind:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARACTERS:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _wait(self, ready: Callable[[Server], object], timeout_seconds: float) -> None:
        until = time.monotonic() + timeout_seconds
        last: Exception | None = None
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise StartFailed(
                    f"{self.name} ended with {self.process.returncode} before it was ready:\n{self.tail()}"
                )
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                ready(self)
            except Exception as not_yet:  # noqa: BLE001 - whatever a system says while it starts up
                last = not_yet
                time.sleep(_POLL_SECONDS)
            else:
                return
        raise StartFailed(f"{self.name} was not ready after {timeout_seconds:g} s ({last!r}):\n{self.tail()}")
