"""Comments: written with our marker, found again by it in a complete listing, deleted."""

from __future__ import annotations

from amends.spi import Call, Done, JsonMap, Observation, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_jira import marker
from amends_jira.client import Jira, look_before_sending
from amends_jira.text import document, plain, wiki
from amends_jira.values import created_seconds, text_of


def write(jira: Jira, call: Call, key: str, text: str) -> Receipt:
    """Post one comment on the issue `key`. Raises `Ambiguous` if Jira says created but gives no id."""
    body: JsonMap = {} if jira.options.marks_text else {"properties": marker.properties(call.marker)}
    said = _said(jira, call, text)
    body["body"] = document(said) if jira.options.cloud else said
    number = text_of(jira.write(call, "POST", f"issue/{key}/comment", body).get("id"))
    if not number:
        raise Ambiguous("jira answered success without a comment id", code="no_id")
    return Done(
        effect={"key": key, "comment_id": number},
        reference=reference(key, number),
        output={"key": key, "comment_id": number},
        after={"comment": "posted"},
    )


def look(jira: Jira, question: Question, key: str, text: str) -> Observation:
    """Every comment of the issue that bears our marker; absent only if all pages and all their markers were read.

    An id that was answered is no proof: the comment it names must bear the marker too.
    """
    query = {"orderBy": "-created", "expand": "properties"}
    listing = jira.listing(question, f"issue/{key}/comment", "comments", query=query)
    ours: dict[str, JsonMap] = {}
    detail = listing.detail
    for item in listing.items:
        number = text_of(item.get("id"))
        try:
            if number and _is_ours(jira, question, item):
                ours[number] = item
        except Unreadable as unreadable:
            detail = str(unreadable)
    known = question.reference.partition("/")[2] or text_of(question.effect.get("comment_id"))
    if known and known not in ours and jira.options.marks_text and _by_id(listing.items, known) is not None:
        detail = f"comment {known} is there, but does not bear our marker"
    if not ours and not listing.complete:
        later = listing.retry_after_seconds
        return Observation(seen="inconclusive", detail=detail, retry_after_seconds=later)
    return _seen(jira, question, key, ours, text, detail, complete=not detail)


def look_at_one(jira: Jira, question: Question, key: str, number: str, text: str) -> Observation:
    """Whether this very comment stands in a complete listing: its twins are other actions' business."""
    listing = jira.listing(question, f"issue/{key}/comment", "comments", query={"orderBy": "-created"})
    there = _by_id(listing.items, number)
    ours = {} if there is None else {number: there}
    return _seen(jira, question, key, ours, text, listing.detail, complete=listing.complete)


def delete(jira: Jira, call: Call, key: str, text: str) -> Receipt:
    """Delete our comment, unless somebody has edited it since; one that is gone already is done too, and the separate
    read decides (case A-03).
    """
    known = call.reference or (call.observed.reference if call.observed is not None else "")
    where, _, number = known.partition("/")
    if where != key or not number:
        raise Refused(f"the reference `{known}` is not of issue `{key}`", code="foreign_reference")
    with look_before_sending():
        seen = look_at_one(jira, call, key, number, text)
        if seen.seen == "inconclusive":
            raise Unreadable(seen.detail, code="inconclusive")
    if seen.state.get("comment") == "edited":
        raise Refused("somebody has edited the comment", code="diverged")
    if seen.seen == "absent":
        return Done(reference=known, after={"comment": "gone"})
    try:
        jira.write(call, "DELETE", f"issue/{key}/comment/{number}")
    except Refused as refused:
        if refused.code != "not_found":
            raise
    return Done(reference=known, after={"comment": "gone"})


def reference(key: str, number: str) -> str:
    """The provider's reference of a comment."""
    return f"{key}/{number}"


def _seen(
    jira: Jira, question: Question, key: str, ours: dict[str, JsonMap], text: str, detail: str, *, complete: bool
) -> Observation:
    if not ours:
        if not complete:
            return Observation(seen="inconclusive", detail=detail)
        return Observation(seen="absent", state={"comment": "gone"})
    known = question.reference.partition("/")[2]
    numbers = list(ours)
    kept = known if known in ours else min(numbers, key=int) if all(n.isdecimal() for n in numbers) else numbers[-1]
    many = len(ours) > 1
    as_posted = plain(ours[kept].get("body")).split() == _said(jira, question, text).split()
    return Observation(
        seen="many" if many else "applied",
        state={"comment": "posted" if as_posted else "edited"},
        effect={"key": key, "comment_id": kept},
        reference=reference(key, kept),
        twins=tuple(reference(key, number) for number in numbers) if many else (),
        detail=detail,
    )


def _said(jira: Jira, question: Question, text: str) -> str:
    """The comment's text as this product keeps it, with our marker in front where properties cannot be set."""
    kept = text if jira.options.cloud else wiki(text)
    return f"{marker.line(question.marker)}\n{kept}" if jira.options.marks_text else kept


def _by_id(items: tuple[JsonMap, ...], number: str) -> JsonMap | None:
    return next((item for item in items if item.get("id") == number), None)


def _is_ours(jira: Jira, question: Question, comment: JsonMap) -> bool:
    """By property, as shown or else asked for; by its first line where properties cannot be set."""
    if jira.options.marks_text:
        return plain(comment.get("body")).partition("\n")[0].strip() == marker.line(question.marker)
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
