"""Commits on a local branch of the checkout, made beside its index and worktree: what `commit` and `merge` share.

The commit is built in the private repository and stored in the checkout under its branch by compare-and-set.
A ref under `refs/amends/actions/` keeps the commit whatever becomes of the branch.
Undo is chosen by what the remote says at that moment, not by memory: never pushed, the branch goes back;
pushed by somebody, a revert commit against the recorded parent is pushed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

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
from amends_git import locks, objects
from amends_git.arguments import Commit, Merge
from amends_git.command import GitFailed
from amends_git.images import Image, observe
from amends_git.options import GitOptions
from amends_git.refs import push_revert
from amends_git.workspace import Unreadable, Workspace, workspace_of

A = TypeVar("A", Commit, Merge)


class LocalBranch(Capability, Generic[A]):
    """Base of the capabilities that put one commit on a local branch."""

    model: ClassVar[type[Commit | Merge]]

    def __init__(self, contract: Contract, options: GitOptions) -> None:
        self.contract = contract
        self.arguments = self.model
        self._options = options

    @abstractmethod
    def settle(self, work: Workspace, args: A, parent: str) -> dict[str, Json]:
        """What else is settled before the intent. Raises `Refused` if the call makes no sense now."""

    @abstractmethod
    def build(self, work: Workspace, args: A, facts: Mapping[str, Json]) -> str:
        """The commit's id, from `parent`, `date`, `marker` and what `settle` gave: always the same."""

    @abstractmethod
    def starts(self, args: A) -> tuple[str, ...]:
        """The remote's branches, in order, where the branch starts if the checkout has none of its name."""

    def prepare(self, question: Question) -> Prepared:
        args = self._args(question)
        with self._work(question, args) as work:
            _require_checkout(work)
            try:
                refuse_checked_out(work, args.branch)
                before = objects.read_git(work.git, work.checkout_dir, _ref(args))
                parent = before or self._start(work, args)
                work.bring(parent, history=True)
                facts: dict[str, Json] = {
                    "parent": parent,
                    "date": objects.date_now(work),
                    "marker": question.marker,
                    **self.settle(work, args, parent),
                }
                made = self.build(work, args, facts)
                content = objects.tree_of(work, made)  # not the commit: its date and mark differ each time
            except (Unreadable, GitFailed) as error:
                raise Refused(f"the commit could not be prepared: {error}", code="not_prepared", again=True) from error
        return Prepared(
            before={"ref": before},
            allocated={**facts, "commit": made},
            input={"shared": work.repository.shared(args.branch)},
            content_digest=content,
        )

    def do(self, call: Call) -> Receipt:
        args = self._args(call)
        image = Image.of(call, _ref(args))
        with self._work(call, args) as work:
            try:
                _require_checkout(work)
                refuse_checked_out(work, args.branch)
                work.bring(str(call.allocated["parent"]), history=True)
                made = self.build(work, args, call.allocated)
                if made != image.intended:
                    raise NotSent("the worktree changed after the commit was prepared", code="content_changed")
                work.keep(made, f"refs/amends/actions/{call.action_id}")
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the commit could not be made: {error}", code="not_made") from error
            _move_local(work, image.ref, new=image.intended, old=image.before, call=call)
        return image.done(changed=True)

    def probe(self, question: Question) -> Observation:
        args = self._args(question)
        image = Image.of(question, _ref(args))
        try:
            with self._work(question, args) as work:
                return _look(work, image, args.branch)
        except (Unreadable, GitFailed, NotSent, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        args = self._args(call)
        image = Image.of(call, _ref(args))
        with self._work(call, args) as work:
            if call.rung == "revert":
                return push_revert(work, Image(image.ref, str(call.allocated["parent"]), image.intended), call)
            try:
                _require_checkout(work)
                refuse_checked_out(work, args.branch)
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the checkout cannot be read: {error}", code="no_checkout") from error
            _move_local(work, image.ref, new=image.before, old=image.intended, call=call)
        return Done(effect={"ref": image.ref, "commit": image.before}, after={"ref": image.before})

    def _args(self, question: Question) -> A:
        return self.model.model_validate(dict(question.args))  # type: ignore[return-value]

    def _work(self, question: Question, args: A) -> AbstractContextManager[Workspace]:
        repository = self._options.repository(args.repo)
        return workspace_of(repository, question)

    def _start(self, work: Workspace, args: A) -> str:
        for branch in self.starts(args):
            value = work.remote_value(f"refs/heads/{branch}")
            if value:
                return value
        raise Refused(f"neither the checkout nor the remote has branch `{args.branch}`", code="no_branch")


def _ref(args: Commit | Merge) -> str:
    return f"refs/heads/{args.branch}"


def _require_checkout(work: Workspace) -> None:
    if not work.checkout_dir:
        raise NotSent(f"there is no git repository at `{work.repository.checkout}`", code="no_checkout")


def refuse_checked_out(work: Workspace, branch: str) -> None:
    """Raise `Refused` if a worktree shows the branch. Raises `GitFailed`."""
    listed = work.git.tell("worktree", "list", "--porcelain", git_dir=work.checkout_dir)
    if f"branch refs/heads/{branch}" in listed.splitlines():
        raise Refused(
            f"`{branch}` is checked out; moving it would make that worktree lie: detach it or name another branch",
            code="checked_out",
        )


def _move_local(work: Workspace, ref: str, *, new: str, old: str, call: Call) -> None:
    """Compare-and-set of a local branch; its outcome is read back, whatever git said."""
    if not call.still_wanted():
        raise NotSent("no longer wanted", code="not_wanted")
    folder = Path(work.checkout_dir)
    in_the_way = [folder / f"{ref}.lock", *([] if new else [folder / "packed-refs.lock"])]
    locks.clear(in_the_way, inside=Path(work.repository.checkout).resolve(), exclusive=work.repository.exclusive)
    zero = "0" * len(new or old)
    ended = work.git.ask(
        "update-ref", "--no-deref", "--create-reflog", "-m", f"amends {call.action_id}", ref, new or zero, old or zero,
        git_dir=work.checkout_dir,
    )  # fmt: skip
    now = objects.read_git(work.git, work.checkout_dir, ref)
    if now == new:
        return
    locked = "File exists" in ended.err or "Unable to create" in ended.err
    code = "locked" if locked else "ref_moved"
    raise Refused(f"`{ref}` stays at {now or 'nothing'}: {ended.err.strip()}", code=code, again=locked)


def _look(work: Workspace, image: Image, branch: str) -> Observation:
    if not work.checkout_dir:
        folder = Path(work.repository.checkout)
        if folder.parent.is_dir() and not folder.exists():
            return Observation(seen="absent", detail="the checkout is gone, and its branch with it")
        return Observation(seen="inconclusive", detail=f"`{folder}` cannot be read as a git repository")
    local = observe(work, image, objects.read_git(work.git, work.checkout_dir, image.ref), shared=False)
    pushed = _pushed(work, image) if local.seen == "applied" else "no"
    if pushed == "unreadable":
        return Observation(seen="inconclusive", detail="the commit is there; whether it was pushed cannot be read")
    if pushed == "reverted":
        return local.model_copy(update={"seen": "absent", "detail": f"reverted on the remote's `{branch}`"})
    return local.model_copy(update={"state": {**local.state, "pushed": pushed}})


def _pushed(work: Workspace, image: Image) -> str:
    """Whether the remote's branch of that name holds our commit: `yes`, `no`, `reverted` or `unreadable`."""
    try:
        now = work.remote_value(image.ref)
    except Unreadable:
        return "unreadable"
    if now in {"", image.before}:
        return "no"
    seen = observe(work, image, now, shared=True)
    relation = str(seen.state["relation"])
    return {"ours": "yes", "built_on": "yes", "reverted": "reverted", "not_comparable_with": "unreadable"}.get(
        relation, "no"
    )
