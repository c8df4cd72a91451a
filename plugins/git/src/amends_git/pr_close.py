"""`git.close_pr`: an open pull request closed; its undo opens it again.

A second close by somebody else is not ours to take back: the recorded time of closing tells them apart.
"""

from __future__ import annotations

from amends.spi import Call, Capability, Contract, Done, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_git.arguments import ClosePullRequest
from amends_git.github import GitHub, number_of, part


class ClosePr(Capability):
    """See the module."""

    arguments = ClosePullRequest

    def __init__(self, contract: Contract, hub: GitHub) -> None:
        self.contract = contract
        self._hub = hub

    def prepare(self, question: Question) -> Prepared:
        args = _args(question)
        try:
            pull = self._read(question)
        except Unreadable as error:
            raise Refused(f"the pull request cannot be read: {error}", code="unreadable", again=True) from error
        if pull.get("merged_at"):
            raise Refused(f"pull request #{args.number} was merged", code="merged")
        shared = self._hub.options.repository(args.repo).shared(part(pull, "head", "ref"))
        return Prepared(before={"state": pull.get("state")}, input={"shared": shared})

    def do(self, call: Call) -> Receipt:
        if call.before.get("state") == "closed":
            return Done(reference=str(_args(call).number), after={"state": "closed"})
        return self._set(call, "closed")

    def probe(self, question: Question) -> Observation:
        try:
            pull = self._read(question)
        except (Unreadable, Refused) as error:
            return Observation(seen="inconclusive", detail=str(error))
        state, number = pull.get("state"), str(_args(question).number)
        recorded, closed_at = question.effect.get("closed_at"), pull.get("closed_at")
        if pull.get("merged_at"):
            return Observation(seen="diverged", state={"state": "merged"}, detail=f"#{number} was merged since")
        if state == "open":
            return Observation(seen="absent", state={"state": "open"})
        if recorded and recorded != closed_at:
            return Observation(seen="diverged", state={"state": "closed"}, detail=f"#{number} was closed anew since")
        return Observation(
            seen="applied",
            state={"state": "closed"},
            effect={"number": number, "closed_at": closed_at},
            reference=number,
        )

    def undo(self, call: Call) -> Receipt:
        return self._set(call, "open")

    def verify_undone(self, question: Question) -> Observation:
        seen = self.probe(question)
        if seen.seen == "applied" and question.before.get("state") == "closed":
            return seen.model_copy(update={"seen": "absent", "detail": "the action changed nothing"})
        return seen

    def _set(self, call: Call, state: str) -> Done:
        number = str(_args(call).number)
        pull = self._hub.write(call, _args(call).repo, "PATCH", f"pulls/{number}", {"state": state}).document()
        if number_of(pull) != number or pull.get("state") != state:
            raise Ambiguous(f"the answer does not show #{number} {state}", code="not_ours")
        effect: JsonMap = {"number": number, "closed_at": pull.get("closed_at")}
        return Done(effect=effect, output={"number": number}, reference=number, after={"state": state})

    def _read(self, question: Question) -> JsonMap:
        """The pull request. Raises `Unreadable`, also if the answer is about something else."""
        args = _args(question)
        return self._hub.pull(question, args.repo, args.number)


def _args(question: Question) -> ClosePullRequest:
    return ClosePullRequest.model_validate(dict(question.args))
