"""Canonical values and digests (rule 5): typed normal form, then RFC 8785, with a version tag.

The form is fixed for ever under its tag: text in NFC, decimals and integers beyond 2**53 as strings, no NaN or
infinity, no two keys that become one. `1` and `1.0` are the same number, as RFC 8785 says.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TypeAlias, cast
from uuid import UUID

import rfc8785
from pydantic import JsonValue

from amends.core.errors import InvalidInput

Json: TypeAlias = JsonValue
JsonMap: TypeAlias = dict[str, JsonValue]

FORM = "a1"
_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 60
MAX_BYTES = 1_000_000


def normalise(value: object, path: str = "$", depth: int = 0) -> Json:
    """A JSON value equal in meaning to `value`, detached from it. Raises `InvalidInput` naming the path."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"value at `{path}` nests deeper than {MAX_DEPTH} levels", hint="flatten it", path=path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return normalise(value.value, path, depth)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, Decimal):
        return _decimal(value, path)
    if isinstance(value, datetime):
        return _moment(value, path)
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[object, object]", value), path, depth)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return [normalise(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(items)]
    raise InvalidInput(
        f"value at `{path}` has type `{type(value).__name__}`, which cannot be recorded",
        hint="pass text, numbers, booleans, lists and mappings with text keys",
        path=path,
    )


def normalise_map(value: Mapping[str, object], path: str = "$") -> JsonMap:
    """`normalise` for a mapping, typed as one."""
    return _mapping(cast("Mapping[object, object]", value), path, 0)


def canonical_bytes(value: object) -> bytes:
    """The canonical bytes of `value`. Raises `InvalidInput` if it has none or they exceed `MAX_BYTES`."""
    data = rfc8785.dumps(normalise(value))
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"value has {len(data)} bytes, more than {MAX_BYTES}", hint="pass a reference instead of the content"
        )
    return data


def canonical_text(value: object) -> str:
    """`canonical_bytes` as text."""
    return canonical_bytes(value).decode()


def digest(value: object) -> str:
    """An unkeyed, tagged SHA-256 of the canonical form, for values that hold no secret."""
    return f"{FORM}:{hashlib.sha256(canonical_bytes(value)).hexdigest()}"


def keyed_digest(value: object, key: bytes) -> str:
    """A tagged HMAC-SHA-256 of the canonical form, for values whose content must not be guessable (rule 1)."""
    return f"{FORM}:{hmac.new(key, canonical_bytes(value), hashlib.sha256).hexdigest()}"


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"text at `{path}` holds a lone surrogate", hint="send valid Unicode", path=path) from None
    return unicodedata.normalize("NFC", value)


def _number(value: float, path: str) -> Json:
    if not math.isfinite(value):
        raise InvalidInput(f"number at `{path}` is not finite", hint="send a number or null", path=path)
    return _integer(int(value)) if value.is_integer() else value


def _integer(value: int) -> Json:
    return value if abs(value) <= _SAFE_INTEGER else str(value)


def _decimal(value: Decimal, path: str) -> str:
    if not value.is_finite():
        raise InvalidInput(f"decimal at `{path}` is not finite", hint="send a number or null", path=path)
    return format(value.normalize() + 0, "f")


def _moment(value: datetime, path: str) -> str:
    if value.tzinfo is None:
        raise InvalidInput(f"datetime at `{path}` has no time zone", hint="use an aware datetime", path=path)
    return value.isoformat()


def _mapping(value: Mapping[object, object], path: str, depth: int) -> JsonMap:
    result: JsonMap = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidInput(f"key `{key!r}` at `{path}` is not text", hint="use text keys", path=path)
        name = _text(key, path)
        if name in result:
            raise InvalidInput(f"two keys at `{path}` become `{name}`", hint="rename one", path=path)
        result[name] = normalise(item, f"{path}.{name}", depth + 1)
    return result
