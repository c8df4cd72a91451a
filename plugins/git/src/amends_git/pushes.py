"""Branches of the remote moved to other commits: forward, by a revert, or by force with a backup."""

from __future__ import annotations

from amends.spi import Call, Json, Observation, Question, Refused
from amends_git import arguments, objects
from amends_git.command import GitFailed
from amends_git.images import Image, observe
from amends_git.pushing import Move
from amends_git.refs import RemoteRef, require_same
from amends_git.workspace import Workspace


class Push(RemoteRef[arguments.Push]):
    """A branch of the remote moved forward to a commit of the checkout. There is no force."""

    model = arguments.Push

    def ref(self, args: arguments.Push) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.Push, before: str, question: Question) -> dict[str, Json]:
        try:
            work.bring(args.commit, history=True)
        except GitFailed as error:
            raise Refused(f"commit {args.commit} is not in the checkout: {error}", code="no_commit") from error
        if before and before != args.commit:
            work.bring(before, history=True)
            if not work.contains(args.commit, before):
                raise Refused(
                    f"`{args.branch}` is at {before}, which {args.commit} does not build on", code="not_fast_forward"
                )
        return {"commit": args.commit}

    def supply(self, work: Workspace, args: arguments.Push, image: Image, call: Call) -> None:
        work.bring(image.intended, history=True)


class ForcePush(RemoteRef[arguments.ForcePush]):
    """A branch of the remote moved to a commit that does not build on what was there. What is replaced is named by the
    caller, and kept on the remote under a backup ref, which moves in the same atomic push.
    """

    model = arguments.ForcePush

    def ref(self, args: arguments.ForcePush) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.ForcePush, before: str, question: Question) -> dict[str, Json]:
        if before != args.over:
            raise Refused(f"`{args.branch}` is at {before or 'nothing'}, not at {args.over}", code="ref_moved")
        try:
            for commit in (args.commit, before):
                work.bring(commit, history=True)
        except GitFailed as error:
            raise Refused(f"a commit is not at hand: {error}", code="no_commit") from error
        if work.contains(args.commit, before):
            raise Refused(f"{args.commit} builds on {before}: `git.push` does it without force", code="fast_forward")
        return {"commit": args.commit, "backup": f"refs/amends/backup/{question.action_id}"}

    def supply(self, work: Workspace, args: arguments.ForcePush, image: Image, call: Call) -> None:
        for commit in (image.intended, image.before):
            work.bring(commit, history=True)

    def beside(self, image: Image, question: Question) -> tuple[Move, ...]:
        return (Move(str(question.allocated["backup"]), image.before, ""),)

    def look(self, work: Workspace, args: arguments.ForcePush, image: Image, question: Question) -> Observation:
        backup = str(question.allocated["backup"])
        now = work.remote_values([image.ref, backup])
        seen = observe(work, image, now[image.ref], shared=False)
        kept: dict[str, Json] = {"backup": backup if now[backup] == image.before else ""}
        return seen.model_copy(update={"state": {**seen.state, **kept}})


class Revert(RemoteRef[arguments.Revert]):
    """A commit that takes back an earlier one, made and pushed in one step."""

    model = arguments.Revert

    def ref(self, args: arguments.Revert) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.Revert, before: str, question: Question) -> dict[str, Json]:
        if not before:
            raise Refused(f"the remote has no branch `{args.branch}`", code="no_branch")
        date = objects.date_now(work)
        made = self._make(work, args, before, question.marker, date)
        return {"commit": made, "date": date, "marker": question.marker}

    def content(self, work: Workspace, args: arguments.Revert, made: str) -> str:
        return objects.tree_of(work, made)

    def supply(self, work: Workspace, args: arguments.Revert, image: Image, call: Call) -> None:
        made = self._make(work, args, image.before, str(call.allocated["marker"]), str(call.allocated["date"]))
        require_same(made, image.intended)

    def _make(self, work: Workspace, args: arguments.Revert, tip: str, marker: str, date: str) -> str:
        work.bring(tip, history=True)
        if not (work.has(args.commit) and work.contains(tip, args.commit)):
            raise Refused(f"commit {args.commit} is not on branch `{args.branch}`", code="not_on_branch")
        older = objects.parent_of(work, args.commit, args.mainline)
        return objects.revert(work, tip=tip, newer=args.commit, older=older, marker=marker, date=date)
