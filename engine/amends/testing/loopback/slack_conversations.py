"""`conversations.*` and `users.*`: where messages are found again, and where direct notes go."""

from __future__ import annotations

from amends.testing.loopback.slack_state import (
    CHANNELS,
    MESSAGES,
    USERS,
    SlackError,
    arguments,
    find_channel,
    me,
    message_key,
    open_direct,
    page_of,
    truth_of,
)
from amends.testing.loopback.system import Handler, Unit
from amends.testing.loopback.wire import Doc, Request, Response


def _history(unit: Unit, request: Request) -> Response:
    """Newest first, with broadcast replies only: `limit`, `cursor`, `oldest`, `latest`, `inclusive`
    and `include_all_metadata`.
    """
    given = arguments(request)
    channel = find_channel(unit, given)
    messages = [
        item
        for item in _messages(unit, channel)
        if item.get("thread_ts") in (None, item["ts"]) or item.get("subtype") == "thread_broadcast"
    ]
    threads = _threads(unit, channel)
    return _page(given, [_with_replies(item, threads.get(item["ts"], [])) for item in messages][::-1])


def _replies(unit: Unit, request: Request) -> Response:
    """The thread's root first, then its replies, oldest first; arguments as in history, and `ts`."""
    given = arguments(request)
    channel = find_channel(unit, given)
    root = str(given.get("ts"))
    if unit.objects.peek(MESSAGES, message_key(channel["id"], root)) is None:
        raise SlackError("thread_not_found")
    thread = [item for item in _messages(unit, channel) if root in (item["ts"], item.get("thread_ts"))]
    return _page(given, thread)


def _info(unit: Unit, request: Request) -> Response:
    return Response(200, {"ok": True, "channel": _view(unit, find_channel(unit, arguments(request)))})


def _list_channels(unit: Unit, _request: Request) -> Response:
    return _channels(unit, [channel for channel in unit.objects.all(CHANNELS) if not channel["is_im"]])


def _own_channels(unit: Unit, _request: Request) -> Response:
    return _channels(unit, [channel for channel in unit.objects.all(CHANNELS) if me(unit) in channel["members"]])


def _open(unit: Unit, request: Request) -> Response:
    """`users` (one id) -> the direct channel `{ok, channel: {id}}`; opening again gives the same one."""
    users = str(arguments(request).get("users") or "")
    return Response(200, {"ok": True, "channel": {"id": open_direct(unit, users)["id"]}})


def _user(unit: Unit, request: Request) -> Response:
    user = unit.objects.get(USERS, str(arguments(request).get("user")))
    if user is None:
        raise SlackError("user_not_found")
    return Response(200, {"ok": True, "user": user})


def _user_by_email(unit: Unit, request: Request) -> Response:
    email = arguments(request).get("email")
    found = [user for user in unit.objects.all(USERS) if email and user["profile"]["email"] == email]
    if not found:
        raise SlackError("users_not_found")
    return Response(200, {"ok": True, "user": found[0]})


def _messages(unit: Unit, channel: Doc) -> list[Doc]:
    return [item for item in unit.objects.all(MESSAGES) if item["channel"] == channel["id"]]


def _threads(unit: Unit, channel: Doc) -> dict[str, list[Doc]]:
    """The replies to each root of a channel, oldest first."""
    found: dict[str, list[Doc]] = {}
    for item in unit.objects.truth(MESSAGES):
        if item["channel"] == channel["id"] and item.get("thread_ts") not in {None, item["ts"]}:
            found.setdefault(item["thread_ts"], []).append(item)
    return found


def _with_replies(message: Doc, replies: list[Doc]) -> Doc:
    if not replies:
        return message
    counts: Doc = {
        "thread_ts": message["ts"],
        "reply_count": len(replies),
        "reply_users": sorted({item["user"] for item in replies}),
        "latest_reply": replies[-1]["ts"],
    }
    return {**message, **counts}


def _page(given: Doc, messages: list[Doc]) -> Response:
    oldest, latest = float(given.get("oldest") or 0), float(given.get("latest") or "inf")
    edges = truth_of(given, "inclusive")
    inside = [
        item
        for item in messages
        if oldest < float(item["ts"]) < latest or (edges and float(item["ts"]) in (oldest, latest))
    ]
    page, cursor = page_of(given, inside)
    body: Doc = {
        "ok": True,
        "messages": [_shown(item, given) for item in page],
        "has_more": bool(cursor),
        "response_metadata": {"next_cursor": cursor},
    }
    return Response(200, body)


def _shown(message: Doc, given: Doc) -> Doc:
    hidden = {"channel"} if truth_of(given, "include_all_metadata") else {"channel", "metadata"}
    return {name: value for name, value in message.items() if name not in hidden}


def _channels(unit: Unit, channels: list[Doc]) -> Response:
    shown = [_view(unit, channel) for channel in channels]
    return Response(200, {"ok": True, "channels": shown, "response_metadata": {"next_cursor": ""}})


def _view(unit: Unit, channel: Doc) -> Doc:
    return {
        **{name: value for name, value in channel.items() if name != "members"},
        "is_member": me(unit) in channel["members"],
    }


READS: dict[str, Handler] = {
    "conversations.history": _history,
    "conversations.replies": _replies,
    "conversations.info": _info,
    "conversations.list": _list_channels,
    "users.conversations": _own_channels,
    "users.info": _user,
    "users.lookupByEmail": _user_by_email,
}
WRITES: dict[str, Handler] = {"conversations.open": _open}
