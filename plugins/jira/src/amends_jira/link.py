"""`jira.link`: a link between two issues. It can carry no marker, so it is told by what it links."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts, history, issues
from amends_jira.arguments import LinkArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.issues import Issue
from amends_jira.values import map_of, maps_of, project_of, text_of
from amends_jira.workflow import same


class Link(Capability):
    """Links two issues: `key` "blocks" (or as the type says) `target`. A link that stands already is refused, so that
    one which is found later is new since `prepare`.
    """

    arguments = LinkArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.link(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        args = LinkArgs.model_validate(dict(question.args))
        if args.key == args.target:
            raise Refused("an issue cannot be linked to itself", code="same_issue")
        issue = issues.read(self._jira, question, ["issuelinks"], after=issues.NOTHING_YET)
        if _links(question, issue):
            raise Refused(f"`{args.key}` has this link to `{args.target}` already", code="already_there")
        issues.read(self._jira, question, ["status"], key=args.target, after=issues.NOTHING_YET)
        return Prepared(
            allocated={issues.AFTER: issue.newest, "account_id": issues.account_of(self._jira, question)},
            input={"project": project_of(args.key)},
        )

    def do(self, call: Call) -> Receipt:
        """The answer names nothing: the separate read finds the link's id."""
        args = LinkArgs.model_validate(dict(call.args))
        body: JsonMap = {
            "type": {"name": args.type},
            "inwardIssue": {"key": args.key},
            "outwardIssue": {"key": args.target},
        }
        self._jira.write(call, "POST", "issueLink", body)
        effect: JsonMap = {"key": args.key, "type": args.type, "target": args.target}
        return Done(effect=effect, reference=args.key, output=effect, after={"link": "present"})

    def probe(self, question: Question) -> Observation:
        """Every such link of the issue, and whose hand it is in, in one read."""
        try:
            return self._seen(question, issues.read(self._jira, question, ["issuelinks"]))
        except Unreadable as unreadable:
            return unseen(unreadable)

    def undo(self, call: Call) -> Receipt:
        """Delete the link by the id that it has now, unless somebody else made it or it is gone."""
        with look_before_sending():
            issue = issues.read(self._jira, call, ["issuelinks"])
            seen = self._seen(call, issue)
        found = _links(call, issue)
        if seen.seen == "diverged":
            raise Refused(seen.detail, code="diverged")
        if not found:
            return Done(reference=call.reference, after={"link": "gone"})
        number = _number(call.reference)
        chosen = number if number in found else found[0]
        try:
            self._jira.write(call, "DELETE", f"issueLink/{chosen}")
        except Refused as refused:
            if refused.code != "not_found":
                raise
        return Done(reference=call.reference, after={"link": "gone"})

    def verify_undone(self, question: Question) -> Observation:
        """That very link is gone; where its id was never known, every such link."""
        number = _number(question.reference)
        try:
            issue = issues.read(self._jira, question, ["issuelinks"])
        except Unreadable as unreadable:
            return unseen(unreadable)
        found = _links(question, issue)
        if number and number not in found:
            return Observation(seen="absent", state={"link": "gone"})
        return self._seen(question, issue)

    def _seen(self, question: Question, issue: Issue) -> Observation:
        found = _links(question, issue)
        if not found:
            return Observation(seen="absent", state={"link": "gone"})
        target = text_of(question.args.get("target"))
        account = issues.our_account(self._jira, question)
        hands = history.hands(
            issue.entries, lambda item: _links_to(item, target), our_marker=question.marker, account=account
        )
        if hands.standing == "others":
            return Observation(seen="diverged", state={"link": "others"}, detail="somebody else made this link")
        number = _number(question.reference)
        kept = number if number in found else found[0]
        effect: JsonMap = {name: question.args.get(name) for name in ("key", "type", "target")}
        return Observation(
            seen="many" if len(found) > 1 else "applied",
            state={"link": "present"},
            effect={**effect, "link_id": kept},
            reference=f"{issue.key}/{kept}",
            twins=tuple(f"{issue.key}/{one}" for one in found) if len(found) > 1 else (),
        )


def _links(question: Question, issue: Issue) -> list[str]:
    """The ids of the links of this type from `key` to `target`. Raises `Unreadable`."""
    shown: Json = issue.fields.get("issuelinks")
    if not isinstance(shown, list):
        raise Unreadable(f"issue `{issue.key}` shows no links", code="not_jira")
    kind, target = text_of(question.args.get("type")), text_of(question.args.get("target"))
    return [
        text_of(link.get("id"))
        for link in maps_of(shown)
        if same(text_of(map_of(link.get("type")).get("name")), kind)
        and text_of(map_of(link.get("outwardIssue")).get("key")) == target
        and text_of(link.get("id"))
    ]


def _links_to(item: JsonMap, target: str) -> bool:
    return text_of(item.get("field")) == "Link" and text_of(item.get("to")) == target


def _number(reference: str) -> str:
    return reference.partition("/")[2]
