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
