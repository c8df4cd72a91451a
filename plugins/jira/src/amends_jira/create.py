"""`jira.create`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_jira import contracts, finding, issues, marker
from amends_jira.arguments import CreateArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.text import document, wiki
from amends_jira.values import maps_of, text_of


class Create(Capability):
    """A new issue. A key in the answer is kept, whatever happens next (case A-07); that the issue is ours is confirmed
    by reading it, because a gateway may have answered with somebody else's key.
    """

    arguments = CreateArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.create(jira.options)
        self._jira = jira

    def do(self, call: Call) -> Receipt:
        answer = self._jira.write(call, "POST", "issue", self._body(call))
        key = text_of(answer.get("key"))
        if not key:
            raise Ambiguous("jira answered success without an issue key", code="no_key")
        effect: JsonMap = {"key": key, "id": text_of(answer.get("id"))}
        return Done(effect=effect, reference=key, output={"key": key})  # no after-image until it has been seen

    def probe(self, question: Question) -> Observation:
        """By key where it is known, and by search for every issue that bears our marker.

        Search is eventually consistent, so its `absent` is never final; a key that is not found soon after it was given
        out may only be late (case P-06), so that is `inconclusive`, and so is one that does not bear our marker. Only
        an issue that was seen before and is not found in a project that we still see is gone.
        """
        known = question.reference
        try:
            there = finding.by_key(self._jira, question, known) if known else "not_there"
            gone = bool(known) and there == "not_there" and self._is_gone(question)
        except Unreadable as unreadable:
            return unseen(unreadable)
        found = finding.by_search(self._jira, question)
        ours = [text_of(item.get("key")) for item in found.items]
        if there == "ours" and known not in ours:
            ours.insert(0, known)
        if ours:
            return self._present(question, ours, known, found.detail)
        if gone:
            return Observation(seen="absent", state={"issue": "gone"}, reference=known)
        if known:
            detail = f"`{known}` is not there, or not visible yet"
            if there == "not_ours":
                detail = f"`{known}` is there, but does not bear our marker"
            return Observation(seen="inconclusive", reference=known, detail=detail)
        if not found.complete:
            later = found.retry_after_seconds
            return Observation(seen="inconclusive", detail=found.detail, retry_after_seconds=later)
        return Observation(seen="absent", state={"issue": "not_found"}, detail="search does not know it (yet)")

    def undo(self, call: Call) -> Receipt:
        """Delete the issue, if it is ours and nobody has worked on it since the probe."""
        known = call.reference or (call.observed.reference if call.observed is not None else "")
        if not known:
            raise Refused("the issue's key is not known", code="key_unknown")
        with look_before_sending():
            there = finding.by_key(self._jira, call, known)
            worked_on = there == "ours" and self._worked_on(call, known)
        if there == "not_ours":
            raise Refused(f"`{known}` does not bear our marker", code="foreign_reference")
        if worked_on:
            raise Refused(f"somebody has worked on `{known}`", code="diverged")
        if there == "not_there":
            return Done(reference=known, after={"issue": "gone"})
        try:
            self._jira.write(call, "DELETE", f"issue/{known}")
        except Refused as refused:
            if refused.code != "not_found":
                raise
        return Done(reference=known, after={"issue": "gone"})

    def verify_undone(self, question: Question) -> Observation:
        """A separate read by key; not found after our delete means gone."""
        known = question.reference
        if not known:
            return self.probe(question)
        try:
            there = finding.by_key(self._jira, question, known)
        except Unreadable as unreadable:
            return unseen(unreadable)
        if there == "not_there":
            return Observation(seen="absent", state={"issue": "gone"}, reference=known)
        if there == "not_ours":
            detail = f"`{known}` is there, but does not bear our marker"
            return Observation(seen="inconclusive", reference=known, detail=detail)
        return Observation(seen="applied", state={"issue": "present"}, effect={"key": known}, reference=known)

    def _body(self, call: Call) -> JsonMap:
        """Our marker first: a property on Cloud, else a label."""
        args = CreateArgs.model_validate(dict(call.args))
        cloud = self._jira.options.cloud
        body: JsonMap = {"properties": marker.properties(call.marker)} if cloud else {}
        fields: JsonMap = {}
        if not cloud:
            given = args.fields.get("labels")
            labels: list[Json] = [marker.label(call.marker), *(given if isinstance(given, list) else [])]
            fields["labels"] = labels
        fields |= {name: value for name, value in args.fields.items() if name not in fields}
        fields |= {"project": {"key": args.project}, "issuetype": {"name": args.issuetype}, "summary": args.summary}
        if args.description:
            fields["description"] = document(args.description) if cloud else wiki(args.description)
        return {**body, "fields": fields}

    def _present(self, question: Question, ours: list[str], known: str, detail: str) -> Observation:
        kept = known if known in ours else ours[0]
        try:
            state = "worked_on" if self._worked_on(question, kept) else "untouched"
        except Unreadable as unreadable:
            state, detail = "present", str(unreadable)
        return Observation(
            seen="many" if len(ours) > 1 else "applied",
            state={"issue": state},
            effect={"key": kept},
            reference=kept,
            twins=tuple(ours) if len(ours) > 1 else (),
            detail=detail,
        )

    def _is_gone(self, question: Question) -> bool:
        """True for an issue that was seen before, in a project that this account still sees. Raises `Unreadable`."""
        project = text_of(question.args.get("project"))
        return bool(question.after) and bool(self._jira.must_read(question, f"project/{project}"))

    def _worked_on(self, question: Question, key: str) -> bool:
        """True if the issue has a comment, a subtask or a change: deleting it would destroy later work.

        Raises `Unreadable`.
        """
        few = {"startAt": "0", "maxResults": "1"}
        issue = issues.read(self._jira, question, ["subtasks"], key=key, after=0)
        commented = self._jira.must_read(question, f"issue/{key}/comment", few).get("total")
        return bool(issue.entries) or bool(commented) or bool(maps_of(issue.fields.get("subtasks")))
