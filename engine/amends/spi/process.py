"""Child processes of adapters: each in its own session, killed as a group, never half-alive unnoticed.

A time limit kills the whole group. Whatever the child started may still be at work elsewhere, so a limit is
`TimeLimit`, which the engine reads as unknown; it is never proof that nothing happened. Children inherit the
engine's owner lock (a file descriptor marked inheritable), so that a dead engine with a living child is not yet
"proven dead" (rule 12). A child that changes nothing outside does not take it (`keeps_owner=False`): nobody has
to wait for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.01


class TimeLimit(TimeoutError):
    """The child did not end in time and its group was killed. `group_gone`: no process of the group is left; one
    that left the group (double fork) cannot be excluded even then.
    """

    def __init__(self, detail: str, *, group_gone: bool) -> None:
        super().__init__(detail)
        self.group_gone = group_gone


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that ended by itself. `returncode` is negative for a signal; texts are UTF-8 with replacements."""

    returncode: int  # as the shell's `$?`; negative: the signal
    stdout: bytes  # all of it
    stderr: bytes  # all of it

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")


class Budget:
    """Seconds that may still be spent, counted on a clock that never goes back."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self, *, reserve_seconds: float = 0.0) -> float:
        """Seconds left less the reserve, never below zero."""
        return max(0.0, self._end - time.monotonic() - reserve_seconds)


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stderr: IO[bytes] | None = None,
    keeps_owner: bool = True,
) -> subprocess.Popen[bytes]:
    """Start `argv` (no shell) as the leader of a new session, with pipes for what is not given. Raises `OSError` if it
    cannot.
    """
    return subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if stderr is None else stderr,
        start_new_session=True,
        close_fds=not keeps_owner,  # Python marks its own descriptors non-inheritable: only the owner lock passes
    )


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_seconds: float,
    stdin: bytes = b"",
    cwd: str | None = None,
    keeps_owner: bool = True,
) -> Ended:
    """Run `argv` (no shell) to its end. Raises `TimeLimit` after killing its group, `OSError` if it cannot start.

    A child that ends but leaves others holding its output counts as running until they end or the limit comes.
    """
    child = start(argv, env=env, cwd=cwd, keeps_owner=keeps_owner)
    try:
        stdout, stderr = child.communicate(stdin, timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        gone = end_group(child)
        raise TimeLimit(f"`{argv[0]}` ran longer than {timeout_seconds:g} s", group_gone=gone) from None
    except BaseException:
        end_group(child)
        raise
    return Ended(child.returncode, stdout, stderr)


def end_group(child: subprocess.Popen[bytes]) -> bool:
    """Kill every process of the child's group and wait for it. True if the group is provably empty."""
    _kill(child.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    budget = Budget(_GRACE_SECONDS)
    while _alive(child.pid):
        if budget.remaining() == 0:
            return False
        _kill(child.pid)
        time.sleep(_POLL_SECONDS)
    return True


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _alive(group: int) -> bool:
    """True if a process of the group can still act. A zombie nobody reaps (a container without an init) cannot."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    listing = Path("/proc")
    if not (listing / "self" / "stat").exists():
        return True
    return any(_acts_in(group, folder / "stat") for folder in listing.iterdir() if folder.name.isdigit())


def _acts_in(group: int, stat: Path) -> bool:
    try:
        state, _, process_group = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False  # it ended while we looked
    return int(process_group) == group and state not in {"Z", "X"}
