"""Finds our messages again: complete paging, and every filter on our side, because servers may ignore theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from amends.spi import Json, JsonMap, Question
from amends.spi.http import Unreadable
from amends_slack.marker import marker_of

Read: TypeAlias = Callable[[str, Mapping[str, str]], JsonMap]  # (method, query) -> answer; raises `Unreadable`

PAGE = 200
MOST_PAGES = 50


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing showed. `complete` is False if a page was missing: absence then proves nothing."""

    items: tuple[JsonMap, ...]
    complete: bool
    detail: str = ""
    code: str = ""

    def marked(self, marker: str) -> tuple[JsonMap, ...]:
        """The messages that bear our marker, oldest first, each once."""
        found = {ts_of(item): item for item in self.items if marker_of(item) == marker}
        return tuple(found[ts] for ts in sorted(found, key=moment))

    def at(self, ts: str) -> JsonMap | None:
        """The message with this ts."""
        return next((item for item in self.items if ts_of(item) == ts), None)


def history(read: Read, channel: str, oldest_seconds: float) -> Listing:
    """The channel's top-level messages since `oldest_seconds` (seconds since the epoch)."""
    query = {"channel": channel, "oldest": f"{max(0.0, oldest_seconds):.6f}", "inclusive": "true"}
    return _pages(read, "conversations.history", "messages", query)


def replies(read: Read, channel: str, ts: str) -> Listing:
    """The thread that the message `ts` belongs to, its root first."""
    return _pages(read, "conversations.replies", "messages", {"channel": channel, "ts": ts})


def scheduled(read: Read, channel: str) -> Listing:
    """The channel's messages that wait to be posted."""
    return _pages(read, "chat.scheduledMessages.list", "scheduled_messages", {"channel": channel})


def files(read: Read, oldest_seconds: float) -> Listing:
    """The files that this bot can see, made since `oldest_seconds`; this listing has pages, not cursors."""
    items: list[JsonMap] = []
    query = {"ts_from": str(int(max(0.0, oldest_seconds))), "count": str(PAGE)}
    for page in range(1, MOST_PAGES + 1):
        try:
            answer = read("files.list", {**query, "page": str(page)})
        except Unreadable as unreadable:
            return Listing(tuple(items), complete=False, detail=str(unreadable), code=unreadable.code)
        found, paging = answer.get("files"), answer.get("paging")
        pages = paging.get("pages") if isinstance(paging, dict) else None
        if not isinstance(found, list) or not isinstance(pages, int):
            return Listing(tuple(items), complete=False, detail="files.list gave no pages of files", code="not_slack")
        items.extend(item for item in found if isinstance(item, dict))
        if page >= pages:
            return Listing(tuple(items), complete=True)
    return Listing(tuple(items), complete=False, detail=f"files.list has more than {MOST_PAGES} pages", code="too_many")


def one(read: Read, channel: str, ts: str) -> JsonMap | None:
    """The message with this ts, at the top level or in a thread; None if it is not there. Raises `Unreadable`."""
    query = {"channel": channel, "oldest": ts, "latest": ts, "inclusive": "true"}
    top = _pages(read, "conversations.history", "messages", query)
    found = top.at(ts)
    if found is not None:
        return found
    if not top.complete:
        raise Unreadable(top.detail, code=top.code)
    thread = replies(read, channel, ts)
    if not thread.complete and thread.code not in {"thread_not_found", "message_not_found"}:
        raise Unreadable(thread.detail, code=thread.code)
    return thread.at(ts)


def window_start(question: Question, margin_seconds: float, ts: str = "") -> float:
    """Where a look begins: the send, or the known ts if that is earlier, widened by the clock margin (case P-07)."""
    known = [float(moment(ts))] if ts else []
    if question.sent_at_us is not None:
        known.append(question.sent_at_us / 1_000_000)
    return min(known, default=0.0) - margin_seconds


def ts_of(message: Mapping[str, Json]) -> str:
    """The message's ts; empty if it has none."""
    ts = message.get("ts")
    return ts if isinstance(ts, str) else ""


def moment(ts: str) -> Decimal:
    """A ts as a number of seconds, for comparing: exact, and zero if it is none."""
    try:
        return Decimal(ts)
    except InvalidOperation:
        return Decimal(0)


def _pages(read: Read, method: str, field: str, query: Mapping[str, str]) -> Listing:
    items: list[JsonMap] = []
    cursor = ""
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        asked = {**query, "limit": str(PAGE), "include_all_metadata": "true"}
        if cursor:
            asked["cursor"] = cursor
        try:
            answer = read(method, asked)
        except Unreadable as unreadable:
            return Listing(tuple(items), complete=False, detail=str(unreadable), code=unreadable.code)
        page = answer.get(field)
        if not isinstance(page, list):
            return Listing(tuple(items), complete=False, detail=f"{method} gave no `{field}`", code="not_slack")
        items.extend(item for item in page if isinstance(item, dict))
        cursor = _next_cursor(answer)
        if not cursor:
            more = answer.get("has_more") is True
            detail = f"{method} has more but gave no cursor" if more else ""
            return Listing(tuple(items), complete=not more, detail=detail)
        if cursor in seen:
            return Listing(tuple(items), complete=False, detail=f"{method} repeats a cursor", code="cursor_loop")
        seen.add(cursor)
    return Listing(tuple(items), complete=False, detail=f"{method} has more than {MOST_PAGES} pages", code="too_many")


def _next_cursor(answer: Mapping[str, Json]) -> str:
    meta = answer.get("response_metadata")
    cursor = meta.get("next_cursor") if isinstance(meta, dict) else None
    return cursor if isinstance(cursor, str) else ""
