"""`jira.labels`: labels added and removed one by one, never the whole field: what others add stays."""

from __future__ import annotations

from collections.abc import Callable

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts, history, issues, marker
from amends_jira.arguments import LabelsArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.issues import Issue
from amends_jira.values import project_of, text_of, texts_of


class Labels(Capability):
    """Adds and removes labels. The before-image says which of the named ones stood: only what changed is restored."""

    arguments = LabelsArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.labels(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        args = LabelsArgs.model_validate(dict(question.args))
        issue = issues.read(self._jira, question, ["labels"], after=issues.NOTHING_YET)
        account = issues.account_of(self._jira, question)
        return Prepared(
            before=_image(_present(issue) & _named(question)),
            allocated={issues.AFTER: issue.newest, "account_id": account},
            input={"project": project_of(args.key)},
        )

    def do(self, call: Call) -> Receipt:
        args = LabelsArgs.model_validate(dict(call.args))
        self._change(call, set(args.add), set(args.remove), marker.history(call.marker))
        effect: JsonMap = {"key": args.key, "add": list(args.add), "remove": list(args.remove)}
        return Done(effect=effect, reference=args.key, output=effect, after=_image(set(args.add)))

    def probe(self, question: Question) -> Observation:
        """The named labels, and whose hand they are in, in one read."""
        try:
            return self._seen(question, issues.read(self._jira, question, ["labels"]))
        except Unreadable as unreadable:
            return unseen(unreadable)

    def undo(self, call: Call) -> Receipt:
        """Remove those that this run added and add those that it removed, unless somebody has changed them since."""
        with look_before_sending():
            seen = self._seen(call, issues.read(self._jira, call, ["labels"]))
        if seen.seen != "applied":
            raise Refused(seen.detail or "the labels are not as this run left them", code="diverged")
        before, after = _before(call), _after(call)
        self._change(call, before - after, after - before, marker.history(call.undo_marker, undo_of=call.marker))
        return Done(reference=call.reference, after=_image(before))

    def verify_undone(self, question: Question) -> Observation:
        """The named labels stand as before, whoever put them so, also where this run changed none of them."""
        try:
            issue = issues.read(self._jira, question, ["labels"])
            if _present(issue) & _named(question) != _before(question):
                return self._seen(question, issue)
        except Unreadable as unreadable:
            return unseen(unreadable)
        return Observation(seen="absent", state={"labels": "before"}, reference=issue.key)

    def _seen(self, question: Question, issue: Issue) -> Observation:
        account = issues.our_account(self._jira, question)
        touches = _touches(_before(question) ^ _after(question))
        hands = history.hands(issue.entries, touches, our_marker=question.marker, account=account)
        now = _present(issue) & _named(question)
        if now == _after(question):
            if hands.standing == "others":
                return _diverged(issue.key, "somebody else set them so")
            effect: JsonMap = {name: question.args.get(name) for name in ("key", "add", "remove")}
            return Observation(seen="applied", state={"labels": "ours"}, effect=effect, reference=issue.key)
        if now == _before(question):
            if hands.taken_back:
                return _diverged(issue.key, "our change landed and somebody took it back")
            return Observation(seen="absent", state={"labels": "before"}, reference=issue.key)
        return _diverged(issue.key, "somebody else changed one of these labels since")

    def _change(self, call: Call, add: set[str], remove: set[str], history_metadata: JsonMap) -> None:
        adding: list[Json] = [{"add": label} for label in sorted(add)]
        removing: list[Json] = [{"remove": label} for label in sorted(remove)]
        body: JsonMap = {"historyMetadata": history_metadata, "update": {"labels": [*adding, *removing]}}
        self._jira.write(call, "PUT", f"issue/{text_of(call.args.get('key'))}", body)


def _present(issue: Issue) -> set[str]:
    """The labels it bears now. Raises `Unreadable`."""
    labels = issue.fields.get("labels")
    if not isinstance(labels, list):
        raise Unreadable(f"issue `{issue.key}` shows no labels field", code="not_jira")
    return set(texts_of(labels))


def _named(question: Question) -> set[str]:
    return {*texts_of(question.args.get("add")), *texts_of(question.args.get("remove"))}


def _before(question: Question) -> set[str]:
    return set(texts_of(question.before.get("present")))


def _after(question: Question) -> set[str]:
    return set(texts_of(question.args.get("add")))


def _image(present: set[str]) -> JsonMap:
    """Which of the named labels stand, in one form before and after."""
    names: list[Json] = [*sorted(present)]
    return {"present": names, "summary": f"labels {', '.join(sorted(present))}" if present else "none of these labels"}


def _touches(changed: set[str]) -> Callable[[JsonMap], bool]:
    """Touches one of the labels that this run changed: the history tells the whole field, before and after."""

    def touches(item: JsonMap) -> bool:
        before, after = (set(text_of(item.get(side)).split()) for side in ("fromString", "toString"))
        return text_of(item.get("field")) == "labels" and bool((before ^ after) & changed)

    return touches


def _diverged(key: str, detail: str) -> Observation:
    return Observation(seen="diverged", state={"labels": "others"}, reference=key, detail=detail)
