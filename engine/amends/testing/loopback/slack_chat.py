"""`chat.*`: post, update, delete, schedule; and reactions to messages."""

from __future__ import annotations

from amends.testing.loopback.slack_state import (
    MESSAGES,
    SCHEDULED,
    SlackError,
    arguments,
    find_channel,
    marker,
    me,
    message_key,
    new_ts,
    page_of,
    store_message,
)
from amends.testing.loopback.system import Handler, Unit
from amends.testing.loopback.wire import Doc, Request, Response, as_doc, as_list

_MAX_TEXT = 40_000
_MAX_AHEAD_S = 120 * 24 * 3600


def _post_message(unit: Unit, request: Request) -> Response:
    """`channel`, `text` and/or `blocks`, `thread_ts`, `metadata`, `client_msg_id` -> `{ok, channel, ts, message}`."""
    given = arguments(request)
    channel = find_channel(unit, given, by_name=True)
    _check_content(given)
    root = given.get("thread_ts")
    if root and unit.objects.peek(MESSAGES, message_key(channel["id"], str(root))) is None:
        raise SlackError("cannot_reply_to_message")
    message = store_message(unit, channel["id"], given, unit.origin)
    return Response(200, {"ok": True, "channel": channel["id"], "ts": message["ts"], "message": message})


def _update(unit: Unit, request: Request) -> Response:
    """`channel`, `ts`, new content -> `{ok, channel, ts, text, message}`; own messages only."""
    given = arguments(request)
    channel, before = _own_message(unit, given, "cant_update_message", "can_update")
    _check_content(given)
    after: Doc = {**before, "text": given.get("text") or "", "edited": {"user": me(unit), "ts": new_ts(unit)}}
    for name in ("blocks", "attachments", "metadata"):
        if name in given:
            after[name] = given[name]
    key = message_key(channel["id"], before["ts"])
    unit.objects.put(MESSAGES, key, after)
    unit.effects.changed("message_text", key, before["text"], after["text"], marker=marker(unit, given), reference=key)
    body: Doc = {"ok": True, "channel": channel["id"], "ts": before["ts"], "text": after["text"], "message": after}
    return Response(200, body)


def _delete(unit: Unit, request: Request) -> Response:
    """`channel`, `ts` -> `{ok, channel, ts}`. A thread's root with replies leaves a tombstone."""
    channel, message = _own_message(unit, arguments(request), "cant_delete_message", "can_delete")
    key = message_key(channel["id"], message["ts"])
    replies = [
        item
        for item in unit.objects.truth(MESSAGES)
        if item["channel"] == channel["id"] and item.get("thread_ts") == message["ts"] and item["ts"] != message["ts"]
    ]
    if replies:
        tombstone: Doc = {
            "channel": channel["id"],
            "type": "message",
            "subtype": "tombstone",
            "text": "This message was deleted.",
            "user": "USLACKBOT",
            "hidden": True,
            "ts": message["ts"],
            "thread_ts": message["ts"],
        }
        unit.objects.put(MESSAGES, key, tombstone, undo=True)
    else:
        unit.objects.remove(MESSAGES, key)
    unit.effects.removed("message", key, f"slack:{channel['id']}")
    return Response(200, {"ok": True, "channel": channel["id"], "ts": message["ts"]})


def _post_ephemeral(unit: Unit, request: Request) -> Response:
    """`channel`, `user`, content -> `{ok, message_ts}`; it is in no history."""
    given = arguments(request)
    channel = find_channel(unit, given)
    if given.get("user") not in channel["members"]:
        raise SlackError("user_not_in_channel")
    _check_content(given)
    ts = new_ts(unit)
    place = f"slack:{channel['id']}/{given['user']}"
    unit.effects.created("ephemeral", place, ts, marker(unit, given), {"text": given.get("text")})
    return Response(200, {"ok": True, "message_ts": ts})


