"""Reading JSON of a server that may say anything: what is not as expected is empty, never an exception. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from amends.spi import Json, JsonMap


def text_of(value: Json) -> str:
    """`value` if it is text, else empty."""
    return value if isinstance(value, str) else ""


def map_of(value: Json) -> JsonMap:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def maps_of(value: Json) -> list[JsonMap]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def project_of(key: str) -> str:
    """`BILL` of `BILL-12`."""
    return key.rpartition("-")[0]


def created_seconds(entity: Mapping[str, Json]) -> float | None:
    """When an entity says it was created, in seconds since the epoch; None if it does not say so readably."""
    text = text_of(entity.get("created"))
    if len(text) > 5 and text[-5] in "+-" and text[-3] != ":":  # noqa: PLR2004 - Jira writes +0000
        text = f"{text[:-2]}:{text[-2:]}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def name_of(value: Json) -> Json:
    """What identifies a field's value: an object's id or name, each of a list, anything else as it is."""
    if isinstance(value, list):
        return [name_of(item) for item in value]
    return value[_naming(value)] if isinstance(value, dict) and _naming(value) else value


def settable(value: Json) -> Json:
    """A field's value as it was read, in the form in which it can be set again."""
    if isinstance(value, list):
        return [settable(item) for item in value]
    return {_naming(value): value[_naming(value)]} if isinstance(value, dict) and _naming(value) else value


def _naming(value: JsonMap) -> str:
    return next((name for name in ("accountId", "id", "name", "key", "value") if name in value), "")


def texts_of(value: Json) -> list[str]:
    """The texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
