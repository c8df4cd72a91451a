"""Reading a list to its end. A list that cannot be read to its end proves nothing: `Unreadable`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from amends.spi import Json, Question
from amends.spi.http import HttpAnswer, HttpRequest, HttpSender, Unreadable
from amends_http.messages import Messages
from amends_http.rules import ListRule
from amends_http.template import Scope, lookup, render_headers, spread
from amends_http.verdicts import HEADER, field_of, readable

_Next: TypeAlias = str | None

_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^";,]*))?\s*)*)')
_REL_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:;|$))', re.IGNORECASE)


def items(
    rule: ListRule, question: Question, scope: Scope, messages: Messages, sender: HttpSender
) -> Iterator[dict[str, Json]]:
    """Every item of every page. Raises `Unreadable`, `MissingValueError`, `BadValueError`."""
    page: _Next = str(rule.number.first) if rule.number is not None else None
    asked: set[_Next] = set()
    seen = 0
    for number in range(rule.pages):
        if page in asked:
            raise Unreadable(f"the list's page `{page}` leads to itself", code="incomplete")
        asked.add(page)
        answer = readable(rule, sender.read(question, _request(rule, scope, page, messages), own_statuses=()))
        value = answer.value()
        found, rows = spread(value, rule.items), spread(value, rule.items.partition(".*")[0])
        if found is None or rows is None:
            raise Unreadable(f"{answer.request.name} has no list at `{rule.items}`", code="undecodable")
        yield from (item for item in found if isinstance(item, dict))
        seen += len(rows)
        page = _following(rule, answer, rows, number, seen)
        if page is None:
            _complete(rule, answer, seen)
            return
    raise Unreadable(f"the list has more than {rule.pages} pages", code="too_many_pages")


def next_link(header: str) -> str:
    """The target of `rel="next"` in a `Link` header (RFC 8288), or nothing."""
    return next((target for target, parameters in _LINK.findall(header) if _REL_NEXT.search(parameters)), "")


def _request(rule: ListRule, scope: Scope, page: _Next, messages: Messages) -> HttpRequest:
    if rule.link and page is not None:
        return messages.following(page, render_headers(rule.headers, scope))
    parameter = next((way.parameter for way in (rule.cursor, rule.number) if way is not None), "")
    named = ((parameter, page),) if parameter and page is not None else ()
    return messages.reading(rule, {**scope, "page": _typed(rule, page)}, named)


def _typed(rule: ListRule, page: _Next) -> Json:
    """A counted page is a number where a template places it."""
    return int(page) if rule.number is not None and page is not None else page


def _following(rule: ListRule, answer: HttpAnswer, rows: list[Json], number: int, seen: int) -> _Next:
    """What names the next page, or None at the end. Raises `Unreadable` if there is more but no way to it."""
    if rule.more and not field_of(answer, rule.more):
        return None
    if rule.number is not None:
        on = _counts_on(rule, answer, rows, seen)
        return str(rule.number.first + rule.number.step * (number + 1)) if on else None
    value = _named(rule, answer, rows)
    if value in (None, "") and rule.more:
        raise Unreadable(f"{answer.request.name} says there is more but not where", code="incomplete")
    return None if value in (None, "") else str(value)


def _counts_on(rule: ListRule, answer: HttpAnswer, rows: list[Json], seen: int) -> bool:
    if rule.more:
        return True
    total = field_of(answer, rule.total) if rule.total else None
    return bool(rows) and (not isinstance(total, int) or seen < total)


def _named(rule: ListRule, answer: HttpAnswer, rows: list[Json]) -> Json:
    if rule.link:
        found = field_of(answer, rule.link)
        return next_link(found) if isinstance(found, str) and rule.link.startswith(HEADER) else found
    if rule.cursor is None:
        return None
    if rule.cursor.page:
        return field_of(answer, rule.cursor.page)
    return lookup(rows[-1], rule.cursor.item) if rows else None


def _complete(rule: ListRule, answer: HttpAnswer, seen: int) -> None:
    """A list that says how many there are is read completely only if that many were seen."""
    total = field_of(answer, rule.total) if rule.total else None
    if rule.total and (not isinstance(total, int) or seen < total):
        raise Unreadable(f"{answer.request.name} counts {total} items and showed {seen}", code="incomplete")
