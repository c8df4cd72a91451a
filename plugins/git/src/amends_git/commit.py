"""`git.commit`: given contents and worktree files as a commit on a local branch (see `local`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from amends.spi import Json, Refused
from amends_git import objects
from amends_git.arguments import Commit
from amends_git.images import ACTION
from amends_git.local import LocalBranch
from amends_git.objects import Content
from amends_git.options import Repository
from amends_git.workspace import Workspace


class CommitFiles(LocalBranch[Commit]):
    """See the module."""

    model = Commit

    def starts(self, args: Commit) -> tuple[str, ...]:
        return (args.branch, args.base) if args.base else (args.branch,)

    def settle(self, work: Workspace, args: Commit, parent: str) -> dict[str, Json]:
        return {}

    def build(self, work: Workspace, args: Commit, facts: Mapping[str, Json]) -> str:
        parent, date, marker = str(facts["parent"]), str(facts["date"]), str(facts["marker"])
        contents = {path: Content(None if text is None else text.encode()) for path, text in args.files.items()}
        contents |= {path: _from_worktree(work.repository, path) for path in args.paths}
        tree = objects.tree_with(work, parent, contents)
        if tree == objects.tree_of(work, parent):
            raise Refused("the contents equal what the branch has already", code="nothing_to_commit")
        message = objects.marked(work, args.message, {ACTION: marker})
        return objects.commit(work, tree=tree, parents=[parent], message=message, date=date)


def _from_worktree(repository: Repository, path: str) -> Content:
    root = Path(repository.checkout).resolve()
    place = root / path
    if place.parent.resolve() != place.parent or place.is_symlink():
        raise Refused(f"`{path}` is reached over a symbolic link", code="bad_path")
    try:
        return Content(place.read_bytes(), executable=bool(place.stat().st_mode & 0o100))
    except FileNotFoundError:
        return Content(None)
    except OSError as error:
        raise Refused(f"`{path}` cannot be read: {error.strerror}", code="bad_path") from error
