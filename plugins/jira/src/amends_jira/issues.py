"""One issue as it is now together with what changed since: one request, so that both are of the same moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from amends.spi import Json, JsonMap, Question
from amends.spi.http import Unreadable
from amends_jira.client import Jira
from amends_jira.history import Account
from amends_jira.values import map_of, maps_of, text_of

AFTER = "changelog_after"  # where `prepare` keeps the id of the newest entry it saw: ids rise
NOTHING_YET = 2**63  # past every id: how `prepare` asks for the newest id alone


@dataclass(frozen=True, slots=True)
class Issue:
    """`fields` as asked for; `entries` of the changelog newer than asked, oldest first; `newest` entry's id."""

    key: str
    fields: JsonMap
    entries: tuple[JsonMap, ...]
    newest: int


def read(jira: Jira, question: Question, fields: Iterable[str], *, key: str = "", after: int | None = None) -> Issue:
    """The issue `key` (by default the call's own) and its changelog after the entry `after` (by default `prepare`'s).

    Raises `Unreadable`, also where a part of the changelog cannot be had: whose hand it was is then not known.
    """
    key = key or text_of(question.args.get("key"))
    since = _seen(question) if after is None else after
    query = {"fields": ",".join(fields), "expand": "changelog"}
    shown = jira.must_read(question, f"issue/{key}", query)
    changelog, total = map_of(shown.get("changelog")), map_of(shown.get("changelog")).get("total")
    if not isinstance(total, int) or not isinstance(shown.get("fields"), dict):
        raise Unreadable(f"issue `{key}` shows no fields or no changelog", code="not_jira")
    entries = _by_id(key, maps_of(changelog.get("histories")))
    if len(entries) < total and (not entries or min(entries) > since):
        entries = _by_id(key, _all(jira, question, key))
    newer = tuple(entries[number] for number in sorted(entries) if number > since)
    return Issue(key, map_of(shown.get("fields")), newer, max(entries, default=0))


def account_of(jira: Jira, question: Question) -> str:
    """The account that this adapter is signed in as; empty if Jira does not say. Raises `Unreadable`."""
    return text_of((jira.read(question, "myself") or {}).get(jira.options.person_field))


def our_account(jira: Jira, question: Question) -> Account:
    """The account that `prepare` noted."""
    return Account(jira.options.person_field, text_of(question.allocated.get("account_id")))


def person(jira: Jira, value: Json) -> str | None:
    """Who a user reference names; None for nobody."""
    return text_of(map_of(value).get(jira.options.person_field)) or None


def _seen(question: Question) -> int:
    seen = question.allocated.get(AFTER)
    return seen if isinstance(seen, int) else 0


def _by_id(key: str, entries: Iterable[JsonMap]) -> dict[int, JsonMap]:
    found: dict[int, JsonMap] = {}
    for entry in entries:
        number = text_of(entry.get("id"))
        if not number.isdecimal():
            raise Unreadable(f"the changelog of `{key}` has an entry without a number", code="not_jira")
        found[int(number)] = entry
    return found


def _all(jira: Jira, question: Question, key: str) -> tuple[JsonMap, ...]:
    """A long changelog by pages, which only Cloud offers."""
    if not jira.options.cloud:
        raise Unreadable(f"the changelog of `{key}` is cut short", code="cut_changelog")
    listing = jira.listing(question, f"issue/{key}/changelog", "values")
    if not listing.complete:
        raise Unreadable(listing.detail, code="cut_changelog")
    return listing.items
