"""Comments: written with our marker, found again by it in a complete listing, deleted."""

from __future__ import annotations

from amends.spi import Call, Done, JsonMap, Observation, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_jira import marker
from amends_jira.client import Jira
from amends_jira.text import document, plain
from amends_jira.values import created_seconds, text_of


def write(jira: Jira, call: Call, key: str, text: str) -> Receipt:
    """Post one comment on the issue `key`. Raises `Ambiguous` if Jira says created but gives no id."""
    body: JsonMap
    if jira.options.comment_marker == "text":
        body = {"body": document(f"{text}\n{marker.in_text(call.marker)}")}
    else:
        body = {"properties": marker.properties(call.marker), "body": document(text)}
    number = text_of(jira.write(call, "POST", f"issue/{key}/comment", body).get("id"))
    if not number:
        raise Ambiguous("jira answered success without a comment id", code="no_id")
    return Done(
        effect={"key": key, "comment_id": number},
        reference=reference(key, number),
        output={"key": key, "comment_id": number},
        after={"comment": "posted"},
    )


def look(jira: Jira, question: Question, key: str) -> Observation:
    """Every comment of the issue that bears our marker; absent only if all pages and all their markers were read."""
    query = {"orderBy": "-created", "expand": "properties"}
    listing = jira.listing(question, f"issue/{key}/comment", "comments", query=query)
    known = question.reference.partition("/")[2] or text_of(question.effect.get("comment_id"))
    ours: list[str] = []
    detail = listing.detail
    for item in listing.items:
        number = text_of(item.get("id"))
        try:
            if number and (number == known or _is_ours(jira, question, item)):
                ours.append(number)
        except Unreadable as unreadable:
            detail = str(unreadable)
    return _seen(key, ours, known, detail, complete=listing.complete and not detail)


def look_at_one(jira: Jira, question: Question, key: str, number: str) -> Observation:
    """Whether this very comment stands in a complete listing: its twins are other actions' business."""
    listing = jira.listing(question, f"issue/{key}/comment", "comments", query={"orderBy": "-created"})
    there = [number] if any(item.get("id") == number for item in listing.items) else []
    return _seen(key, there, number, listing.detail, complete=listing.complete)


def delete(jira: Jira, call: Call, key: str) -> Receipt:
    """Delete our comment; one that is gone already is done too, and the separate read decides (case A-03)."""
    known = call.reference or (call.observed.reference if call.observed is not None else "")
    where, _, number = known.partition("/")
    if where != key or not number:
        raise Refused(f"the reference `{known}` is not of issue `{key}`", code="foreign_reference")
    try:
        jira.write(call, "DELETE", f"issue/{key}/comment/{number}")
    except Refused as refused:
        if refused.code != "not_found":
            raise
    return Done(reference=known, after={"comment": "gone"})


def reference(key: str, number: str) -> str:
    """The provider's reference of a comment."""
    return f"{key}/{number}"


def _seen(key: str, ours: list[str], known: str, detail: str, *, complete: bool) -> Observation:
    if not ours:
        if not complete:
            return Observation(seen="inconclusive", detail=detail)
        return Observation(seen="absent", state={"comment": "gone"})
    kept = known if known in ours else min(ours, key=int) if all(n.isdigit() for n in ours) else ours[-1]
    many = len(ours) > 1
    return Observation(
        seen="many" if many else "applied",
        state={"comment": "posted"},
        effect={"key": key, "comment_id": kept},
        reference=reference(key, kept),
        twins=tuple(reference(key, number) for number in ours) if many else (),
        detail=detail,
    )


def _is_ours(jira: Jira, question: Question, comment: JsonMap) -> bool:
    """By property, as shown or else asked for; by text where properties cannot be set."""
    if jira.options.comment_marker == "text":
        return marker.in_text(question.marker) in plain(comment.get("body")).split("\n")
    shown = marker.of_properties(comment)
    if shown is None and _is_recent(jira, question, comment):
        number = text_of(comment.get("id"))
        held = jira.read(question, f"comment/{number}/properties/{marker.PROPERTY}")
        shown = marker.of_value(held.get("value")) if held is not None else ""
    return shown == question.marker


def _is_recent(jira: Jira, question: Question, comment: JsonMap) -> bool:
    """False only for what is older than our send, with a margin for their clock (case P-07): it cannot be ours."""
    created = created_seconds(comment)
    if created is None or question.sent_at_us is None:
        return True
    return created >= question.sent_at_us / 1_000_000 - jira.options.clock_margin_seconds
