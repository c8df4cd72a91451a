"""`jira.transition`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts, marker, workflow
from amends_jira.arguments import TransitionArgs
from amends_jira.client import Jira, look_before_sending
from amends_jira.values import map_of, project_of, text_of


class Transition(Capability):
    """Moves an issue to a status by a transition that is available at that moment."""

    arguments = TransitionArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.transition(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        """Read the status, the ways out of it, and how long the changelog is: later entries are what happened since."""
        args = TransitionArgs.model_validate(dict(question.args))
        status = self._status(question)
        if workflow.same(status, args.to):
            raise Refused(f"`{args.key}` is in status `{status}` already", code="already_there")
        way = workflow.choose(self._ways(question), args.to, args.transition, args.fields)
        changelog = self._jira.must_read(question, f"issue/{args.key}/changelog", {"startAt": "0", "maxResults": "1"})
        account = text_of((self._jira.read(question, "myself") or {}).get("accountId"))
        return Prepared(
            before={"status": status, "summary": status},
            allocated={"transition_id": way.id, "changelog_seen": changelog.get("total"), "account_id": account},
            input={"project": project_of(args.key), "customer_facing": self._jira.options.customer_facing},
        )

    def do(self, call: Call) -> Receipt:
        args = TransitionArgs.model_validate(dict(call.args))
        self._move(call, text_of(call.allocated.get("transition_id")), args.fields, marker.history(call.marker))
        return Done(
            effect={"key": args.key, "status": args.to},
            reference=args.key,
            output={"key": args.key, "status": args.to},
            after={"status": args.to},
        )

    def probe(self, question: Question) -> Observation:
        """Two separate reads: the status, and who moved it since `prepare`."""
        key = text_of(question.args.get("key"))
        seen = question.allocated.get("changelog_seen")
        start = seen if isinstance(seen, int) else 0
        try:
            status = self._status(question)
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        changelog = self._jira.listing(question, f"issue/{key}/changelog", "values", start=start)
        if not changelog.complete:
            return Observation(seen="inconclusive", detail=changelog.detail)
        found = workflow.judge(
            changelog.items,
            status=status,
            before=text_of(question.before.get("status")),
            to=text_of(question.args.get("to")),
            our_marker=question.marker,
            our_account=text_of(question.allocated.get("account_id")),
        )
        return found.model_copy(update={"reference": key, "effect": {**found.effect, "key": key}})

    def undo(self, call: Call) -> Receipt:
        """The reverse transition, if the workflow has one and nobody has moved the issue since."""
        before, to = text_of(call.before.get("status")), text_of(call.args.get("to"))
        with look_before_sending():
            now = self._status(call)
            if not workflow.same(now, to):
                raise Refused(f"the status is `{now}`, not `{to}` as this run left it", code="diverged")
            way = _way_back(self._ways(call), before)
        self._move(call, way.id, {}, marker.history(call.undo_marker, undo_of=call.marker))
        return Done(reference=call.reference, after={"status": before})

    def verify_undone(self, question: Question) -> Observation:
        """The status alone: whoever moved it, the before-image stands again or it does not."""
        before, to = text_of(question.before.get("status")), text_of(question.args.get("to"))
        try:
            status = self._status(question)
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        seen = "absent" if workflow.same(status, before) else "applied" if workflow.same(status, to) else "diverged"
        return Observation.model_validate({"seen": seen, "state": {"status": status, "moved": "ours"}})

    def _status(self, question: Question) -> str:
        key = text_of(question.args.get("key"))
        issue = self._jira.must_read(question, f"issue/{key}", {"fields": "status"})
        status = text_of(map_of(map_of(issue.get("fields")).get("status")).get("name"))
        if not status:
            raise Unreadable(f"issue `{key}` shows no status", code="not_jira")
        return status

    def _ways(self, question: Question) -> tuple[workflow.Way, ...]:
        key = text_of(question.args.get("key"))
        path = f"issue/{key}/transitions"
        return workflow.ways(self._jira.must_read(question, path, {"expand": "transitions.fields"}))

    def _move(self, call: Call, transition_id: str, fields: JsonMap, history: JsonMap) -> None:
        body: JsonMap = {"transition": {"id": transition_id}, "historyMetadata": history}
        if fields:
            body["fields"] = fields
        self._jira.write(call, "POST", f"issue/{text_of(call.args.get('key'))}/transitions", body)


def _way_back(available: tuple[workflow.Way, ...], before: str) -> workflow.Way:
    """A reverse transition that asks for nothing. Raises `Refused`: the workflow may not have one."""
    for way in available:
        if workflow.same(way.to, before) and not way.required:
            return way
    raise Refused(f"the workflow has no transition back to `{before}`", code="no_reverse_transition")
