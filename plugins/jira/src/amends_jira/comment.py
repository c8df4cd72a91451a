"""`jira.comment`, and the corrector that serves `jira:{key}`."""

from __future__ import annotations

import re

from amends.spi import Call, Capability, CorrectionArgs, Corrector, Observation, Prepared, Question, Receipt, Refused
from amends_jira import comments, contracts
from amends_jira.arguments import CommentArgs
from amends_jira.client import Jira
from amends_jira.values import project_of, text_of

_PLACE = re.compile(rf"jira:({contracts.KEY})")


class Comment(Capability):
    """One comment on an issue."""

    arguments = CommentArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.comment(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        key = text_of(question.args.get("key"))
        self._jira.must_read(question, f"issue/{key}", {"fields": "status"})
        return Prepared(input={"project": project_of(key), "customer_facing": self._jira.options.customer_facing})

    def do(self, call: Call) -> Receipt:
        args = CommentArgs.model_validate(dict(call.args))
        return comments.write(self._jira, call, args.key, args.text)

    def probe(self, question: Question) -> Observation:
        key, text = _where_and_what(question)
        return comments.look(self._jira, question, key, text)

    def undo(self, call: Call) -> Receipt:
        key, text = _where_and_what(call)
        return comments.delete(self._jira, call, key, text)

    def verify_undone(self, question: Question) -> Observation:
        key, _, number = question.reference.partition("/")
        if not number:
            return self.probe(question)
        return comments.look_at_one(self._jira, question, key, number, _where_and_what(question)[1])


class IssueCorrection(Corrector):
    """Posts a correction as a comment on the issue it is about."""

    scheme = "jira"

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.correction(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        """Raises `Refused` for a place that is no issue, `Unreadable` if the issue cannot be seen."""
        self._jira.must_read(question, f"issue/{_key(question)}", {"fields": "status"})
        return Prepared()

    def do(self, call: Call) -> Receipt:
        return comments.write(self._jira, call, _key(call), _args(call).text)

    def probe(self, question: Question) -> Observation:
        return comments.look(self._jira, question, _key(question), _args(question).text)

    def place(self, question: Question) -> str:
        return _args(question).place


def _where_and_what(question: Question) -> tuple[str, str]:
    return text_of(question.args.get("key")), text_of(question.args.get("text"))


def _args(question: Question) -> CorrectionArgs:
    return CorrectionArgs.model_validate(dict(question.args))


def _key(question: Question) -> str:
    place = _args(question).place
    found = _PLACE.fullmatch(place)
    if found is None:
        raise Refused(f"the place `{place}` names no issue", code="place_unknown")
    return found[1]
