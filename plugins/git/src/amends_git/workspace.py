"""A private, temporary repository for one call: it talks to the remote and borrows the checkout's objects.

The agent's checkout is never the place where git meets the network or a credential, its index and worktree are
never touched, and its leftover lock files stand in nobody's way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from amends.spi import Call, NotSent, Question
from amends.spi.process import Budget, TimeLimit
from amends_git.command import Git, GitFailed, environment, excerpt
from amends_git.options import Repository

_LAST_LOOK_SHARE = 0.2  # of a call's time is kept for the look at the remote after the push
_LAST_LOOK_SECONDS = 5.0


class Unreadable(Exception):
    """The remote or the checkout cannot be read now: nothing is known."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One call's repository. Ids are full object ids; an empty id means "no such ref"."""

    repository: Repository
    git: Git
    git_dir: str
    checkout_dir: str  # the checkout's git directory; empty if there is none

    def run(self, *args: str, stdin: bytes = b"", index: str = "") -> str:
        """Git in the private repository. Raises `GitFailed`."""
        return self.git.tell(*args, git_dir=self.git_dir, stdin=stdin, index=index)

    def remote_value(self, ref: str) -> str:
        """Where exactly `ref` stands on the remote. Raises `Unreadable` if the remote does not answer."""
        return self.remote_values([ref])[ref]

    def remote_values(self, refs: Sequence[str], *, last: bool = False) -> dict[str, str]:
        """Where exactly `refs` stand on the remote, read at one time; `last` uses the time kept for the last look."""
        reserve = 0.0 if last else None
        try:
            ended = self.git.ask(
                "ls-remote", "--", self.repository.remote, *refs, git_dir=self.git_dir, reserve_seconds=reserve
            )
        except (TimeLimit, OSError) as error:
            raise Unreadable(f"ls-remote: {error}") from error
        if ended.returncode != 0:
            raise Unreadable(f"ls-remote: {excerpt(ended)}")
        rows = (line.partition("\t") for line in ended.out.splitlines())
        found = {name: value for value, _, name in rows}  # a pattern also matches refs that merely end like it
        return {ref: found.get(ref, "") for ref in refs}

    def has(self, commit: str) -> bool:
        """True if the object is at hand, here or in the checkout."""
        return self.git.ask("cat-file", "-e", commit, git_dir=self.git_dir).returncode == 0

    def bring(self, commit: str, *, history: bool) -> None:
        """Fetch an object by id if it is not at hand. Raises `GitFailed` if the remote does not give it."""
        if commit and not self.has(commit):
            depth = () if history else ("--depth=1",)
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=")
            self.run("fetch", *options, *depth, "--", self.repository.remote, commit)

    def contains(self, tip: str, commit: str) -> bool:
        """True if `commit` is `tip` or one of its ancestors. Raises `GitFailed` if that cannot be told."""
        ended = self.git.ask("merge-base", "--is-ancestor", commit, tip, git_dir=self.git_dir)
        if ended.returncode in {0, 1}:
            return ended.returncode == 0
        raise GitFailed(f"git merge-base: {excerpt(ended)}")

    def keep(self, commit: str, ref: str) -> None:
        """Store `commit` with its history in the checkout, under `ref`. Raises `GitFailed`."""
        carried = "refs/amends/carried"
        self.run("update-ref", carried, commit)
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=")
        self.git.tell("fetch", *options, "--", self.git_dir, f"+{carried}:{ref}", git_dir=self.checkout_dir)


def workspace_of(repository: Repository, question: Question) -> AbstractContextManager[Workspace]:
    """The workspace of a question or call, bounded by its time."""
    marker = (question.undo_marker if isinstance(question, Call) else "") or question.marker
    return workspace(repository, timeout_seconds=question.timeout_seconds, secret=question.secret, marker=marker)


@contextmanager
def workspace(
    repository: Repository, *, timeout_seconds: float, secret: Callable[[str], str] | None, marker: str = ""
) -> Generator[Workspace]:
    """A workspace for one call, removed afterwards. `secret=None`: the remote is not spoken to with a credential.

    Raises `NotSent` if git is missing or the private repository cannot be made.
    """
    reserve = min(_LAST_LOOK_SECONDS, timeout_seconds * _LAST_LOOK_SHARE)
    git = Git(environment(repository, secret, marker), Budget(timeout_seconds), reserve_seconds=reserve)
    with tempfile.TemporaryDirectory(prefix="amends-git-") as folder:
        git_dir = str(Path(folder) / "work.git")
        try:
            git.tell("init", "--quiet", "--bare", "--template=", git_dir, git_dir=git_dir)
        except (OSError, GitFailed, TimeLimit) as error:
            raise NotSent(f"git does not work here: {error}", code="no_git") from error
        checkout_dir = checkout_of(repository, git)
        if checkout_dir:
            info = Path(git_dir) / "objects" / "info"
            info.mkdir(exist_ok=True)
            (info / "alternates").write_text(f"{checkout_dir}/objects\n", encoding="utf-8")
        yield Workspace(repository, git, git_dir, checkout_dir)


def checkout_of(repository: Repository, git: Git) -> str:
    """The git directory that holds the checkout's objects and refs; empty if there is no checkout."""
    return _asked(repository, git, "--git-common-dir")


def git_folder(repository: Repository, git: Git) -> str:
    """The git directory that holds this very worktree's index and HEAD; empty if there is no checkout."""
    return _asked(repository, git, "--git-dir")


def _asked(repository: Repository, git: Git, what: str) -> str:
    folder = Path(repository.checkout)
    if not repository.checkout or not folder.is_dir():
        return ""
    inner = folder / ".git"
    start = str(inner if inner.is_dir() else folder)
    if inner.is_file():  # a linked worktree or submodule: the file names the real place
        start = str((folder / inner.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve())
    ended = git.ask("rev-parse", "--path-format=absolute", what, git_dir=start)
    return ended.out.rstrip("\n") if ended.returncode == 0 else ""
