"""What the workspace keeps: users, channels, messages, scheduled messages; and how a call's arguments are read."""

from __future__ import annotations

import base64
import json
from typing import Any

from amends.testing.loopback.effects import Effects, Origin
from amends.testing.loopback.system import Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, as_doc

CHANNELS = "channels"
MESSAGES = "messages"
SCHEDULED = "scheduled"
USERS = "users"

_JSON_ARGUMENTS = ("metadata", "blocks", "attachments", "files")


class SlackError(ApiError):
    """`{"ok": false, "error": name}`, which Slack sends with status 200."""

    def __init__(self, name: str, **extra: Any) -> None:
        super().__init__(200, name, name, **extra)


def arguments(request: Request) -> Doc:
    """The call's arguments from query, form or JSON body; structured ones may come as JSON text in a form."""
    given = request.fields
    for name in _JSON_ARGUMENTS:
        if isinstance(given.get(name), str):
            try:
                given[name] = json.loads(given[name])
            except ValueError:
                raise SlackError(f"invalid_{name}") from None
    return given


def truth_of(given: Doc, name: str) -> bool:
    """A boolean argument, however the client spelt it."""
    return str(given.get(name, "")).lower() in ("1", "true")


def page_of(given: Doc, items: list[Doc]) -> tuple[list[Doc], str]:
    """The page that `limit` and `cursor` ask for, and the cursor of the next one: empty after the last."""
    start, size = _decode(given.get("cursor")), int(given.get("limit") or 100)
    more = start + size < len(items)
    return items[start : start + size], _encode(start + size) if more else ""


def find_channel(unit: Unit, given: Doc, *, by_name: bool = False) -> Doc:
    """The channel that the call names by id (chat.postMessage also by name), where the caller is a member."""
    named = str(given.get("channel") or "")
    channel = unit.objects.peek(CHANNELS, named)
    if channel is None and by_name:
        plain = named.removeprefix("#")
        channel = next((item for item in unit.objects.truth(CHANNELS) if item["name"] == plain), None)
        if channel is None and unit.objects.peek(USERS, named) is not None:
            channel = open_direct(unit, named)
    if channel is None:
        raise SlackError("channel_not_found")
    if channel.get("is_archived"):
        raise SlackError("is_archived")
    if me(unit) not in channel["members"]:
        raise SlackError("not_in_channel")
    return channel


def open_direct(unit: Unit, user: str) -> Doc:
    """The direct channel with a user, made when it was not there."""
    if unit.objects.peek(USERS, user) is None:
        raise SlackError("user_not_found")
    for channel in unit.objects.truth(CHANNELS):
        if channel["is_im"] and set(channel["members"]) == {me(unit), user}:
            return channel
    number = unit.rows.next_number("direct")
    doc: Doc = {
        "id": f"D{number:07d}",
        "name": "",
        "is_im": True,
        "is_private": True,
        "user": user,
        "members": [me(unit), user],
    }
    return unit.objects.put(CHANNELS, doc["id"], doc)


def me(unit: Unit) -> str:
    """The acting user's id: the token's user, or the other actor's name."""
    return unit.origin.account or unit.origin.actor


def message_key(channel: str, ts: str) -> str:
    """Where a message is stored."""
    return f"{channel}/{ts}"


def new_ts(unit: Unit) -> str:
    """A time stamp that is also the message's id: never given out twice, always rising."""
    micros = unit.rows.next_number("ts", int(unit.now() * 1_000_000))
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"


def store_message(unit: Unit, channel: str, given: Doc, sender: Origin) -> Doc:
    """Post a message for a sender and record the effect."""
    message: Doc = {
        "type": "message",
        "ts": new_ts(unit),
        "user": sender.account or sender.actor,
        "bot_id": "B0LOOPBACK",
        "text": given.get("text") or "",
    }
    for name in ("blocks", "attachments", "metadata", "client_msg_id", "thread_ts"):
        if given.get(name):
            message[name] = given[name]
    if given.get("thread_ts") and truth_of(given, "reply_broadcast"):
        message["subtype"] = "thread_broadcast"
    key = message_key(channel, message["ts"])
    unit.objects.put(MESSAGES, key, {"channel": channel, **message})
    effects = Effects(unit.rows, sender)
    effects.created("message", f"slack:{channel}", key, marker(unit, given), {"text": message["text"]})
    return message


def marker(unit: Unit, given: Doc) -> str:
    """The marker in a message's metadata, if there is one."""
    return marker_of(unit, as_doc(given.get("metadata")).get("event_payload"))


def post_due(unit: Unit) -> None:
    """Turn every scheduled message whose time has come into a message of the one who scheduled it."""
    for item in unit.objects.truth(SCHEDULED):
        if item["post_at"] <= unit.now():
            sender = Origin(actor=item["actor"], account=item["account"], request_seq=item["request_seq"])
            unit.objects.remove(SCHEDULED, item["id"])
            Effects(unit.rows, sender).removed("scheduled_message", item["id"])
            store_message(unit, item["channel"], item["given"], sender)


def _encode(place: int) -> str:
    return base64.b64encode(f"next:{place}".encode()).decode()


def _decode(cursor: object) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(str(cursor)).decode().removeprefix("next:"))
    except ValueError:
        raise SlackError("invalid_cursor") from None
