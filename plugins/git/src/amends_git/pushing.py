"""The one mutating request to a git remote: refs moved under explicit leases, judged by the remote alone.

Whatever git printed or returned, the refs are read again afterwards. Over http the transport may send a push twice and
report that the second one was rejected; the refs say which of the two counts (rule 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amends.spi import NotSent, Refused
from amends.spi.process import Ended, TimeLimit
from amends_git.command import GitFailed, excerpt
from amends_git.workspace import Unreadable, Workspace

_OPTIONS = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-recurse-submodules")
_NO_ATOMIC = "does not support --atomic"


@dataclass(frozen=True, slots=True)
class Move:
    """A ref of the remote that shall go from `old` to `new`; an empty id means "no such ref"."""

    ref: str
    new: str
    old: str


def push(work: Workspace, *moves: Move, still_wanted: Callable[[], bool]) -> None:
    """Make all `moves` in one push, or none: several go out as one atomic transaction.

    Returns only if the remote says that every ref is where it shall be. Raises `NotSent`, `Refused`, or anything else
    for "unknown".
    """
    try:
        now = work.remote_values([move.ref for move in moves])
    except Unreadable as error:
        raise NotSent(f"the remote cannot be read: {error}", code="remote_unreadable") from error
    if all(now[move.ref] == move.new for move in moves):
        return
    for move in moves:
        if now[move.ref] != move.old:
            raise Refused(f"`{move.ref}` is at {_at(now[move.ref])}, not at {_at(move.old)}", code="ref_moved")
    if not still_wanted():
        raise NotSent("no longer wanted", code="not_wanted")
    try:
        ended = work.git.ask("push", *_arguments(work, moves), git_dir=work.git_dir)
    except FileNotFoundError as error:
        raise NotSent(f"git cannot be started: {error}", code="no_git") from error
    except TimeLimit:
        if _arrived(work, moves):
            return
        raise
    _judge(work, moves, ended)


def _arguments(work: Workspace, moves: Sequence[Move]) -> list[str]:
    leases = [f"--force-with-lease={move.ref}:{move.old}" for move in moves]
    atomic = ["--atomic"] if len(moves) > 1 else []
    return [*_OPTIONS, *atomic, *leases, "--", work.repository.remote, *(f"{move.new}:{move.ref}" for move in moves)]


def _arrived(work: Workspace, moves: Sequence[Move]) -> bool:
    now = work.remote_values([move.ref for move in moves], last=True)
    return all(now[move.ref] == move.new for move in moves)


def _judge(work: Workspace, moves: Sequence[Move], ended: Ended) -> None:
    now = work.remote_values([move.ref for move in moves], last=True)
    if all(now[move.ref] == move.new for move in moves):
        return
    untouched = all(now[move.ref] == move.old for move in moves)
    said = [(move, _verdict(ended.out, move.ref)) for move in moves]
    for move, verdict in said:
        if verdict.startswith("[rejected]"):  # git compared, and sent no command
            raise Refused(f"`{move.ref}` is at {_at(now[move.ref])}: {verdict}", code="lease_refused")
    if untouched and _NO_ATOMIC in ended.err:  # git asked what the server can do, and sent no command
        raise Refused("the remote takes no atomic pushes, and nothing less is safe", code="no_atomic")
    once = not work.repository.remote.startswith(("http://", "https://"))  # over http a lost answer is sent again
    for move, verdict in said:
        if verdict.startswith("[remote rejected]") and (once or untouched):
            raise Refused(f"the remote refused `{move.ref}`: {verdict}; {excerpt(ended)}", code="remote_rejected")
    stands = ", ".join(f"`{move.ref}` is at {_at(now[move.ref])}, not at {_at(move.new)}" for move in moves)
    raise GitFailed(f"after the push {stands}: {excerpt(ended)}")


def _verdict(porcelain: str, ref: str) -> str:
    """Git's word about `ref`: `[rejected] (stale info)`, `[remote rejected] (…)`, or empty if it was not refused."""
    for line in porcelain.splitlines():
        flag, _, rest = line.partition("\t")
        refs, _, summary = rest.partition("\t")
        if flag == "!" and refs.endswith(f":{ref}"):
            return summary
    return ""


def _at(value: str) -> str:
    return value or "nothing"
