"""Slack Web API: what an agent needs to post, find, change, take back and schedule messages, and to
upload files.

There is no key: the same post twice is two messages, whatever its client_msg_id. Metadata is shown only when asked for.
Failures are `ok: false` with status 200, except a rate limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from amends.testing.loopback import slack_chat, slack_conversations, slack_files
from amends.testing.loopback.slack_state import CHANNELS, USERS, SlackError, me, post_due
from amends.testing.loopback.system import Action, Handler, Route, System, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response

_ERRORS = {
    "unauthorized": "invalid_auth",
    "forbidden": "missing_scope",
    "not_found": "unknown_method",
    "malformed_body": "invalid_json",
    "rate_limited": "ratelimited",
    "refused": "fatal_error",
    "conflict": "fatal_error",
}


class Slack(System):
    """The workspace. A token stands for a user id; the bot may delete its own messages while `can_delete` holds."""

    name = "slack"
    settings: ClassVar[Doc] = {
        "tokens": {"xoxb-loopback": "U0AGENT"},
        "team": "Loopback",
        "can_delete": True,
        "can_update": True,
        "share_files": True,
    }

    def routes(self) -> Sequence[Route]:
        """Every method by POST; those that only read also by GET. What nobody sees yet (`RESERVES`, the bytes of a
        file) counts as a read for faults: it is not the request that a call is about.
        """
        reading: dict[str, Handler] = {
            **slack_conversations.READS,
            **slack_chat.READS,
            **slack_files.READS,
            "auth.test": _auth_test,
        }
        writing: dict[str, Handler] = {**slack_chat.WRITES, **slack_conversations.WRITES, **slack_files.WRITES}
        return [
            *(Route(verb, f"/api/{name}", call, reads=True) for name, call in reading.items() for verb in _VERBS),
            *(Route("POST", f"/api/{name}", call, reads=True) for name, call in slack_files.RESERVES.items()),
            Route("POST", slack_files.UPLOAD_PATH + "{file}", slack_files.put_bytes, reads=True),
            *(Route("POST", f"/api/{name}", call) for name, call in writing.items()),
        ]

    def actions(self) -> Mapping[str, Action]:
        """`seed_channel`, `seed_user`."""
        return {"seed_channel": _seed_channel, "seed_user": _seed_user}

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Bearer tokens; an upload address is its own credential."""
        if request.path.startswith(slack_files.UPLOAD_PATH):
            return ""
        header = request.headers.get("authorization", "")
        user = unit.setting("tokens").get(header.removeprefix("Bearer "))
        if user is None:
            raise SlackError("invalid_auth" if header else "not_authed")
        return str(user)

    def render_error(self, error: ApiError) -> Response:
        """`{"ok": false, "error": name}`; only a rate limit has a status of its own."""
        name = _ERRORS.get(error.code, error.code)
        body: Doc = {"ok": False, "error": name, **error.extra}
        if name == "ratelimited":
            return Response(HTTPStatus.TOO_MANY_REQUESTS, body, {"Retry-After": "1", **error.headers})
        return Response(200, body, error.headers)

    def tick(self, unit: Unit) -> None:
        """Scheduled messages are posted when their time has come."""
        post_due(unit)


_VERBS = ("GET", "POST")


def _auth_test(unit: Unit, _request: Request) -> Response:
    body: Doc = {
        "ok": True,
        "url": "https://loopback.slack.test/",
        "team": unit.setting("team"),
        "team_id": "T0LOOPBACK",
        "user": me(unit),
        "user_id": me(unit),
        "bot_id": "B0LOOPBACK",
    }
    return Response(200, body)


def _seed_channel(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"id", "name", "members"?, "is_private"?}`; every token's user is a member unless `members` says."""
    everybody = list(unit.setting("tokens").values())
    members: list[Any] = parameters.get("members", everybody)
    doc: Doc = {
        "id": parameters["id"],
        "name": parameters["name"],
        "is_im": False,
        "is_private": bool(parameters.get("is_private")),
        "is_archived": False,
        "members": members,
    }
    return unit.objects.put(CHANNELS, doc["id"], doc)


def _seed_user(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"id", "name", "email"?}`."""
    doc: Doc = {
        "id": parameters["id"],
        "name": parameters["name"],
        "profile": {"email": parameters.get("email", ""), "real_name": parameters["name"]},
    }
    return unit.objects.put(USERS, doc["id"], doc)
