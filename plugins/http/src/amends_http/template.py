"""Request templates: `{name}` placeholders in data, filled with typed values, never by gluing JSON together.

A text that is one placeholder takes the value as it is (a number stays a number); inside other text only plain values
are allowed. In a path each value is one percent-encoded segment part, so no argument can reach another resource.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast
from urllib.parse import quote

from amends.spi import Json

Scope: TypeAlias = Mapping[str, Json]
_Placing: TypeAlias = Callable[[str, str], str]

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.\-]*)\}")
_ONLY = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.\-]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class MissingValueError(Exception):
    """A template names a value that this call does not have; nothing was sent."""


class BadValueError(Exception):
    """A value may not stand where the template puts it; nothing was sent."""


def render(template: Json, scope: Scope) -> Json:
    """`template` with every placeholder filled. Keys and items whose only placeholder has no value are left out."""
    if isinstance(template, dict):
        filled = {name: render(value, scope) for name, value in template.items() if not _absent(value, scope)}
        return {name: value for name, value in filled.items() if not _hollow(value, template[name])}
    if isinstance(template, list):
        return [render(item, scope) for item in template if not _absent(item, scope)]
    if not isinstance(template, str):
        return template
    only = _ONLY.fullmatch(template)
    return lookup(scope, only[1]) if only else _text(template, scope)


def render_path(template: str, scope: Scope) -> str:
    """A path whose values are percent-encoded. Raises `BadValueError` for an empty value or a dot segment."""

    def encoded(value: str, name: str) -> str:
        if value in {"", ".", ".."}:
            raise BadValueError(f"`{name}` is `{value}`, which cannot stand in the path `{template}`")
        return quote(value, safe="")

    return _fill(template, scope, encoded)


def render_headers(templates: Mapping[str, str], scope: Scope) -> dict[str, str]:
    """Headers; one whose only placeholder has no value is left out. Raises `BadValueError` for control characters."""
    headers: dict[str, str] = {}
    for name, template in templates.items():
        if _absent(template, scope):
            continue
        value = _text(template, scope)
        if _CONTROL.search(value) or not value.isascii():
            raise BadValueError(f"header `{name}` would hold characters that no header may hold")
        headers[name] = value
    return headers


def render_query(templates: Mapping[str, str], scope: Scope) -> tuple[tuple[str, str], ...]:
    """Query parameters in order; one whose only placeholder has no value is left out."""
    return tuple((name, _text(template, scope)) for name, template in templates.items() if not _absent(template, scope))


def roots(template: object) -> Iterator[str]:
    """The first word of every placeholder in `template`: `before` in `{before.address}`."""
    if isinstance(template, dict):
        for value in cast("dict[str, object]", template).values():
            yield from roots(value)
    elif isinstance(template, list):
        for item in cast("list[object]", template):
            yield from roots(item)
    elif isinstance(template, str):
        for match in _TOKEN.finditer(template):
            if match[1]:
                yield match[1].split(".", 1)[0]


def lookup(document: Json | Scope, path: str) -> Json:
    """The value at a dotted path (`errors.0.code`), or None. A key that holds dots itself is found first."""
    if isinstance(document, list):
        head, _, rest = path.partition(".")
        item = document[int(head)] if head.isdecimal() and int(head) < len(document) else None
        return lookup(item, rest) if rest else item
    if not isinstance(document, Mapping):
        return None
    if path in document:
        return document[path]
    head, _, rest = path.partition(".")
    return lookup(document.get(head), rest) if rest else None


def spread(document: Json, path: str) -> list[Json] | None:
    """The list at a dotted path in which `*` goes through every item: `orders.*.payments` is one list of them all.
    None if any list on the way is missing.
    """
    head, star, rest = path.partition("*")
    found = lookup(document, head.rstrip(".")) if head else document
    if not isinstance(found, list) or not star:
        return found if isinstance(found, list) else None
    inner = [spread(item, rest.removeprefix(".")) for item in found]
    return None if None in inner else [value for values in inner for value in values or []]


def values_at(document: Json | Scope, path: str) -> list[Json]:
    """Every value at a dotted path in which `*` goes through each item of a list; without one, the value there."""
    if "*" not in path:
        return [lookup(document, path)]
    head, _, rest = path.partition(".*.")
    items = lookup(document, head)
    return [value for item in items for value in values_at(item, rest)] if isinstance(items, list) else []


def _absent(template: Json, scope: Scope) -> bool:
    only = _ONLY.fullmatch(template) if isinstance(template, str) else None
    return only is not None and lookup(scope, only[1]) is None


def _hollow(value: Json, template: Json) -> bool:
    """An object that is empty only because every value in it is missing."""
    return value == {} and template != {}


def _text(template: str, scope: Scope) -> str:
    return _fill(template, scope, lambda value, _name: value)


def _fill(template: str, scope: Scope, place: _Placing) -> str:
    pieces: list[str] = []
    end = 0
    for match in _TOKEN.finditer(template):
        pieces.append(template[end : match.start()])
        end = match.end()
        name = match[1]
        pieces.append(place(_plain(lookup(scope, name), name), name) if name else match[0][0])
    pieces.append(template[end:])
    return "".join(pieces)


def _plain(value: Json, name: str) -> str:
    if value is None:
        raise MissingValueError(f"`{name}` has no value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BadValueError(f"`{name}` is not a plain value, so it cannot stand inside text")
