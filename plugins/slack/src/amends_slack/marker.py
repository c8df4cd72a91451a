"""Our mark on a message: structured metadata, invisible to readers, returned by history and replies."""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap

EVENT_TYPE = "amends_action"
WITHDRAWN_TEXT = "_This message was withdrawn. Please do not act on it._"


def metadata(marker: str, *, withdrawn: bool = False) -> JsonMap:
    """The `metadata` of a message that belongs to the action `marker`."""
    payload: JsonMap = {"amends_action": marker}
    if withdrawn:
        payload["amends_withdrawn"] = True
    return {"event_type": EVENT_TYPE, "event_payload": payload}


def marker_of(message: Mapping[str, Json]) -> str:
    """The action that a message says it belongs to; empty if none."""
    marker = _payload(message).get("amends_action")
    return marker if isinstance(marker, str) else ""


def is_withdrawn(message: Mapping[str, Json]) -> bool:
    """True if we replaced the message's text by the withdrawal notice."""
    return _payload(message).get("amends_withdrawn") is True


def is_gone(message: Mapping[str, Json] | None) -> bool:
    """True if the message is deleted: not there, or only the tombstone that keeps its thread together."""
    return message is None or message.get("subtype") == "tombstone"


def _payload(message: Mapping[str, Json]) -> Mapping[str, Json]:
    meta = message.get("metadata")
    payload = meta.get("event_payload") if isinstance(meta, dict) else None
    return payload if isinstance(payload, dict) else {}
