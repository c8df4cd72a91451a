"""`jira.assign`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts, history, issues, marker
from amends_jira.arguments import AssignArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.issues import Issue
from amends_jira.values import project_of, text_of

_ASSIGNED = history.field_is("assignee")


class Assign(Capability):
    """Sets an issue's assignee; the former one is the before-image. Sent as an edit, which can carry our marker."""

    arguments = AssignArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.assign(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        issue = issues.read(self._jira, question, ["assignee"], after=issues.NOTHING_YET)
        account = issues.account_of(self._jira, question)
        return Prepared(
            before=_image(self._assignee(issue)),
            allocated={issues.AFTER: issue.newest, "account_id": account},
            input={"project": project_of(issue.key)},
        )

    def do(self, call: Call) -> Receipt:
        args = AssignArgs.model_validate(dict(call.args))
        self._set(call, args.account_id, marker.history(call.marker))
        return Done(
            effect={"key": args.key, "account_id": args.account_id},
            reference=args.key,
            output={"key": args.key, "account_id": args.account_id},
            after=_image(args.account_id),
        )

    def probe(self, question: Question) -> Observation:
        """The assignee, and whose hand put them there, in one read."""
        try:
            issue = issues.read(self._jira, question, ["assignee"])
            return self._seen(question, issue)
        except Unreadable as unreadable:
            return unseen(unreadable)

    def undo(self, call: Call) -> Receipt:
        """Put the former assignee back, unless somebody has assigned the issue since."""
        with look_before_sending():
            seen = self._seen(call, issues.read(self._jira, call, ["assignee"]))
        if seen.seen != "applied":
            raise Refused(seen.detail or "the assignee is not as this run left it", code="diverged")
        before = call.before.get("account_id")
        self._set(call, before, marker.history(call.undo_marker, undo_of=call.marker))
        return Done(reference=call.reference, after=_image(before))

    def verify_undone(self, question: Question) -> Observation:
        """The before-image stands again, whoever put it back, also where it was equal to what this run set."""
        try:
            issue = issues.read(self._jira, question, ["assignee"])
            if self._assignee(issue) != question.before.get("account_id"):
                return self._seen(question, issue)
        except Unreadable as unreadable:
            return unseen(unreadable)
        return Observation(seen="absent", state={"assignee": "before"}, reference=issue.key)

    def _seen(self, question: Question, issue: Issue) -> Observation:
        account = issues.our_account(self._jira, question)
        hands = history.hands(issue.entries, _ASSIGNED, our_marker=question.marker, account=account)
        now = self._assignee(issue)
        if now == question.args.get("account_id"):
            if hands.standing == "others":
                return _diverged(issue.key, "somebody else assigned it so")
            effect: JsonMap = {"key": issue.key, "account_id": now}
            return Observation(seen="applied", state={"assignee": "ours"}, effect=effect, reference=issue.key)
        if now == question.before.get("account_id"):
            if hands.taken_back:
                return _diverged(issue.key, "our assignment landed and somebody took it back")
            return Observation(seen="absent", state={"assignee": "before"}, reference=issue.key)
        return _diverged(issue.key, "somebody else assigned it since")

    def _assignee(self, issue: Issue) -> str | None:
        """Who has it now; None for nobody. Raises `Unreadable`."""
        if "assignee" not in issue.fields:
            raise Unreadable(f"issue `{issue.key}` shows no assignee field", code="not_jira")
        return issues.person(self._jira, issue.fields["assignee"])

    def _set(self, call: Call, who: Json, history_metadata: JsonMap) -> None:
        assignee: Json = {self._jira.options.person_field: who} if who else None
        body: JsonMap = {"historyMetadata": history_metadata, "fields": {"assignee": assignee}}
        self._jira.write(call, "PUT", f"issue/{text_of(call.args.get('key'))}", body)


def _diverged(key: str, detail: str) -> Observation:
    return Observation(seen="diverged", state={"assignee": "others"}, reference=key, detail=detail)


def _image(account_id: Json) -> JsonMap:
    """Before- and after-image in one form, so that a run that changed nothing is seen to have changed nothing."""
    return {"account_id": account_id, "summary": f"account {account_id}" if account_id else "unassigned"}
