"""`jira.create`."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_jira import contracts, marker
from amends_jira.arguments import CreateArgs
from amends_jira.client import MOST_PAGES, PAGE, Jira, Listing, look_before_sending
from amends_jira.text import document
from amends_jira.values import created_seconds, map_of, maps_of, text_of


class Create(Capability):
    """A new issue. A key in the answer is success, whatever happens next (case A-07)."""

    arguments = CreateArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.create(jira.options)
        self._jira = jira

    def do(self, call: Call) -> Receipt:
        args = CreateArgs.model_validate(dict(call.args))
        fields: JsonMap = {
            **args.fields,
            "project": {"key": args.project},
            "issuetype": {"name": args.issuetype},
            "summary": args.summary,
        }
        if args.description:
            fields["description"] = document(args.description)
        answer = self._jira.write(
            call, "POST", "issue", {"properties": marker.properties(call.marker), "fields": fields}
        )
        key = text_of(answer.get("key"))
        if not key:
            raise Ambiguous("jira answered success without an issue key", code="no_key")
        effect: JsonMap = {"key": key, "id": text_of(answer.get("id"))}
        return Done(effect=effect, reference=key, output={"key": key}, after={"issue": "present"})

    def probe(self, question: Question) -> Observation:
        """By key where it is known, and by search for every issue that bears our marker.

        Search is eventually consistent, so its `absent` is never final; a key that is not found soon after it was given
        out may only be late (case P-06), so that is `inconclusive`.
        """
        known = question.reference
        try:
            there = bool(known) and self._jira.read(question, f"issue/{known}", {"fields": "status"}) is not None
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        found = _search(self._jira, question)
        ours = [text_of(item.get("key")) for item in found.items]
        if there and known not in ours:
            ours.insert(0, known)
        if ours:
            return self._present(question, ours, known, found.detail)
        if known:
            return Observation(
                seen="inconclusive", reference=known, detail=f"`{known}` is not there, or not visible yet"
            )
        if not found.complete:
            return Observation(seen="inconclusive", detail=found.detail)
        return Observation(seen="absent", state={"issue": "not_found"}, detail="search does not know it (yet)")

    def undo(self, call: Call) -> Receipt:
        """Delete the issue, unless somebody has worked on it since the probe."""
        known = call.reference or (call.observed.reference if call.observed is not None else "")
        if not known:
            raise Refused("the issue's key is not known", code="key_unknown")
        with look_before_sending():
            worked_on = self._worked_on(call, known)
        if worked_on:
            raise Refused(f"somebody has worked on `{known}`", code="diverged")
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
            there = self._jira.read(question, f"issue/{known}", {"fields": "status"})
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        if there is None:
            return Observation(seen="absent", state={"issue": "gone"}, reference=known)
        return Observation(seen="applied", state={"issue": "present"}, effect={"key": known}, reference=known)

    def prepare(self, question: Question) -> Prepared:
        """Nothing to read: an issue that is not there has no before-image."""
        return Prepared()

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

    def _worked_on(self, question: Question, key: str) -> bool:
        """True if the issue has a comment or a change: deleting it would destroy later work. Raises `Unreadable`."""
        few = {"startAt": "0", "maxResults": "1"}
        changed = self._jira.must_read(question, f"issue/{key}/changelog", few).get("total")
        commented = self._jira.must_read(question, f"issue/{key}/comment", few).get("total")
        return bool(changed) or bool(commented)


def _search(jira: Jira, question: Question) -> Listing:
    """Issues of the project that bear our marker, newest first, each hit re-checked on our side."""
    project = text_of(question.args.get("project"))
    body: JsonMap = {
        "jql": f'project = "{project}" ORDER BY created DESC',
        "fields": ["created"],
        "properties": [marker.PROPERTY],
        "maxResults": PAGE,
    }
    ours: list[JsonMap] = []
    for _ in range(MOST_PAGES):
        try:
            page = jira.ask(question, "search/jql", body)
            if page is None or not isinstance(page.get("issues"), list):
                return Listing(tuple(ours), complete=False, detail="search gave no listing")
            recent = [item for item in maps_of(page.get("issues")) if _is_recent(jira, question, item)]
            ours.extend(item for item in recent if _is_ours(jira, question, item))
        except Unreadable as unreadable:
            return Listing(tuple(ours), complete=False, detail=str(unreadable))
        token = text_of(page.get("nextPageToken"))
        if not token:
            return Listing(tuple(ours), complete=True)
        body = {**body, "nextPageToken": token}
    return Listing(tuple(ours), complete=False, detail=f"search has more than {MOST_PAGES} pages")


def _is_recent(jira: Jira, question: Question, issue: JsonMap) -> bool:
    """False only for what is older than our send, with a margin for their clock (case P-07)."""
    created = created_seconds(map_of(issue.get("fields")))
    if created is None or question.sent_at_us is None:
        return True
    return created >= question.sent_at_us / 1_000_000 - jira.options.clock_margin_seconds


def _is_ours(jira: Jira, question: Question, issue: JsonMap) -> bool:
    shown = marker.of_properties(issue)
    if shown is None:
        held = jira.read(question, f"issue/{text_of(issue.get('key'))}/properties/{marker.PROPERTY}")
        shown = marker.of_value(held.get("value")) if held is not None else ""
    return shown == question.marker
