"""`git.draft_pr`, and `git.correction`, which answers in a pull request (`pr:{repo}/{number}`).

People see a draft pull request, so closing it takes back the request, never the notice of it: a correction follows.
"""

from __future__ import annotations

from amends.spi import (
    Call,
    Capability,
    Contract,
    CorrectionArgs,
    Corrector,
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
from amends_git.arguments import DraftPullRequest
from amends_git.github import GitHub, bears, heading, number_of

_INVALID = 422


class DraftPr(Capability):
    """One draft pull request, found again by the marker that its body begins with."""

    arguments = DraftPullRequest

    def __init__(self, contract: Contract, hub: GitHub) -> None:
        self.contract = contract
        self._hub = hub

    def prepare(self, question: Question) -> Prepared:
        args = _args(question)
        try:
            open_now = [item for item in self._of_branch(question, args) if item.get("state") == "open"]
        except Unreadable as error:
            raise Refused(f"pull requests cannot be read: {error}", code="unreadable", again=True) from error
        if open_now:
            raise Refused(f"`{args.branch}` has pull request #{number_of(open_now[0])} already", code="exists")
        shared = self._hub.options.repository(args.repo).shared(args.branch)
        return Prepared(input={"shared": shared})

    def do(self, call: Call) -> Receipt:
        args = _args(call)
        payload: JsonMap = {
            "title": args.title,
            "head": args.branch,
            "base": args.base or self._hub.options.repository(args.repo).base,
            "body": f"{heading(call.marker)}\n{args.body}",
            "draft": True,
        }
        answer = self._hub.write(call, args.repo, "POST", "pulls", payload, own_statuses=(_INVALID,))
        made = self._exists(call, args, answer) if answer.status == _INVALID else answer.document()
        number = number_of(made)
        if not number or not bears(made, call.marker):
            raise Ambiguous("the answer does not show our pull request", code="not_ours")
        effect: JsonMap = {"number": number, "url": made.get("html_url")}
        return Done(effect=effect, output=effect, reference=number, after={"pull_request": "open"})

    def probe(self, question: Question) -> Observation:
        """By list, which also shows twins, and by number where the list does not show it (any more, or yet)."""
        args, known = _args(question), question.reference
        try:
            ours = [item for item in self._of_branch(question, args) if bears(item, question.marker)]
            if known and known not in map(number_of, ours):
                ours.append(self._hub.one(question, args.repo, f"pulls/{known}"))
        except (Unreadable, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))
        return _observe(ours, known)

    def verify_undone(self, question: Question) -> Observation:
        """The one pull request that was closed, by its number."""
        known = question.reference
        if not known:
            return self.probe(question)
        try:
            return _observe([self._hub.one(question, _args(question).repo, f"pulls/{known}")], known)
        except (Unreadable, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))

    def undo(self, call: Call) -> Receipt:
        number = call.reference or (call.observed.reference if call.observed is not None else "")
        if not number:
            raise NotSent("the pull request's number is not known", code="no_number")
        self._hub.write(call, _args(call).repo, "PATCH", f"pulls/{number}", {"state": "closed"})
        return Done(effect={"number": number}, reference=number, after={"pull_request": "closed"})

    def place(self, question: Question) -> str:
        return f"pr:{_args(question).repo}/{question.reference or question.effect.get('number')}"

    def _exists(self, call: Call, args: DraftPullRequest, answer: HttpAnswer) -> JsonMap:
        """What a 422 means: our own one, if it is there already; else a proven no. Raises `Refused`, `Ambiguous`."""
        try:
            there = self._of_branch(call, args)
        except Unreadable as error:
            raise Ambiguous(f"{answer.excerpt()}; what exists cannot be read: {error}", code="http_422") from error
        for item in there:
            if bears(item, call.marker):
                return item
        taken = any(item.get("state") == "open" for item in there)
        raise Refused(f"not opened: {answer.excerpt()}", code="exists" if taken else "invalid")

    def _of_branch(self, question: Question, args: DraftPullRequest) -> list[JsonMap]:
        owner = self._hub.project(args.repo).project.partition("/")[0]
        return self._hub.every(question, args.repo, "pulls", {"head": f"{owner}:{args.branch}", "state": "all"})


class PrCorrection(Corrector):
    """Comments on a pull request; found again by the marker that the comment begins with."""

    scheme = "pr"

    def __init__(self, contract: Contract, hub: GitHub) -> None:
        self.contract = contract
        self._hub = hub

    def do(self, call: Call) -> Receipt:
        repo, number = _place(call)
        payload: JsonMap = {"body": f"{heading(call.marker)}\n{_correction(call).text}"}
        made = self._hub.write(call, repo, "POST", f"issues/{number}/comments", payload).document()
        comment = number_of(made)
        if not comment or not bears(made, call.marker):
            raise Ambiguous("the answer does not show our comment", code="not_ours")
        return Done(effect={"comment": comment}, reference=comment, after={"comment": "posted"})

    def probe(self, question: Question) -> Observation:
        try:
            repo, number = _place(question)
            comments = self._hub.every(question, repo, f"issues/{number}/comments", {})
        except (Unreadable, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))
        ours = [number_of(item) for item in comments if bears(item, question.marker)]
        if not ours:
            return Observation(seen="absent")
        return Observation(
            seen="many" if len(ours) > 1 else "applied",
            effect={"comment": ours[0]},
            reference=ours[0],
            twins=tuple(ours) if len(ours) > 1 else (),
        )

    def place(self, question: Question) -> str:
        return _correction(question).place


def _observe(ours: list[JsonMap], known: str) -> Observation:
    """What pull requests bearing our marker say. A merged one is beyond closing."""
    merged = [item for item in ours if item.get("merged_at")]
    live = {number_of(item): item for item in ours if item.get("state") == "open"}
    if merged:
        detail = f"pull request #{number_of(merged[0])} was merged"
        return Observation(seen="diverged", state={"pull_request": "merged"}, detail=detail)
    if not live:
        return Observation(seen="absent", state={"pull_request": "closed" if ours else "none"})
    kept = known if known in live else min(live, key=int)
    return Observation(
        seen="many" if len(live) > 1 else "applied",
        state={"pull_request": "open"},
        effect={"number": kept, "url": live[kept].get("html_url")},
        reference=kept,
        twins=tuple(live) if len(live) > 1 else (),
    )


def _args(question: Question) -> DraftPullRequest:
    return DraftPullRequest.model_validate(dict(question.args))


def _correction(question: Question) -> CorrectionArgs:
    return CorrectionArgs.model_validate(dict(question.args))


def _place(question: Question) -> tuple[str, str]:
    scheme, _, rest = _correction(question).place.partition(":")
    repo, _, number = rest.rpartition("/")
    if scheme != "pr" or not repo or not number.isdigit():
        raise Refused(f"`{_correction(question).place}` names no pull request", code="bad_place")
    return repo, number
