"""Finding an issue of ours again: by its key, and by a search whose hits are re-checked on our side.

On Cloud a search lists the project's newest issues with our property; on Data Center it asks for our label. Either way
a hit counts only if the issue itself bears our marker: a server may ignore a clause that it does not know.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from amends.spi import JsonMap, Question
from amends.spi.http import Unreadable
from amends_jira import marker
from amends_jira.client import Jira, Listing
from amends_jira.values import created_seconds, map_of, text_of, texts_of

Found: TypeAlias = Literal["ours", "not_ours", "not_there"]


def by_key(jira: Jira, question: Question, key: str) -> Found:
    """Whether the issue `key` is there and bears our marker. Raises `Unreadable`."""
    query = {"fields": "labels", **({"properties": marker.PROPERTY} if jira.options.cloud else {})}
    shown = jira.read(question, f"issue/{key}", query)
    if shown is None:
        return "not_there"
    return "ours" if _is_ours(jira, question, {**shown, "key": key}) else "not_ours"


def by_search(jira: Jira, question: Question) -> Listing:
    """Issues of the project that bear our marker. Never raises: what could not be read makes it incomplete."""
    project = f'project = "{text_of(question.args.get("project"))}"'
    if jira.options.cloud:
        pages = jira.search(question, f"{project} ORDER BY created DESC", ["created"], properties=[marker.PROPERTY])
    else:
        pages = jira.search(question, f'{project} AND labels = "{marker.label(question.marker)}"', ["labels"])
    ours: list[JsonMap] = []
    try:
        for page in pages:
            near = [item for item in page if _is_recent(jira, question, item)]
            ours += [item for item in near if _is_ours(jira, question, item)]
            if page and not near:
                break  # newest first: everything further on is older still
    except Unreadable as unreadable:
        later = unreadable.retry_after_seconds
        return Listing(tuple(ours), complete=False, detail=str(unreadable), retry_after_seconds=later)
    return Listing(tuple(ours), complete=True)


def _is_recent(jira: Jira, question: Question, issue: JsonMap) -> bool:
    """False only for what says that it is older than our send, with a margin for their clock (case P-07)."""
    created = created_seconds(map_of(issue.get("fields")))
    if created is None or question.sent_at_us is None:
        return True
    return created >= question.sent_at_us / 1_000_000 - jira.options.clock_margin_seconds


def _is_ours(jira: Jira, question: Question, issue: JsonMap) -> bool:
    if not jira.options.cloud:
        return marker.label(question.marker) in texts_of(map_of(issue.get("fields")).get("labels"))
    shown = marker.of_properties(issue)
    if shown is None:
        held = jira.read(question, f"issue/{text_of(issue.get('key'))}/properties/{marker.PROPERTY}")
        shown = marker.of_value(held.get("value")) if held is not None else ""
    return shown == question.marker
