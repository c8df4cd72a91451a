"""Capabilities that move one ref of the remote: branches, tags, pushes, reverts.

All share one shape. `prepare` reads the ref (before-image) and settles the id it shall have; `do` moves it under a
lease on the before-image; `probe` compares the ref with both ids; `undo` moves it back under a lease on ours, or
pushes a revert where others build on the branch.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel

from amends.spi import (
    Call,
    Capability,
    Contract,
    Done,
    Json,
    NotSent,
    Observation,
    Prepared,
    Question,
    Receipt,
    Refused,
)
from amends.spi.process import TimeLimit
from amends_git import arguments, objects
from amends_git.command import GitFailed
from amends_git.images import ACTION, Image, note_of, observe
from amends_git.options import GitOptions
from amends_git.workspace import Unreadable, Workspace, workspace

A = TypeVar("A", bound=arguments.Arguments)


class RemoteRef(Capability, Generic[A]):
    """Base of the capabilities of this module."""

    model: ClassVar[type[BaseModel]]

    def __init__(self, contract: Contract, options: GitOptions) -> None:
        self.contract = contract
        self.arguments = self.model
        self._options = options

    @abstractmethod
    def ref(self, args: A) -> str:
        """The full name of the ref."""

    @abstractmethod
    def intend(self, work: Workspace, args: A, before: str, question: Question) -> dict[str, Json]:
        """What is settled before the intent: `commit`, the id the ref shall have, and what `supply` needs to know.
        Raises `Refused` if the call makes no sense now.
        """

    def supply(self, work: Workspace, args: A, image: Image, call: Call) -> None:
        """Bring the object to push into the workspace."""
        del args, call
        work.bring(image.intended, history=False)

    def branch(self, args: A) -> str:
        """The branch's short name; empty for what is not a branch."""
        return self.ref(args).removeprefix("refs/heads/")

    def prepare(self, question: Question) -> Prepared:
        args = self._args(question)
        with self._work(question, args) as work:
            try:
                before = work.remote_value(self.ref(args))
                allocated = self.intend(work, args, before, question)
            except Unreadable as error:
                raise Refused(f"the remote cannot be read: {error}", code="remote_unreadable", again=True) from error
        return Prepared(
            before={"ref": before},
            allocated=allocated,
            input={"shared": self._shared(args)},
            content_digest=str(allocated["commit"]),
        )

    def do(self, call: Call) -> Receipt:
        args = self._args(call)
        image = Image.of(call, self.ref(args))
        if image.unchanged:
            return image.done(changed=False)
        with self._work(call, args) as work:
            try:
                self.supply(work, args, image, call)
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"what is to be pushed is not at hand: {error}", code="object_missing") from error
            work.move(image.ref, new=image.intended, old=image.before, still_wanted=call.still_wanted)
        return image.done(changed=True)

    def probe(self, question: Question) -> Observation:
        args = self._args(question)
        image = Image.of(question, self.ref(args))
        try:
            with self._work(question, args) as work:
                return observe(work, image, work.remote_value(image.ref), shared=self._shared(args))
        except (Unreadable, NotSent, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        args = self._args(call)
        image = Image.of(call, self.ref(args))
        if image.unchanged:
            return image.done(changed=False)
        with self._work(call, args) as work:
            if call.rung == "revert":
                return push_revert(work, image, call)
            return restore(work, image, call)

    def verify_undone(self, question: Question) -> Observation:
        observation = self.probe(question)
        unchanged = Image.of(question, self.ref(self._args(question))).unchanged
        if observation.seen == "applied" and unchanged:
            return observation.model_copy(update={"seen": "absent", "detail": "the action changed nothing"})
        return observation

    def _args(self, question: Question) -> A:
        return self.model.model_validate(dict(question.args))  # type: ignore[return-value]

    def _work(self, question: Question, args: A) -> AbstractContextManager[Workspace]:
        repository = self._options.repository(args.repo)
        return workspace(repository, timeout_seconds=question.timeout_seconds, secret=question.secret)

    def _shared(self, args: A) -> bool:
        return self._options.repository(args.repo).shared(self.branch(args))


def restore(work: Workspace, image: Image, call: Call) -> Receipt:
    """Put the before-image back if the ref is still ours. Raises `Refused` if it is not, or if the object is gone."""
    try:
        work.bring(image.before, history=False)
    except GitFailed as error:
        raise Refused(f"the former object {image.before} is nowhere to be had: {error}", code="object_gone") from error
    work.move(image.ref, new=image.before, old=image.intended, still_wanted=call.still_wanted)
    return Done(effect={"ref": image.ref, "commit": image.before}, after={"ref": image.before})


def push_revert(work: Workspace, image: Image, call: Call) -> Receipt:
    """Push one commit that takes back what the action brought, on top of whatever is there now."""
    try:
        tip = work.remote_value(image.ref)
        if not tip or not image.before:
            raise Refused(f"`{image.ref}` has no state to revert to", code="nothing_to_revert")
        for commit in (tip, image.intended, image.before):
            work.bring(commit, history=True)
        made = objects.revert(
            work,
            tip=tip,
            newer=image.intended,
            older=image.before,
            marker=note_of(call),
            date=objects.date_now(work),
        )
    except (Unreadable, GitFailed, TimeLimit, OSError) as error:
        raise NotSent(f"the revert could not be made: {error}", code="revert_not_made") from error
    work.move(image.ref, new=made, old=tip, still_wanted=call.still_wanted)
    return Done(effect={"ref": image.ref, "commit": made}, after={"ref": made})


class CreateBranch(RemoteRef[arguments.CreateBranch]):
    """A branch on the remote at an explicit commit; the lease says that no such branch exists."""

    model = arguments.CreateBranch

    def ref(self, args: arguments.CreateBranch) -> str:
        return f"refs/heads/{args.branch}"

    def intend(self, work: Workspace, args: arguments.CreateBranch, before: str, question: Question) -> dict[str, Json]:
        if before:
            raise Refused(f"branch `{args.branch}` exists already, at {before}", code="exists")
        base = args.base or work.repository.base
        commit = work.remote_value(f"refs/heads/{base}") or (base if _is_id(base) else "")
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

    def supply(self, work: Workspace, args: arguments.Tag, image: Image, call: Call) -> None:
        made = self._make(work, args, str(call.allocated["marker"]), str(call.allocated["date"]))
        _same(made, image.intended)

    def _make(self, work: Workspace, args: arguments.Tag, marker: str, date: str) -> str:
        try:
            work.bring(args.commit, history=False)
        except GitFailed as error:
            raise Refused(f"commit {args.commit} is nowhere to be had: {error}", code="no_commit") from error
        message = objects.marked(work, args.message, {ACTION: marker})
        return objects.tag(work, name=args.name, target=args.commit, message=message, date=date)


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

    def supply(self, work: Workspace, args: arguments.Revert, image: Image, call: Call) -> None:
        made = self._make(work, args, image.before, str(call.allocated["marker"]), str(call.allocated["date"]))
        _same(made, image.intended)

    def _make(self, work: Workspace, args: arguments.Revert, tip: str, marker: str, date: str) -> str:
        work.bring(tip, history=True)
        if not (work.has(args.commit) and work.contains(tip, args.commit)):
            raise Refused(f"commit {args.commit} is not on branch `{args.branch}`", code="not_on_branch")
        older = objects.single_parent(work, args.commit)
        return objects.revert(work, tip=tip, newer=args.commit, older=older, marker=marker, date=date)


def _same(made: str, intended: str) -> None:
    if made != intended:
        raise NotSent(f"the object came out as {made}, not as {intended}, which the intent names", code="not_the_same")


def _is_id(text: str) -> bool:
    return len(text) in {40, 64} and set(text) <= set("0123456789abcdef")
