"""Incoming Slack events: which business thing one is about. Pure.

Slack delivers an event again when it was not acknowledged in three seconds, and at times as new events with new ids. A
run keyed by the event's id would then run twice; one keyed by the message runs once (case S-04).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast


def run_key(envelope: Mapping[str, object]) -> str:
    """A run key from an Events API envelope: team, channel and ts of the message it is about, whatever its event id.

    An edit of a message is about that message. Raises `ValueError` if the event names no message.
    """
    event = _map(envelope.get("event"))
    message = _map(event.get("message")) or event
    item = _map(event.get("item"))
    channel = event.get("channel") or item.get("channel")
    ts = message.get("ts") or item.get("ts")
    if not isinstance(channel, str) or not isinstance(ts, str) or not channel or not ts:
        raise ValueError("the event names no message: give the run a key of its own")
    return f"slack:{envelope.get('team_id') or ''}/{channel}/{ts}"


def _map(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
