"""`git.commit`: a commit on a local branch of the checkout, made beside its index and worktree.

The commit is built in the private repository and stored in the checkout under its branch by compare-and-set.
A ref under `refs/amends/actions/` keeps the commit whatever becomes of the branch.
Undo is chosen by what the remote says at that moment, not by memory: never pushed, the branch goes back;
pushed by somebody, a revert commit is pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

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
from amends_git.arguments import Commit
from amends_git.command import GitFailed
from amends_git.images import ACTION, Image, observe
from amends_git.objects import Content
from amends_git.options import GitOptions, Repository
from amends_git.refs import push_revert
from amends_git.workspace import Unreadable, Workspace, workspace


class CommitFiles(Capability):
    """See the module."""

    arguments = Commit

    def __init__(self, contract: Contract, options: GitOptions) -> None:
        self.contract = contract
        self._options = options

    def prepare(self, question: Question) -> Prepared:
        args = _args(question)
        with self._work(question, args) as work:
            _require_checkout(work)
            try:
                _refuse_checked_out(work, args.branch)
                before = objects.read_git(work.git, work.checkout_dir, _ref(args))
                parent = before or self._start(work, args)
                work.bring(parent, history=False)
                facts: dict[str, Json] = {
                    "parent": parent,
                    "date": objects.date_now(work),
                    "marker": question.marker,
                }
                made = _build(work, args, facts)
            except (Unreadable, GitFailed) as error:
                raise Refused(f"the commit could not be prepared: {error}", code="not_prepared", again=True) from error
        return Prepared(
            before={"ref": before},
            allocated={**facts, "commit": made},
            input={"shared": work.repository.shared(args.branch)},
            content_digest=made,
        )

    def do(self, call: Call) -> Receipt:
        args = _args(call)
        image = Image.of(call, _ref(args))
        with self._work(call, args) as work:
            try:
                _require_checkout(work)
                _refuse_checked_out(work, args.branch)
                work.bring(str(call.allocated["parent"]), history=True)
                made = _build(work, args, call.allocated)
                if made != image.intended:
                    raise NotSent("the worktree changed after the commit was prepared", code="content_changed")
                work.keep(made, f"refs/amends/actions/{call.action_id}")
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the commit could not be made: {error}", code="not_made") from error
            _move_local(work, image.ref, new=image.intended, old=image.before, call=call)
        return image.done(changed=True)

    def probe(self, question: Question) -> Observation:
        args = _args(question)
        image = Image.of(question, _ref(args))
        try:
            with self._work(question, args) as work:
                return _look(work, image, args.branch)
        except (Unreadable, GitFailed, NotSent, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        args = _args(call)
        image = Image.of(call, _ref(args))
        with self._work(call, args) as work:
            if call.rung == "revert":
                facts = call.allocated
                return push_revert(work, Image(image.ref, str(facts["parent"]), image.intended), call)
            try:
                _require_checkout(work)
                _refuse_checked_out(work, args.branch)
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the checkout cannot be read: {error}", code="no_checkout") from error
            _move_local(work, image.ref, new=image.before, old=image.intended, call=call)
        return Done(effect={"ref": image.ref, "commit": image.before}, after={"ref": image.before})

    def _work(self, question: Question, args: Commit) -> AbstractContextManager[Workspace]:
        repository = self._options.repository(args.repo)
        return workspace(repository, timeout_seconds=question.timeout_seconds, secret=question.secret)

    def _start(self, work: Workspace, args: Commit) -> str:
        for branch in (args.branch, args.base):
            value = work.remote_value(f"refs/heads/{branch}") if branch else ""
            if value:
                return value
        raise Refused(f"neither the checkout nor the remote has branch `{args.branch}`", code="no_branch")


def _args(question: Question) -> Commit:
    return Commit.model_validate(dict(question.args))


def _ref(args: Commit) -> str:
    return f"refs/heads/{args.branch}"


def _require_checkout(work: Workspace) -> None:
    if not work.checkout_dir:
        raise NotSent(f"there is no git repository at `{work.repository.checkout}`", code="no_checkout")


def _refuse_checked_out(work: Workspace, branch: str) -> None:
    listed = work.git.tell("worktree", "list", "--porcelain", git_dir=work.checkout_dir)
    if f"branch refs/heads/{branch}" in listed.splitlines():
        raise Refused(
            f"`{branch}` is checked out; moving it would make that worktree lie: detach it or name another branch",
            code="checked_out",
        )


def _build(work: Workspace, args: Commit, facts: Mapping[str, Json]) -> str:
    parent, date, marker = str(facts["parent"]), str(facts["date"]), str(facts["marker"])
    contents = {path: Content(None if text is None else text.encode()) for path, text in args.files.items()}
    contents |= {path: _from_worktree(work.repository, path) for path in args.paths}
    tree = objects.tree_with(work, parent, contents)
    if tree == work.run("rev-parse", f"{parent}^{{tree}}"):
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


def _move_local(work: Workspace, ref: str, *, new: str, old: str, call: Call) -> None:
    """Compare-and-set of a local branch; its outcome is read back, whatever git said."""
    if not call.still_wanted():
        raise NotSent("no longer wanted", code="not_wanted")
    zero = "0" * len(new or old)
    ended = work.git.ask(
        "update-ref", "--no-deref", "--create-reflog", "-m", f"amends {call.action_id}", ref, new or zero, old or zero,
        git_dir=work.checkout_dir,
    )  # fmt: skip
    now = objects.read_git(work.git, work.checkout_dir, ref)
    if now == new:
        return
    locked = "File exists" in ended.err or "Unable to create" in ended.err
    hint = "; if no git runs there, remove the lock file" if locked else ""
    raise Refused(f"`{ref}` stays at {now or 'nothing'}: {ended.err.strip()}{hint}", code="ref_moved", again=locked)


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
