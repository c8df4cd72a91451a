"""The checkout's worktree: what it shows, put down as trees, and how it is made to show something else.

Only paths of the trees concerned are looked at and written, tracked or not, ignored or not; nothing else in the folder
is touched. Everything runs over a private index and the private repository, so neither hooks, filters nor configuration
of the checkout take part; its own index is replaced whole, under git's own lock protocol.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from amends.spi import NotSent, Refused
from amends.spi.process import Ended
from amends_git import locks
from amends_git.command import GitFailed, excerpt
from amends_git.workspace import Workspace, git_folder

_CONVERSIONS = ["core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase"]
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_NOTHING_WRITTEN = ("not uptodate", "would be overwritten")  # git looks at every path before it writes the first
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class State:
    """What a checkout shows: `head` is a full branch name or, detached, the commit; `index` and `files` are trees."""

    head: str
    commit: str
    index: str
    files: str

    def facts(self) -> dict[str, str]:
        """As it is recorded."""
        return {"head": self.head, "commit": self.commit, "index": self.index, "files": self.files}


class Worktree:
    """The worktree of one workspace's checkout. Raises `Refused` if it has none, or one that cannot be handled."""

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.root = Path(work.repository.checkout).resolve()
        self.git_dir = git_folder(work.repository, work.git)
        if not (self.root / ".git").exists() or not self.git_dir:
            raise Refused(f"there is no worktree at `{self.root}`", code="no_worktree")
        self._git = work.git.with_environment({"GIT_WORK_TREE": str(self.root)})
        self._index = str(Path(work.git_dir) / "worktree-index")
        self._take_settings()

    def state(self, paths: Iterable[str]) -> State:
        """What is shown now, as to `paths` and what the index has. Raises `Refused`, `GitFailed`."""
        head, commit = self._head()
        index = self.index_tree()
        listed = "".join(f"{path}\0" for path in sorted({*paths, *self.paths(index)}))
        self._run("update-index", "--add", "--remove", "-z", "--stdin", stdin=listed.encode())
        return State(head, commit, index, self._run("write-tree"))

    def index_tree(self) -> str:
        """The tree of the checkout's index. Raises `Refused` where it is in the middle of something."""
        for name in _UNDER_WAY:
            if (Path(self.git_dir) / name).exists():
                raise Refused(f"the checkout is in the middle of something (`{name}`)", code="under_way")
        source = Path(self.git_dir) / "index"
        if source.exists():
            shutil.copy2(source, self._index)  # with its time: git tells by it which entries it must read again
        flags = {row[:1] for row in self._run("ls-files", "-v", "-z").split("\0") if row}
        if any(flag == "S" or flag.islower() for flag in flags):
            raise Refused("some paths are hidden from git (sparse or assume-unchanged)", code="hidden_paths")
        if self._run("ls-files", "--unmerged"):
            raise Refused("the index holds conflicts", code="under_way")
        return self._run("write-tree")

    def paths(self, tree: str) -> set[str]:
        """Every path of a tree."""
        return {path for path in self.work.run("ls-tree", "-r", "-z", "--name-only", tree).split("\0") if path}

    def differing(self, one: str, other: str) -> set[str]:
        """The paths at which two trees differ."""
        listed = self.work.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
        return {path for path in listed.split("\0") if path}

    def require_room(self, target: str, index: str) -> None:
        """Raise `Refused` if a folder or file that git does not know stands where `target` needs the other kind."""
        known = self.paths(index)
        for path in self.paths(target) - known:
            place = self.root / path
            if place.is_dir() and not place.is_symlink():
                raise Refused(f"the folder `{path}` is in the way", code="in_the_way")
            for parent in place.relative_to(self.root).parents:
                above = self.root / parent
                if (above.is_file() or above.is_symlink()) and str(parent) not in known:
                    raise Refused(f"the file `{parent}` is in the way", code="in_the_way")

    def require_lossless(self, tree: str, paths: Iterable[str]) -> None:
        """Raise `Refused` if a file of `paths` would not come back from `tree` byte for byte (line ends, filters)."""
        for path in sorted(paths):
            place = self.root / path
            if place.is_symlink() or not place.is_file():
                continue
            ended = self._git.ask(
                "cat-file", "--filters", f"{tree}:{path}", git_dir=self.work.git_dir, index=self._index
            )
            if ended.returncode != 0 or ended.stdout != place.read_bytes():
                raise Refused(f"`{path}` would not come back as it is (line ends, a filter)", code="not_lossless")

    def show(self, now: State, to: State, action_id: str) -> None:
        """Make the worktree, which shows `now` as `state` has just found it, show `to`. Raises `Refused` if the index
        is locked, `NotSent` if a file changed in between; files somebody changes meanwhile are never written over.
        """
        index = Path(self.git_dir) / "index"
        in_the_way = [Path(f"{index}.lock"), Path(self.git_dir) / "HEAD.lock"]
        locks.clear(in_the_way, inside=self.root, exclusive=self.work.repository.exclusive)
        with locks.hold(in_the_way[0]):
            ended = self._ask("read-tree", "-m", "-u", now.files, to.files)
            if ended.returncode != 0 and any(word in ended.err for word in _NOTHING_WRITTEN):
                raise NotSent(f"somebody works in the worktree: {excerpt(ended)}", code="changed_meanwhile")
            if ended.returncode != 0:
                raise GitFailed(f"git read-tree: {excerpt(ended)}")
            self._run("read-tree", "-m", to.index)
            self._ask("update-index", "-q", "--refresh")
            fresh = index.with_name("index.amends")
            shutil.copyfile(self._index, fresh)
            os.replace(fresh, index)  # noqa: PTH105 - atomic, as git itself does it
        if self._head() != (to.head, to.commit):
            self._point(to, action_id)

    def is_at(self, branch: str) -> bool:
        """True if this very worktree shows the branch."""
        return self._head()[0] == branch

    def resolve(self, head: str) -> str:
        """The commit of a branch of the checkout, or of a commit id; empty if it is not there."""
        ended = self.work.git.ask("rev-parse", "--verify", "--quiet", f"{head}^{{commit}}", git_dir=self.git_dir)
        return ended.out.strip() if ended.returncode == 0 else ""

    def _head(self) -> tuple[str, str]:
        ended = self.work.git.ask("symbolic-ref", "--quiet", "HEAD", git_dir=self.git_dir)
        commit = self.resolve("HEAD")
        return (ended.out.strip() if ended.returncode == 0 else commit), commit

    def _point(self, to: State, action_id: str) -> None:
        note = ("-m", f"amends {action_id}")
        if to.head == to.commit:
            self.work.git.tell("update-ref", "--no-deref", *note, "HEAD", to.commit, git_dir=self.git_dir)
        else:
            self.work.git.tell("symbolic-ref", *note, "HEAD", to.head, git_dir=self.git_dir)

    def _take_settings(self) -> None:
        """How this checkout writes files, and which it ignores: values only, nothing that would be run."""
        lines: list[str] = []
        for name in _CONVERSIONS:
            ended = self.work.git.ask("config", "--get", name, git_dir=self.git_dir)
            if ended.returncode == 0 and ended.out.strip().isalnum():
                lines.append(f"[core]\n\t{name.removeprefix('core.')} = {ended.out.strip()}\n")
        with (Path(self.work.git_dir) / "config").open("a", encoding="utf-8") as config:
            config.write("".join(lines))

    def _run(self, *args: str, stdin: bytes = b"") -> str:
        return self._git.tell(*args, git_dir=self.work.git_dir, stdin=stdin, index=self._index)

    def _ask(self, *args: str) -> Ended:
        return self._git.ask(*args, git_dir=self.work.git_dir, index=self._index)


def few(paths: Iterable[str]) -> str:
    """Some paths, for a text."""
    ordered = sorted(paths)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(f"`{path}`" for path in ordered[:_SHOWN]) + more
