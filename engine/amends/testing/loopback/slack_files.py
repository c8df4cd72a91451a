"""`files.*`: an address to upload to, the upload itself, and the call that makes the file and shows it in a channel."""

from __future__ import annotations

import hashlib
from typing import Any

from amends.testing.loopback.slack_state import (
    MESSAGES,
    SlackError,
    arguments,
    find_channel,
    me,
    message_key,
    new_ts,
)
from amends.testing.loopback.system import Handler, Unit
from amends.testing.loopback.wire import Doc, Request, Response, as_doc, as_list

FILES = "files"
SESSIONS = "upload_sessions"
UPLOAD_PATH = "/upload/v1/"


def put_bytes(unit: Unit, request: Request) -> Response:
    """The bytes of a file, to the address that was given out; it takes no token. Nobody sees anything yet."""
    session = unit.objects.peek(SESSIONS, request.params["file"])
    if session is None or session["completed"]:
        return Response(404, "file_not_found", content_type="text/plain")
    received: Doc = {"size": len(request.raw), "sha256": hashlib.sha256(request.raw).hexdigest()}
    unit.objects.put(SESSIONS, session["id"], {**session, **received})
    return Response(200, f"OK - {len(request.raw)}", content_type="text/plain")


def _reserve(unit: Unit, request: Request) -> Response:
    """`filename`, `length` -> `{ok, upload_url, file_id}`."""
    given = arguments(request)
    name, length = str(given.get("filename") or ""), str(given.get("length") or "")
    if not name or not length.isdigit() or int(length) == 0:
        raise SlackError("invalid_arguments")
    key = unit.new_id("F")
    session: Doc = {"id": key, "name": name, "length": int(length), "user": me(unit), "completed": False}
    unit.objects.put(SESSIONS, key, session)
    return Response(200, {"ok": True, "upload_url": f"{unit.base}{UPLOAD_PATH}{key}", "file_id": key})


def _complete(unit: Unit, request: Request) -> Response:
    """`files` (`[{id, title}]`), `channel_id`? -> `{ok, files}`; shown only while `share_files` holds."""
    given = arguments(request)
    asked = [as_doc(item) for item in as_list(given.get("files"))]
    if not asked:
        raise SlackError("invalid_arguments")
    channel = find_channel(unit, {"channel": given["channel_id"]}) if given.get("channel_id") else None
    made = [_make(unit, item, channel) for item in asked]
    return Response(200, {"ok": True, "files": made})


def _make(unit: Unit, asked: Doc, channel: Doc | None) -> Doc:
    session = unit.objects.peek(SESSIONS, str(asked.get("id")))
    if session is None or session["completed"] or "size" not in session or session["user"] != me(unit):
        raise SlackError("file_not_found")
    unit.objects.put(SESSIONS, session["id"], {**session, "completed": True})
    file: Doc = {
        "id": session["id"],
        "created": int(unit.now()),
        "name": session["name"],
        "title": asked.get("title") or session["name"],
        "size": session["size"],
        "user": session["user"],
        "channels": [],
        "shares": {},
    }
    if channel is not None and unit.setting("share_files"):
        file.update(channels=[channel["id"]], shares=_show(unit, channel, file))
    unit.objects.put(FILES, file["id"], file)
    where = channel["id"] if channel is not None else ""
    detail: Doc = {"name": file["name"], "title": file["title"], "sha256": session["sha256"]}
    unit.effects.created("file", f"slack:{where}", file["id"], detail=detail)
    return file


def _show(unit: Unit, channel: Doc, file: Doc) -> Doc:
    """Post the message that shows the file, and say where."""
    ts = new_ts(unit)
    message: Doc = {
        "channel": channel["id"],
        "type": "message",
        "subtype": "file_share",
        "ts": ts,
        "user": me(unit),
        "text": "",
        "files": [{"id": file["id"], "title": file["title"]}],
    }
    unit.objects.put(MESSAGES, message_key(channel["id"], ts), message)
    kind = "private" if channel.get("is_private") else "public"
    return {kind: {channel["id"]: [{"ts": ts, "channel_name": channel["name"]}]}}


def _info(unit: Unit, request: Request) -> Response:
    file = unit.objects.get(FILES, str(arguments(request).get("file")))
    if file is None:
        raise SlackError("file_not_found")
    return Response(200, {"ok": True, "file": file})


def _list(unit: Unit, request: Request) -> Response:
    """Newest first: `channel`, `user`, `ts_from`, `ts_to`, `page`, `count`."""
    given = arguments(request)
    since, until = float(given.get("ts_from") or 0), float(given.get("ts_to") or "inf")
    found = [
        file
        for file in unit.objects.all(FILES)
        if since <= file["created"] <= until
        and given.get("channel") in (None, *file["channels"])
        and given.get("user") in (None, file["user"])
    ][::-1]
    page, count = int(given.get("page") or 1), int(given.get("count") or 100)
    paging: dict[str, Any] = {"count": count, "total": len(found), "page": page, "pages": -(-len(found) // count)}
    return Response(200, {"ok": True, "files": found[(page - 1) * count : page * count], "paging": paging})


def _delete(unit: Unit, request: Request) -> Response:
    """`file` -> `{ok}`; the messages that showed it go with it."""
    key = str(arguments(request).get("file"))
    file = unit.objects.peek(FILES, key)
    if file is None:
        raise SlackError("file_not_found")
    if file["user"] != me(unit) or not unit.setting("can_delete"):
        raise SlackError("cant_delete_file")
    unit.objects.remove(FILES, key)
    for shares in file["shares"].values():
        for channel, shown in shares.items():
            for share in shown:
                unit.objects.remove(MESSAGES, message_key(channel, share["ts"]))
    unit.effects.removed("file", key)
    return Response(200, {"ok": True})


READS: dict[str, Handler] = {"files.info": _info, "files.list": _list}
RESERVES: dict[str, Handler] = {"files.getUploadURLExternal": _reserve}
WRITES: dict[str, Handler] = {"files.completeUploadExternal": _complete, "files.delete": _delete}
