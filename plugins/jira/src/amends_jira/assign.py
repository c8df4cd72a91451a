"""`jira.assign`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts
from amends_jira.arguments import AssignArgs
from amends_jira.client import Jira, look_before_sending
from amends_jira.values import map_of, project_of, text_of


class Assign(Capability):
    """Sets an issue's assignee; the former one is the before-image."""

    arguments = AssignArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.assign(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        before = self._assignee(question)
        key = text_of(question.args.get("key"))
        return Prepared(
            before=_image(before),
            input={"project": project_of(key)},
        )

    def do(self, call: Call) -> Receipt:
        args = AssignArgs.model_validate(dict(call.args))
        self._set(call, args.account_id)
        return Done(
            effect={"key": args.key, "account_id": args.account_id},
            reference=args.key,
            output={"key": args.key, "account_id": args.account_id},
            after=_image(args.account_id),
        )

    def probe(self, question: Question) -> Observation:
        asked, before = question.args.get("account_id"), question.before.get("account_id")
        key = text_of(question.args.get("key"))
        try:
            now = self._assignee(question)
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        if now == asked:
            effect = {"key": key, "account_id": now}
            return Observation(seen="applied", state={"assignee": "ours"}, effect=effect, reference=key)
        if now == before:
            return Observation(seen="absent", state={"assignee": "before"}, reference=key)
        return Observation(
            seen="diverged", state={"assignee": "others"}, reference=key, detail="somebody else assigned it since"
        )

    def undo(self, call: Call) -> Receipt:
        """Put the former assignee back, unless somebody has assigned the issue since."""
        with look_before_sending():
            now = self._assignee(call)
        if now != call.args.get("account_id"):
            raise Refused("the assignee is not as this run left it", code="diverged")
        before = call.before.get("account_id")
        self._set(call, before)
        return Done(reference=call.reference, after=_image(before))

    def verify_undone(self, question: Question) -> Observation:
        """The before-image stands again, also where it was equal to what this run set."""
        seen = self.probe(question)
        same = question.args.get("account_id") == question.before.get("account_id")
        return seen.model_copy(update={"seen": "absent"}) if same and seen.seen == "applied" else seen

    def _assignee(self, question: Question) -> Json:
        """The account id, or None for nobody. Raises `Unreadable`."""
        key = text_of(question.args.get("key"))
        issue = self._jira.must_read(question, f"issue/{key}", {"fields": "assignee"})
        fields = map_of(issue.get("fields"))
        if "assignee" not in fields:
            raise Unreadable(f"issue `{key}` shows no assignee field", code="not_jira")
        return text_of(map_of(fields["assignee"]).get("accountId")) or None

    def _set(self, call: Call, account_id: Json) -> None:
        key = text_of(call.args.get("key"))
        self._jira.write(call, "PUT", f"issue/{key}/assignee", {"accountId": account_id})


def _image(account_id: Json) -> JsonMap:
    """Before- and after-image in one form, so that a run that changed nothing is seen to have changed nothing."""
    return {"account_id": account_id, "summary": f"account {account_id}" if account_id else "unassigned"}
