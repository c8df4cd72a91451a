"""Lock files in the checkout: our own are signed, a killed git's are named; only a proven dead owner's are removed.

Our locks hold the boot, process and start time of who made them, so their owner's death can be proven exactly. Git's
own locks say nothing about their maker. Such a lock counts as left behind only where the section says `exclusive`
(every process that uses the checkout can be seen from here), and no process older than the lock is called git, works in
the checkout, holds one of its files open, or hides from us.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from amends.spi import Refused

_PROC = Path("/proc")
_SIGNATURE = "amends-lock"
_SLACK_SECONDS = 2.0  # the kernel counts starts in ticks from a boot time it rounds


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a lock file's owner. `dead` only if proven; `why` in words, without a path."""

    dead: bool
    why: str


def clear(paths: Iterable[Path], *, inside: Path, exclusive: bool) -> None:
    """Remove the locks among `paths` whose owners are proven dead. Raises `Refused` (may be sent again) naming the
    file and what is known about its owner for any other. `inside`: the folder that its owner would work in.
    """
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _locked(path, f"it cannot be read: {error.strerror}") from error
        with contextlib.closing(os.fdopen(descriptor, "rb")) as file:
            verdict = _verdict(file.read(200), os.fstat(descriptor).st_ctime, inside, exclusive=exclusive)
            if not verdict.dead:
                raise _locked(path, verdict.why)
            _remove(path, descriptor)


@contextlib.contextmanager
def hold(path: Path) -> Generator[None]:
    """Hold a lock of our own; released at the end unless it was renamed into place. Raises `Refused` if it is held."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError as error:
        raise _locked(path, "it was made a moment ago") from error
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_SIGNATURE} {_world()} {os.getpid()} {_started(os.getpid())}\n")
        yield
    finally:
        path.unlink(missing_ok=True)


def _locked(path: Path, why: str) -> Refused:
    return Refused(f"`{path}` is in the way: {why}; if no git runs there, remove it", code="locked", again=True)


def _remove(path: Path, descriptor: int) -> None:
    """Remove exactly the file that was judged: two who judged the same one never remove a third one's."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            path.unlink()


def _verdict(head: bytes, made_at: float, inside: Path, *, exclusive: bool) -> Verdict:
    match head.decode("ascii", "replace").split():
        case [signature, world, process, started] if signature == _SIGNATURE and process.isdigit():
            if world != _world():
                return Verdict(exclusive, f"process {process} of another host, boot or container made it")
            return Verdict(_started(int(process)) != started, f"process {process} holds it")
        case _ if not exclusive:
            return Verdict(dead=False, why="git does not say whose it is")
        case _:
            owner = _possible_owner(made_at, inside)
            return Verdict(not owner, owner)


def _possible_owner(made_at: float, inside: Path) -> str:
    """A living process that may have made a lock at `made_at`, in words; empty if there is provably none."""
    try:
        boot_at = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
        processes = [int(folder.name) for folder in _PROC.iterdir() if folder.name.isdigit()]
    except (OSError, AttributeError):
        return "processes cannot be listed here"
    if 1 not in processes:
        return "processes of others are hidden here"
    for process in processes:
        if process != os.getpid() and (reason := _suspect(process, made_at - boot_at, inside)):
            return f"process {process} {reason}"
    return ""


def _suspect(process: int, made_after_boot: float, inside: Path) -> str:
    folder = _PROC / str(process)
    started = _started(process)
    if not started or int(started) / os.sysconf("SC_CLK_TCK") > made_after_boot + _SLACK_SECONDS:
        return ""  # gone, a zombie, or younger than the lock
    try:
        if (folder / "comm").read_text(encoding="utf-8", errors="replace").startswith("git"):
            return "is a git that was there before it"
        held = [folder / "cwd", *(folder / "fd").iterdir()]
    except FileNotFoundError:
        return ""
    except OSError:
        return "cannot be looked into"
    return "works in the checkout" if any(_leads(link, inside) for link in held) else ""


def _leads(link: Path, inside: Path) -> bool:
    try:
        return link.readlink().is_relative_to(inside)
    except OSError:
        return False


def _started(process: int) -> str:
    """When a living process started, in ticks since boot; empty if it is gone or a zombie."""
    try:
        fields = (
            (_PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _world() -> str:
    """Where process numbers mean something: this boot, and this container of it."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return "unknown"
