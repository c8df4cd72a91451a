"""Whose hand an issue's field is in: what the changelog since `prepare` says about a change of ours. Pure.

An entry that names our action is ours, whoever is signed in; one that names none is judged by its author. An undo and
the change it undid cancel each other, so that what stood before them stands again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from amends.spi import JsonMap
from amends_jira import marker
from amends_jira.values import map_of, maps_of, text_of

Hand: TypeAlias = Literal["ours", "others", "unmarked", "none"]


@dataclass(frozen=True, slots=True)
class Account:
    """The account this adapter is signed in as: how this product names people, and its name."""

    field: str  # `accountId` or `name`
    name: str


@dataclass(frozen=True, slots=True)
class Hands:
    """`standing`: whose change stands now. `landed`: ours is in the changelog. `undone`: so is an undo of it.

    `undoing`: the newest change is such an undo.
    """

    standing: Hand
    landed: bool
    undone: bool
    undoing: bool

    @property
    def taken_back(self) -> bool:
        """True if our change landed and is gone again without an undo of ours: somebody else took it back."""
        return self.landed and not self.undone


def hands(
    entries: Iterable[JsonMap], touches: Callable[[JsonMap], bool], *, our_marker: str, account: Account
) -> Hands:
    """Judge the entries (oldest first) that have an item which `touches` what we changed."""
    said = [(entry, *marker.of_history(entry)) for entry in entries if _any(entry, touches)]
    undone = {undoes for _, _, undoes in said if undoes}
    standing = [(entry, by) for entry, by, undoes in said if not undoes and not (by and by in undone)]
    return Hands(
        standing=_hand(*standing[-1], our_marker, account) if standing else "none",
        landed=any(by == our_marker for _, by, _ in said),
        undone=our_marker in undone,
        undoing=bool(said) and said[-1][2] == our_marker,
    )


def field_is(name: str) -> Callable[[JsonMap], bool]:
    """Touches the field called `name`."""
    return lambda item: text_of(item.get("field")) == name


def _any(entry: JsonMap, touches: Callable[[JsonMap], bool]) -> bool:
    return any(touches(item) for item in maps_of(entry.get("items")))


def _hand(entry: JsonMap, by: str, our_marker: str, account: Account) -> Hand:
    if by:
        return "ours" if by == our_marker else "others"
    author = text_of(map_of(entry.get("author")).get(account.field))
    return "others" if account.name and author and author != account.name else "unmarked"
