"""Writing TOML that people go on editing: stable order, short things on one line, long ones as tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = 110


def toml_text(document: Mapping[str, Any]) -> str:
    """`document` as TOML: at the top what fits on one line, then a table for each thing that does not."""
    return "\n".join(_table(document, ())).strip() + "\n"


def _table(document: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    flat = {name: value for name, value in document.items() if not _is_table(name, value, path)}
    if path and (flat or not document):
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for name, value in flat.items():
        yield f"{_key(name)} = {_value(value)}"
    for name, value in document.items():
        if name not in flat:
            yield from _table(cast("Mapping[str, Any]", value), (*path, name))


def _is_table(name: str, value: Any, path: tuple[str, ...]) -> bool:
    if not isinstance(value, Mapping):
        return False
    return (not path and name in {"arguments", "request", "find", "probe", "blanks"}) or len(
        f"{_key(name)} = {_value(value)}"
    ) > _LINE


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{ " + ", ".join(f"{_key(name)} = {_value(inner)}" for name, inner in pairs) + " }" if pairs else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in cast("list[Any]", value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
