"""`jira.transition`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_jira import contracts, history, issues, marker, wayback, workflow
from amends_jira.arguments import TransitionArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.issues import Issue
from amends_jira.values import map_of, name_of, project_of, settable, text_of

_MOVED = history.field_is("status")


class Transition(Capability):
    """Moves an issue to a status by a transition that is available at that moment."""

    arguments = TransitionArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.transition(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        """Read the status, the ways out of it, what their screens ask for, and where the changelog ends: later entries
        are what happened since. The before-image keeps what a screen will set, and the resolution.
        """
        args = TransitionArgs.model_validate(dict(question.args))
        fields = {"status", "resolution", *args.fields}
        issue = issues.read(self._jira, question, sorted(fields), after=issues.NOTHING_YET)
        status = _status(issue)
        if workflow.same(status, args.to):
            raise Refused(f"`{args.key}` is in status `{status}` already", code="already_there")
        available = wayback.ways_of(self._jira, question, args.key)
        way = workflow.choose(available, args.to, args.transition, args.fields)
        added: list[Json] = list(way.added(args.fields))
        held: JsonMap = {
            name: settable(issue.fields.get(name)) for name in sorted(fields - {"status"}) if name not in added
        }
        account = issues.account_of(self._jira, question)
        return Prepared(
            before={"status": status, "summary": status, "fields": held},
            allocated={
                "transition_id": way.id,
                "added": added,
                issues.AFTER: issue.newest,
                "account_id": account,
            },
            input={"project": project_of(args.key), "customer_facing": self._jira.options.customer_facing},
        )

    def do(self, call: Call) -> Receipt:
        args = TransitionArgs.model_validate(dict(call.args))
        added = call.allocated.get("added")
        adding = added if isinstance(added, list) else []
        body: JsonMap = {
            "historyMetadata": marker.history(call.marker),
            "transition": {"id": call.allocated.get("transition_id")},
        }
        setting = {name: value for name, value in args.fields.items() if name not in adding}
        update: JsonMap = {name: [{"add": value}] for name, value in args.fields.items() if name in adding}
        self._move(call, body, setting, update, start=text_of(call.before.get("status")))
        return Done(
            effect={"key": args.key, "status": args.to},
            reference=args.key,
            output={"key": args.key, "status": args.to},
            after={"status": args.to},
        )

    def probe(self, question: Question) -> Observation:
        """The status, and who moved it since `prepare`, in one read."""
        try:
            return self._seen(question, issues.read(self._jira, question, ["status"]))
        except Unreadable as unreadable:
            return unseen(unreadable)

    def undo(self, call: Call) -> Receipt:
        """One step of the way back, unless somebody has moved the issue since; most ways back are one step long.

        A step that does not arrive leaves the effect `applied`: the next attempt takes the next step.
        """
        before, held = text_of(call.before.get("status")), map_of(call.before.get("fields"))
        known = {name: value for name, value in held.items() if value is not None}
        with look_before_sending():
            issue = issues.read(self._jira, call, ["status", "issuetype"])
            seen = self._seen(call, issue)
            if seen.seen != "applied":
                raise Refused(seen.detail or f"the status is `{_status(issue)}` again", code="diverged")
            issuetype = text_of(map_of(issue.fields.get("issuetype")).get("name"))
            # Half-way, only our mark in the history tells our own step from somebody else's move.
            steps = self._jira.options.way_back_steps if self._hands(call, issue).landed else 1
            way = wayback.first_step(self._jira, call, issuetype, before, known, most_steps=steps)
        given = {name: held[name] for name in way.screen if name in held and self._gives_back(call, way, name)}
        metadata = marker.history(call.undo_marker, undo_of=call.marker)
        self._move(call, {"historyMetadata": metadata, "transition": {"id": way.id}}, given, {}, start=_status(issue))
        return Done(reference=call.reference, after={"status": way.to})

    def verify_undone(self, question: Question) -> Observation:
        """The before-image stands again, whoever moved it: the status, and every field that the screen had set."""
        before, held = text_of(question.before.get("status")), map_of(question.before.get("fields"))
        given = [name for name in map_of(question.args.get("fields")) if name in held]
        try:
            issue = issues.read(self._jira, question, ["status", *given])
        except Unreadable as unreadable:
            return unseen(unreadable)
        if not workflow.same(_status(issue), before):
            return self._seen(question, issue)
        state: JsonMap = {"status": _status(issue), "moved": "ours"}
        left = [name for name in given if name_of(issue.fields.get(name)) != name_of(held[name])]
        if left:
            detail = f"the status is back, but `{', '.join(left)}` is not as it was"
            return Observation(seen="diverged", state=state, detail=detail)
        return Observation(seen="absent", state=state)

    def _hands(self, question: Question, issue: Issue) -> history.Hands:
        account = issues.our_account(self._jira, question)
        return history.hands(issue.entries, _MOVED, our_marker=question.marker, account=account)

    def _seen(self, question: Question, issue: Issue) -> Observation:
        found = workflow.judge(
            self._hands(question, issue),
            status=_status(issue),
            before=text_of(question.before.get("status")),
            to=text_of(question.args.get("to")),
        )
        return found.model_copy(update={"reference": issue.key, "effect": {**found.effect, "key": issue.key}})

    def _gives_back(self, call: Call, way: workflow.Way, name: str) -> bool:
        """What the way back must be given, and what the way there had set."""
        return name in way.required or name in map_of(call.args.get("fields"))

    def _move(self, call: Call, body: JsonMap, fields: JsonMap, update: JsonMap, *, start: str) -> None:
        """Make the transition from the status `start`. A request that arrives a second time finds no such transition
        any more, so its 400 proves only then that nothing moved if the issue still stands there.
        """
        key = text_of(call.args.get("key"))
        if fields:
            body = {**body, "fields": fields}
        if update:
            body = {**body, "update": update}
        try:
            self._jira.write(call, "POST", f"issue/{key}/transitions", body)
        except Refused as refused:
            if refused.code == "bad_request" and not self._stands_in(call, key, start):
                raise Ambiguous(f"{refused}; but the issue has moved", code="http_400", status=400) from None
            raise

    def _stands_in(self, call: Call, key: str, status: str) -> bool:
        """Whether the issue is seen in this status."""
        try:
            return workflow.same(_status(issues.read(self._jira, call, ["status"], key=key)), status)
        except Unreadable:
            return False


def _status(issue: Issue) -> str:
    """Raises `Unreadable`."""
    status = text_of(map_of(issue.fields.get("status")).get("name"))
    if not status:
        raise Unreadable(f"issue `{issue.key}` shows no status", code="not_jira")
    return status
