"""`git.checkout`: the checkout's worktree shows another branch or commit; a person's uncommitted work is never lost.

Before anything is changed, what the worktree and index hold is put down as a commit under `refs/amends/worktree/`, in
the shape of a stash. With uncommitted work the call is refused unless it says `put_aside`. The undo brings everything
back, from any point at which the call may have died: as long as each path is in the state before or after, it is ours;
a path in a third state is somebody's new work, and then nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

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
from amends_git import objects
from amends_git.arguments import Checkout, is_commit_id
from amends_git.command import GitFailed
from amends_git.contracts import PARTS
from amends_git.images import ACTION
from amends_git.local import refuse_checked_out
from amends_git.options import GitOptions
from amends_git.workspace import Unreadable, Workspace, workspace_of
from amends_git.worktree import State, Worktree, few


class CheckOut(Capability):
    """See the module."""

    arguments = Checkout

    def __init__(self, contract: Contract, options: GitOptions) -> None:
        self.contract = contract
        self._options = options

    def prepare(self, question: Question) -> Prepared:
        args = _args(question)
        with self._work(question) as work:
            try:
                tree = Worktree(work)
                head, commit = _target(work, tree, args)
                index = tree.index_tree()
                tree.require_room(commit, index)
                before = tree.state(tree.paths(commit))
                dirty = _uncommitted(tree, before)
                if dirty and not args.put_aside:
                    raise Refused(f"uncommitted work would be lost: {few(dirty)}", code="dirty")
                tree.require_lossless(before.files, dirty)
                date = objects.date_now(work)
                kept = _preimage(work, before, question.marker, date)
                after = State(head, commit, objects.tree_of(work, commit), objects.tree_of(work, commit))
            except (GitFailed, TimeLimit, OSError) as error:
                raise Refused(f"the worktree cannot be read: {error}", code="unreadable", again=True) from error
        facts: dict[str, Json] = {"date": date, "marker": question.marker, "preimage": kept, **after.facts()}
        return Prepared(
            before={**before.facts()},
            allocated=facts,
            input={"dirty": bool(dirty)},
            content_digest=f"{before.index} {before.files} {commit}",
        )

    def do(self, call: Call) -> Receipt:
        before, after = _state(call.before), _state(call.allocated)
        with self._work(call) as work:
            try:
                tree = Worktree(work)
                now = tree.state(_concerned(tree, call))
                if now == after != before and tree.resolve(_kept_ref(call)):
                    return _done(after, call)  # this very call has come two times
                if now != before:
                    raise NotSent("the worktree changed after the call was prepared", code="content_changed")
                kept = _preimage(work, before, str(call.allocated["marker"]), str(call.allocated["date"]))
                work.keep(kept, _kept_ref(call))
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the worktree cannot be put down: {error}", code="not_kept") from error
            _send(tree, now, after, call)
            if tree.state(tree.paths(before.index)) != after:
                raise GitFailed("the worktree does not show what was asked for")
        return _done(after, call)

    def probe(self, question: Question) -> Observation:
        try:
            with self._work(question) as work:
                return _look(Worktree(work), question)
        except (Unreadable, GitFailed, TimeLimit, OSError, NotSent, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        before = _state(call.before)
        with self._work(call) as work:
            try:
                tree = Worktree(work)
                seen = _look(tree, call)
                now = tree.state(_concerned(tree, call))
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the worktree cannot be read: {error}", code="unreadable") from error
            if seen.seen == "diverged":
                raise Refused(seen.detail, code="diverged")
            if now != before:
                _send(tree, now, before, call)
        return Done(effect={"commit": before.commit, "head": before.head}, after={**before.facts()})

    def verify_undone(self, question: Question) -> Observation:
        seen = self.probe(question)
        if seen.seen == "applied" and _state(question.before) == _state(question.allocated):
            return seen.model_copy(update={"seen": "absent", "detail": "the action changed nothing"})
        return seen

    def _work(self, question: Question) -> AbstractContextManager[Workspace]:
        repository = self._options.repository(_args(question).repo)
        return workspace_of(repository, question)


def _args(question: Question) -> Checkout:
    return Checkout.model_validate(dict(question.args))


def _state(facts: Mapping[str, Json]) -> State:
    return State(*(str(facts.get(name, "")) for name in ("head", "commit", "index", "files")))


def _done(after: State, call: Call) -> Done:
    effect: dict[str, Json] = {"commit": after.commit, "head": after.head, "kept": _kept_ref(call)}
    return Done(effect=effect, output=effect, reference=after.commit, after={**after.facts()}, parts=PARTS)


def _kept_ref(question: Question) -> str:
    return f"refs/amends/worktree/{question.action_id}"


def _target(work: Workspace, tree: Worktree, args: Checkout) -> tuple[str, str]:
    """What HEAD shall be, and the commit. Raises `Refused` if the checkout does not have it."""
    branch = f"refs/heads/{args.target}"
    commit = tree.resolve(branch)
    if commit:
        if not tree.is_at(branch):
            refuse_checked_out(work, args.target)
        return branch, commit
    commit = tree.resolve(args.target) if is_commit_id(args.target) else ""
    if not commit:
        raise Refused(f"the checkout has no branch or commit `{args.target}`", code="no_target")
    return commit, commit


def _uncommitted(tree: Worktree, state: State) -> set[str]:
    """Tracked paths that were changed, and files git does not track that are in the way of the call."""
    head = objects.tree_of(tree.work, state.commit)
    return tree.differing(head, state.files) | tree.differing(head, state.index)


def _preimage(work: Workspace, state: State, marker: str, date: str) -> str:
    """A commit in the shape of a stash: files, and the index as its second parent."""
    text = objects.marked(work, "What the worktree held before an action", {ACTION: marker})
    index = objects.commit(work, tree=state.index, parents=[state.commit], message=text, date=date)
    return objects.commit(work, tree=state.files, parents=[state.commit, index], message=text, date=date)


def _concerned(tree: Worktree, question: Question) -> set[str]:
    before, after = _state(question.before), _state(question.allocated)
    index = tree.paths(before.index) if tree.work.has(before.index) else set[str]()
    return tree.paths(after.commit) | index


def _send(tree: Worktree, now: State, to: State, call: Call) -> None:
    if not call.still_wanted():
        raise NotSent("no longer wanted", code="not_wanted")
    tree.show(now, to, call.action_id)


def _look(tree: Worktree, question: Question) -> Observation:
    before, after = _state(question.before), _state(question.allocated)
    now = tree.state(_concerned(tree, question))
    if now == after:
        return _ours(tree, question, PARTS)
    if now == before:
        return Observation(seen="absent", state={"worktree": "before"})
    heads = {(before.head, before.commit), (after.head, after.commit)}
    foreign = tree.differing(before.files, now.files) & tree.differing(after.files, now.files)
    if (now.head, now.commit) not in heads or now.index not in {before.index, after.index} or foreign:
        what = few(foreign) if foreign else f"HEAD is at {now.commit}, or the index was changed"
        return Observation(seen="diverged", state={"worktree": "changed"}, detail=f"somebody worked there: {what}")
    there = {"files": (now.files, now.index) == (after.files, after.index), "head": now.head == after.head}
    return _ours(tree, question, tuple(part for part in PARTS if there[part]))


def _ours(tree: Worktree, question: Question, parts: tuple[str, ...]) -> Observation:
    """All or some of our change is there; it can be taken back only while the former branch is where it was."""
    before, after = _state(question.before), _state(question.allocated)
    if tree.resolve(before.head) != before.commit:
        detail = f"`{before.head}` has moved since, so going back to it would hide what came"
        return Observation(seen="diverged", state={"worktree": "ours"}, detail=detail)
    return Observation(
        seen="applied",
        parts=parts,
        state={"worktree": "ours"},
        effect={"commit": after.commit, "head": after.head, "kept": _kept_ref(question)},
        reference=after.commit,
    )
