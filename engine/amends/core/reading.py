"""Text that others wrote, read as data: whatever stands in it, the answer is a value or a `ValueError` in words.

The parsers below are right for sound text. What they do with hostile text is not theirs to say: run out of stack at a
thousand brackets, take `NaN` for a number, keep the last of two equal keys, or make an integer that nobody can print.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from typing import Any, cast

from amends.core.canonical import Json

MAX_DEPTH = 100  # lists and tables within each other
LONGEST_SECONDS = 1e9  # three decades, the longest time that a setting, a contract or an answer may name
_LARGEST = 2**63  # TOML's and SQLite's


def toml_of(text: str) -> dict[str, Any]:
    """A TOML document. Raises `ValueError` for what is none, nests too deeply, or has a number beyond 64 bits."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels") from None
    _bounded(found)
    return found


def json_of(text: str | bytes) -> Json:
    """A JSON document. Raises `ValueError` for what is none (also `NaN`), nests too deeply, or names a key twice."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels") from None
    _bounded(found, numbers=False)
    return cast("Json", found)


def _bounded(root: object, *, numbers: bool = True) -> None:
    """Look at every value, a level at a time: whoever walks the tree later may recurse."""
    level: list[object] = [root]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        holders = 0
        for value in level:
            if isinstance(value, dict):
                holders += 1
                below += cast("dict[str, object]", value).values()
            elif isinstance(value, list):
                holders += 1
                below += cast("list[object]", value)
            elif numbers and isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
                raise ValueError("a number is beyond 64 bits")
        if not holders:
            return
        level = below
    raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key `{name}` stands twice in one object")
        found[name] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"`{name}` is no JSON")
