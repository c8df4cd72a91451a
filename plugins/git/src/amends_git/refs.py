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
from amends_git.images import Image, note_of, observe
from amends_git.options import GitOptions
from amends_git.pushing import Move, push
from amends_git.workspace import Unreadable, Workspace, workspace_of

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

    def content(self, work: Workspace, args: A, made: str) -> str:
        """What a person's yes is about: the same whenever and for whichever action it is prepared (rule 30)."""
        del work, args
        return made

    def look(self, work: Workspace, args: A, image: Image, question: Question) -> Observation:
        """What the remote says now. Raises `Unreadable`."""
        del question
        return observe(work, image, work.remote_value(image.ref), shared=self._shared(args))

    def beside(self, image: Image, question: Question) -> tuple[Move, ...]:
        """Further refs that move in the same push, or nothing moves at all."""
        del image, question
        return ()

    def branch(self, args: A) -> str:
        """The branch's short name; empty for what is not a branch."""
        return self.ref(args).removeprefix("refs/heads/")

    def prepare(self, question: Question) -> Prepared:
        args = self._args(question)
        with self._work(question, args) as work:
            try:
                before = work.remote_value(self.ref(args))
                allocated = self.intend(work, args, before, question)
                content = self.content(work, args, str(allocated["commit"]))
            except Unreadable as error:
                raise Refused(f"the remote cannot be read: {error}", code="remote_unreadable", again=True) from error
        return Prepared(
            before={"ref": before},
            allocated=allocated,
            input={"shared": self._shared(args)},
            content_digest=content,
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
            push(
                work,
                Move(image.ref, image.intended, image.before),
                *self.beside(image, call),
                still_wanted=call.still_wanted,
            )
        return image.done(changed=True)

    def probe(self, question: Question) -> Observation:
        args = self._args(question)
        image = Image.of(question, self.ref(args))
        try:
            with self._work(question, args) as work:
                return self.look(work, args, image, question)
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
            return restore(work, image, call, self.beside(image, call))

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
        return workspace_of(repository, question)

    def _shared(self, args: A) -> bool:
        return self._options.repository(args.repo).shared(self.branch(args))


def restore(work: Workspace, image: Image, call: Call, beside: tuple[Move, ...] = ()) -> Receipt:
    """Put the before-image back if the ref is still ours, and take away what had moved `beside` it and is there still.
    Raises `Refused` if the ref is not ours, or if the object is gone.
    """
    try:
        there = work.remote_values([move.ref for move in beside]) if beside else {}
        work.bring(image.before, history=True)  # a remote that has dropped it takes no half of a history
    except Unreadable as error:
        raise NotSent(f"the remote cannot be read: {error}", code="remote_unreadable") from error
    except GitFailed as error:
        raise Refused(f"the former object {image.before} is nowhere to be had: {error}", code="object_gone") from error
    back = [Move(move.ref, move.old, move.new) for move in beside if there[move.ref] == move.new]
    push(work, Move(image.ref, image.before, image.intended), *back, still_wanted=call.still_wanted)
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
    push(work, Move(image.ref, made, tip), still_wanted=call.still_wanted)
    return Done(effect={"ref": image.ref, "commit": made}, after={"ref": made})


def require_same(made: str, intended: str) -> None:
    """Raise `NotSent` unless the object came out as the intent says."""
    if made != intended:
        raise NotSent(f"the object came out as {made}, not as {intended}, which the intent names", code="not_the_same")
