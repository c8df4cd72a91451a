"""Branches and tags of the remote: made, removed, and put back."""

from __future__ import annotations

from amends.spi import Call, Json, Question, Refused
from amends_git import arguments, objects
from amends_git.command import GitFailed
from amends_git.images import ACTION, Image
from amends_git.refs import RemoteRef, require_same
from amends_git.workspace import Workspace


class CreateBranch(RemoteRef[arguments.CreateBranch]):
    """A branch on the remote at an explicit commit; the lease says that no such branch exists."""

    model = arguments.CreateBranch

    def ref(self, args: arguments.CreateBranch) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.CreateBranch, before: str, question: Question) -> dict[str, Json]:
        if before:
            raise Refused(f"branch `{args.branch}` exists already, at {before}", code="exists")
        base = args.base or work.repository.base
        commit = work.remote_value(f"refs/heads/{base}") or (base if arguments.is_commit_id(base) else "")
        if not commit:
            raise Refused(f"the remote has no branch `{base}` to start from", code="no_base")
        return {"commit": commit}


class DeleteBranch(RemoteRef[arguments.DeleteBranch]):
    """A branch removed from the remote; what it pointed to is kept in the checkout first, if there is one."""

    model = arguments.DeleteBranch

    def ref(self, args: arguments.DeleteBranch) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.DeleteBranch, before: str, question: Question) -> dict[str, Json]:
        if not before:
            raise Refused(f"the remote has no branch `{args.branch}`", code="no_branch")
        return {"commit": ""}

    def supply(self, work: Workspace, args: arguments.DeleteBranch, image: Image, call: Call) -> None:
        if work.checkout_dir:
            work.bring(image.before, history=True)
            work.keep(image.before, f"refs/amends/backup/{call.action_id}")


class Tag(RemoteRef[arguments.Tag]):
    """An annotated tag that names the action, so that nobody else's tag can be taken for it."""

    model = arguments.Tag

    def ref(self, args: arguments.Tag) -> str:
        return f"refs/tags/{args.name}"

    def branch(self, args: arguments.Tag) -> str:
        return ""

    def intend(self, work: Workspace, args: arguments.Tag, before: str, question: Question) -> dict[str, Json]:
        if before:
            raise Refused(f"tag `{args.name}` exists already, at {before}", code="exists")
        date = objects.date_now(work)
        return {"commit": self._make(work, args, question.marker, date), "date": date, "marker": question.marker}

    def content(self, work: Workspace, args: arguments.Tag, made: str) -> str:
        return args.commit

    def supply(self, work: Workspace, args: arguments.Tag, image: Image, call: Call) -> None:
        made = self._make(work, args, str(call.allocated["marker"]), str(call.allocated["date"]))
        require_same(made, image.intended)

    def _make(self, work: Workspace, args: arguments.Tag, marker: str, date: str) -> str:
        try:
            work.bring(args.commit, history=False)
        except GitFailed as error:
            raise Refused(f"commit {args.commit} is nowhere to be had: {error}", code="no_commit") from error
        message = objects.marked(work, args.message, {ACTION: marker})
        return objects.tag(work, name=args.name, target=args.commit, message=message, date=date)
