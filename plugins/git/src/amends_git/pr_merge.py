"""`git.merge_pr`: a pull request merged, at the very commit that was looked at.

The merge commit names the action, so a merge that was carried out while its answer was lost or was a 500 is found by
the pull request's state and that commit, and a merge by somebody else is not taken for ours. A merge is pushed work:
its undo is a revert commit on the base branch, or a person.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from amends.spi import (
    Call,
    Capability,
    Contract,
    Done,
    JsonMap,
    NotSent,
    Observation,
    Prepared,
    Question,
    Receipt,
    Refused,
)
from amends.spi.http import Ambiguous, HttpAnswer, Unreadable
from amends.spi.process import TimeLimit
from amends_git.arguments import MergePullRequest
from amends_git.command import GitFailed
from amends_git.github import GitHub, part
from amends_git.images import ACTION, Image, observe
from amends_git.refs import push_revert
from amends_git.workspace import Unreadable as RemoteUnreadable
from amends_git.workspace import Workspace, workspace_of

_NOT_ALLOWED, _CONFLICT = 405, 409
_FOR_NOW = "was modified"  # "Base branch was modified": the same request may be sent again; other 405s are for good


class MergePr(Capability):
    """See the module."""

    arguments = MergePullRequest

    def __init__(self, contract: Contract, hub: GitHub) -> None:
        self.contract = contract
        self._hub = hub

    def prepare(self, question: Question) -> Prepared:
        args = _args(question)
        try:
            pull = self._hub.pull(question, args.repo, args.number)
        except Unreadable as error:
            raise Refused(f"the pull request cannot be read: {error}", code="unreadable", again=True) from error
        if pull.get("state") != "open" or pull.get("draft"):
            kind = "a draft" if pull.get("draft") else "not open"
            raise Refused(f"pull request #{args.number} is {kind}", code="not_mergeable")
        if part(pull, "head", "sha") != args.head:
            detail = f"the head of #{args.number} is {part(pull, 'head', 'sha')}, not {args.head}"
            raise Refused(detail, code="head_moved")
        base = part(pull, "base", "ref")
        return Prepared(
            allocated={"base": base},
            input={"shared": self._hub.options.repository(args.repo).shared(base)},
            content_digest=args.head,
        )

    def do(self, call: Call) -> Receipt:
        args = _args(call)
        note = f"{args.message}\n\n" if args.message else ""
        payload: JsonMap = {
            "sha": args.head,
            "merge_method": args.method,
            "commit_message": f"{note}{ACTION}: {call.marker}",
        }
        path = f"pulls/{args.number}/merge"
        answer = self._hub.write(call, args.repo, "PUT", path, payload, own_statuses=(_NOT_ALLOWED, _CONFLICT))
        if not answer.ok:
            raise self._refusal(call, args, answer)
        made = answer.document()
        commit = str(made.get("sha") or "")
        if made.get("merged") is not True or not commit:
            raise Ambiguous("the answer does not say that it was merged", code="not_merged")
        effect: JsonMap = {"number": str(args.number), "commit": commit, "base": call.allocated["base"]}
        return Done(effect=effect, output=effect, reference=commit, after={"pull_request": "merged"})

    def probe(self, question: Question) -> Observation:
        args = _args(question)
        try:
            pull = self._hub.pull(question, args.repo, args.number)
            if not pull.get("merged_at"):
                return Observation(seen="absent", state={"pull_request": str(pull.get("state"))})
            commit = str(pull.get("merge_commit_sha") or "")
            with self._work(question) as work:
                return self._look(work, question, commit)
        except (Unreadable, RemoteUnreadable, GitFailed, TimeLimit, OSError, NotSent, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        commit = call.reference or (call.observed.reference if call.observed is not None else "")
        if not commit:
            raise NotSent("the merge commit is not known", code="no_commit")
        with self._work(call) as work:
            try:
                image = self._image(work, call, commit)
            except (GitFailed, TimeLimit, OSError) as error:
                raise NotSent(f"the merge commit is not at hand: {error}", code="object_missing") from error
            return push_revert(work, image, call)

    def _look(self, work: Workspace, question: Question, commit: str) -> Observation:
        image = self._image(work, question, commit)
        signed = work.run("log", "-1", f"--format=%(trailers:key={ACTION},valueonly)", commit)
        if question.marker not in signed.splitlines():
            detail = f"#{_args(question).number} was merged by somebody else, as {commit}"
            return Observation(seen="diverged", state={"pull_request": "merged"}, detail=detail)
        seen = observe(work, image, work.remote_value(image.ref), shared=True)
        number, base = str(_args(question).number), image.ref.removeprefix("refs/heads/")
        effect: JsonMap = {"number": number, "commit": commit, "base": base} if seen.seen == "applied" else {}
        return seen.model_copy(update={"state": {**seen.state, "pull_request": "merged"}, "effect": effect})

    def _image(self, work: Workspace, question: Question, commit: str) -> Image:
        """The base branch before and after the merge. Raises `GitFailed` if the commit is nowhere to be had."""
        work.bring(commit, history=True)
        parent = work.run("rev-parse", "--verify", f"{commit}^1")
        return Image(f"refs/heads/{question.allocated['base']}", parent, commit)

    def _refusal(self, call: Call, args: MergePullRequest, answer: HttpAnswer) -> Refused | Ambiguous:
        """A 405 or 409 is a no only if the pull request is not merged: else the answer may be to our own first try."""
        said = str(answer.document().get("message") or answer.excerpt())
        try:
            merged = bool(self._hub.pull(call, args.repo, args.number).get("merged_at"))
        except Unreadable as error:
            return Ambiguous(f"{said}; whether it was merged cannot be read: {error}", code=f"http_{answer.status}")
        if merged:
            return Ambiguous(f"{said}; but #{args.number} is merged", code=f"http_{answer.status}")
        again = answer.status == _NOT_ALLOWED and _FOR_NOW in said
        return Refused(said, code="head_moved" if answer.status == _CONFLICT else "not_mergeable", again=again)

    def _work(self, question: Question) -> AbstractContextManager[Workspace]:
        repository = self._hub.options.repository(_args(question).repo)
        return workspace_of(repository, question)


def _args(question: Question) -> MergePullRequest:
    return MergePullRequest.model_validate(dict(question.args))
