"""Placeholders: `${name.path}` in a scenario's texts, filled from systems, earlier steps and `[values]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from amends.core.errors import UnknownName

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.\-]*)\}")


def fill(value: Any, known: Mapping[str, Any]) -> Any:
    """`value` with every placeholder replaced, deep. A text that is one placeholder takes the value as it is.

    Raises `UnknownName` for a placeholder that nothing fills.
    """
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole:
            return look_up(whole.group(1), known)
        return _PLACEHOLDER.sub(lambda match: str(look_up(match.group(1), known)), value)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {name: fill(inner, known) for name, inner in table.items()}
    if isinstance(value, list | tuple):
        return [fill(inner, known) for inner in cast("list[Any]", value)]
    return value


def look_up(path: str, known: Mapping[str, Any]) -> Any:
    """The value at a dotted path. Raises `UnknownName`."""
    found: Any = known
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise UnknownName(f"nothing fills the placeholder `${{{path}}}`", known=sorted(known))
        found = cast("Mapping[str, Any]", found)[part]
    return found


def placeholders(value: Any) -> Iterator[str]:
    """The dotted path of every placeholder in `value`, deep."""
    if isinstance(value, str):
        yield from _PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            yield from placeholders(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from placeholders(inner)