def _schedule(unit: Unit, request: Request) -> Response:
    """`channel`, `post_at`, content -> `{ok, channel, scheduled_message_id, post_at, message}`."""
    given = arguments(request)
    channel = find_channel(unit, given)
    _check_content(given)
    post_at = int(float(given.get("post_at") or 0))
    if post_at <= unit.now():
        raise SlackError("time_in_past")
    if post_at > unit.now() + _MAX_AHEAD_S:
        raise SlackError("time_too_far")
    key = unit.new_id("Q")
    item: Doc = {
        "id": key,
        "channel": channel["id"],
        "post_at": post_at,
        "date_created": int(unit.now()),
        "given": given,
        "actor": unit.origin.actor,
        "account": unit.origin.account,
        "request_seq": unit.origin.request_seq,
    }
    unit.objects.put(SCHEDULED, key, item)
    text = given.get("text") or ""
    place = f"slack:{channel['id']}"
    unit.effects.created("scheduled_message", place, key, marker(unit, given), {"text": text, "post_at": post_at})
    body: Doc = {
        "ok": True,
        "channel": channel["id"],
        "scheduled_message_id": key,
        "post_at": post_at,
        "message": {"text": text, "type": "delayed_message", "user": me(unit), "bot_id": "B0LOOPBACK"},
    }
    return Response(200, body)


def _list_scheduled(unit: Unit, request: Request) -> Response:
    """`channel`?, `limit`, `cursor` -> `{ok, scheduled_messages: [{id, channel_id, post_at, date_created, text}]}`, the
    soonest first.
    """
    given = arguments(request)
    channel = given.get("channel")
    found = [
        {
            "id": item["id"],
            "channel_id": item["channel"],
            "post_at": item["post_at"],
            "date_created": item["date_created"],
            "text": item["given"].get("text") or "",
        }
        for item in sorted(unit.objects.all(SCHEDULED), key=lambda item: item["post_at"])
        if channel in (None, item["channel"])
    ]
    page, cursor = page_of(given, found)
    return Response(200, {"ok": True, "scheduled_messages": page, "response_metadata": {"next_cursor": cursor}})


def _delete_scheduled(unit: Unit, request: Request) -> Response:
    """`channel`, `scheduled_message_id` -> `{ok}`."""
    given = arguments(request)
    channel = find_channel(unit, given)
    key = str(given.get("scheduled_message_id"))
    item = unit.objects.peek(SCHEDULED, key)
    if item is None or item["channel"] != channel["id"]:
        raise SlackError("invalid_scheduled_message_id")
    unit.objects.remove(SCHEDULED, key)
    unit.effects.removed("scheduled_message", key, f"slack:{channel['id']}")
    return Response(200, {"ok": True})


def _react(unit: Unit, request: Request) -> Response:
    """`channel`, `timestamp`, `name` -> `{ok}`: somebody shows that they read a message."""
    given = arguments(request)
    channel = find_channel(unit, given)
    key = message_key(channel["id"], str(given.get("timestamp")))
    message = unit.objects.peek(MESSAGES, key)
    if message is None:
        raise SlackError("message_not_found")
    reactions: dict[str, Doc] = {item["name"]: item for item in map(as_doc, as_list(message.get("reactions")))}
    users = reactions.get(str(given.get("name")), {}).get("users", [])
    if me(unit) in users:
        raise SlackError("already_reacted")
    reactions[str(given.get("name"))] = {
        "name": given.get("name"),
        "users": [*users, me(unit)],
        "count": len(users) + 1,
    }
    unit.objects.put(MESSAGES, key, {**message, "reactions": list(reactions.values())})
    return Response(200, {"ok": True})


def _own_message(unit: Unit, given: Doc, refusal: str, permission: str) -> tuple[Doc, Doc]:
    channel = find_channel(unit, given)
    message = unit.objects.peek(MESSAGES, message_key(channel["id"], str(given.get("ts"))))
    if message is None or message.get("subtype") == "tombstone":
        raise SlackError("message_not_found")
    if message["user"] != me(unit) or not unit.setting(permission):
        raise SlackError(refusal)
    return channel, message


def _check_content(given: Doc) -> None:
    if not (given.get("text") or given.get("blocks") or given.get("attachments")):
        raise SlackError("no_text")
    if len(str(given.get("text") or "")) > _MAX_TEXT:
        raise SlackError("msg_too_long")


READS: dict[str, Handler] = {"chat.scheduledMessages.list": _list_scheduled}
WRITES: dict[str, Handler] = {
    "chat.postMessage": _post_message,
    "chat.update": _update,
    "chat.delete": _delete,
    "chat.postEphemeral": _post_ephemeral,
    "chat.scheduleMessage": _schedule,
    "chat.deleteScheduledMessage": _delete_scheduled,
    "reactions.add": _react,
}
