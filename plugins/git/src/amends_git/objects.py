"""Commits and tags made with plumbing: no index, worktree, hook or configuration of a checkout takes part.

An object is built twice, before and after its intent is durable, with the same date: the same bytes, the same id.
The id is known before anything is sent, so a lost answer is settled by comparing ids.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from amends.spi import Refused
from amends_git.command import Git, GitFailed, excerpt
from amends_git.images import ACTION, REVERTS
from amends_git.workspace import Workspace

_REGULAR, _EXECUTABLE = "100644", "100755"


@dataclass(frozen=True, slots=True)
class Content:
    """One path's new content; `data=None` deletes it. `executable=None` keeps the mode it had."""

    data: bytes | None
    executable: bool | None = None


def date_now(work: Workspace) -> str:
    """Git's own idea of the present, as `1700000000 +0000`."""
    return " ".join(work.run("var", "GIT_COMMITTER_IDENT").rsplit(" ", 2)[1:])


def commit(work: Workspace, *, tree: str, parents: Sequence[str], message: str, date: str) -> str:
    """The id of a commit, written into the private repository."""
    args = [part for parent in parents for part in ("-p", parent)]
    return dated(work, date).run("commit-tree", tree, *args, "-F", "-", stdin=message.encode())


def tag(work: Workspace, *, name: str, target: str, message: str, date: str) -> str:
    """The id of an annotated tag of a commit."""
    author = work.repository
    head = f"object {target}\ntype commit\ntag {name}\ntagger {author.author_name} <{author.author_email}> {date}\n"
    return work.run("mktag", stdin=f"{head}\n{message}".encode())


def marked(work: Workspace, message: str, trailers: Mapping[str, str]) -> str:
    """`message` with trailers, joined to those it already has."""
    args = [part for name, value in trailers.items() for part in ("--trailer", f"{name}: {value}")]
    text = message.strip() + "\n"
    options = ("--if-exists=add", "--where=end", "--no-divider")
    return work.run("interpret-trailers", *options, *args, stdin=text.encode()) + "\n"


def tree_with(work: Workspace, parent: str, contents: Mapping[str, Content]) -> str:
    """The tree of `parent` with `contents` put in. Raises `Refused` for a path that git does not accept."""
    modes = _modes(work, parent, list(contents))
    with _index(work, parent) as index:
        for path, content in contents.items():
            mode, blob = "0", "0" * len(parent)
            if content.data is not None:
                mode = _mode(content, modes.get(path, ""))
                blob = work.run("hash-object", "-w", "--stdin", stdin=content.data)
            entry = f"{mode} {blob}\t{path}\0".encode()
            try:
                work.run("update-index", "-z", "--index-info", stdin=entry, index=index)
            except GitFailed as error:
                raise Refused(f"git does not accept the path `{path}`: {error}", code="bad_path") from error
        return work.run("write-tree", index=index)


def revert(work: Workspace, *, tip: str, newer: str, older: str, marker: str, date: str) -> str:
    """The id of a commit on `tip` that takes back what lies between `older` and `newer`.

    Raises `Refused` naming the paths if later work stands in its way, and if nothing is left to take back.
    """
    patch = work.git.ask("diff", "--binary", "--full-index", "--no-renames", newer, older, git_dir=work.git_dir)
    if patch.returncode != 0:
        raise GitFailed(f"git diff: {patch.err.strip()}")
    with _index(work, tip) as index:
        if patch.stdout:
            try:
                work.run("apply", "--cached", "--3way", "-", stdin=patch.stdout, index=index)
            except GitFailed as error:
                raise Refused(f"later work stands in the way of a revert: {error}", code="conflict") from error
        tree = work.run("write-tree", index=index)
    if tree == tree_of(work, tip):
        raise Refused(f"nothing of {newer} is left to take back", code="nothing_to_revert")
    subject = work.run("log", "-1", "--format=%s", newer)
    text = f'Revert "{subject}"\n\nThis takes back commit {newer}.'
    message = marked(work, text, {REVERTS: newer, ACTION: marker})
    return commit(work, tree=tree, parents=[tip], message=message, date=date)


def parent_of(work: Workspace, commit_id: str, mainline: int | None = None) -> str:
    """The parent that a revert goes back to. Raises `Refused` for a merge without `mainline`, a root, and a parent
    that is not there: what taking it back means is then a choice.
    """
    parents = work.run("rev-list", "--parents", "-n", "1", commit_id).split()[1:]
    if mainline is None and len(parents) == 1:
        return parents[0]
    if mainline is None or mainline > len(parents):
        hint = ": name the parent that stays in `mainline`" if len(parents) > 1 else ""
        raise Refused(f"{commit_id} has {len(parents)} parents, so it has no one inverse{hint}", code="no_one_inverse")
    return parents[mainline - 1]


def merged_tree(work: Workspace, ours: str, theirs: str) -> str:
    """The tree of a merge. Raises `Refused` naming the paths that conflict, `GitFailed` with a git before 2.38."""
    args = ("--write-tree", "--no-messages", "--name-only", ours, theirs)
    ended = work.git.ask("merge-tree", *args, git_dir=work.git_dir)
    lines = ended.out.splitlines()
    if ended.returncode == 0 and len(lines) == 1:
        return lines[0]
    if ended.returncode == 1 and lines:
        raise Refused(f"the merge conflicts in {', '.join(lines[1:][:10])}", code="conflict")
    raise GitFailed(f"git merge-tree (needs git 2.38): {excerpt(ended)}")


def tree_of(work: Workspace, commit_id: str) -> str:
    """The tree of a commit: what it holds, whoever made it and when."""
    return work.run("rev-parse", "--verify", f"{commit_id}^{{tree}}")


def dated(work: Workspace, date: str) -> Workspace:
    """The workspace with a fixed date for what it makes."""
    return replace(work, git=work.git.with_environment({"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}))


@contextmanager
def _index(work: Workspace, start: str) -> Generator[str]:
    """A temporary index filled with a commit's tree, in the private repository."""
    with tempfile.TemporaryDirectory(prefix="index-", dir=work.git_dir) as folder:
        path = str(Path(folder) / "index")
        work.run("read-tree", start, index=path)
        yield path


def _modes(work: Workspace, parent: str, paths: list[str]) -> dict[str, str]:
    listed = work.run("--literal-pathspecs", "ls-tree", "-r", "-z", parent, "--", *paths)
    rows = (row.partition("\t") for row in listed.split("\0") if row)
    return {path: facts.split(" ", 1)[0] for facts, _, path in rows}


def _mode(content: Content, earlier: str) -> str:
    if content.executable is not None:
        return _EXECUTABLE if content.executable else _REGULAR
    return earlier if earlier in {_REGULAR, _EXECUTABLE} else _REGULAR


def read_git(git: Git, git_dir: str, ref: str) -> str:
    """Where `ref` stands in a local repository; empty if there is none. Raises `GitFailed`."""
    found = git.tell("for-each-ref", "--format=%(objectname) %(refname)", "--", ref, git_dir=git_dir)
    for line in found.splitlines():
        value, _, name = line.partition(" ")
        if name == ref:
            return value
    return ""
