"""The fault matrix of the Slack capabilities, over any workspace that speaks the Web API.

A subclass says how its workspace is started, as a `Workspace`. Effects are counted, and other people act, by the Web
API without the adapter; only a message that one person sees for a moment is in no listing, so the workspace itself
tells how many there were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Denial, Exchange, Subject
from systems.web import call, want

READS = ("conversations.history", "conversations.replies", "chat.scheduledMessages.list", "files.info", "files.list")
UNSEEN = ("conversations.open", "files.getUploadURLExternal", "auth.test")
CORRECTION = "[Automated correction"  # how the engine's notes begin
CROWD = 205  # more than a page of the adapter's
HOUR_SECONDS = 3600
NO = Denial(status=200, body={"ok": False, "error": "restricted_action"})
BLIND = "an answer to an ephemeral message names nothing but a time, and no listing shows it"
UNMARKED = {"test_the_request_names_our_action": "chat.delete takes channel and ts only: the message is looked at"}
NAMED = {"test_the_request_names_our_action": "the mark is in the name that was reserved for the file"}
EPHEMERAL = {
    "test_the_request_names_our_action": "chat.postEphemeral takes no metadata, and nothing could be read back",
    "test_a_200_that_did_nothing_is_not_recorded_as_an_effect": f"{BLIND}: one repeated within the clock margin passes",
    "test_two_effects_of_one_call_are_both_accounted_for": f"{BLIND}: a twin cannot be seen",
    "test_a_call_that_lands_late_is_found": f"{BLIND}: a lost one is a person's",
    "test_a_look_that_lags_does_not_end_in_a_second_effect": f"{BLIND}: there is no look",
}


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A running workspace. `token` is the adapter's and stands for the user `bot`; Maya is somebody else, with a token
    of her own.
    """

    url: str
    token: str
    bot: str
    maya: str
    her_token: str
    new_channel: Callable[[str], str]
    """Make a channel of this name with both in it, and answer its id."""
    whispers: Callable[[str], int]
    """How many messages Maya alone was shown in a channel."""
    files: Path
    """The folder that uploads come from."""

    def say(self, method: str, **arguments: Json) -> Any:
        """A call of the bot's. Raises `AssertionError` where Slack says no."""
        return self._say(self.token, method, arguments)

    def maya_says(self, method: str, **arguments: Json) -> Any:
        """A call of Maya's, in the same way."""
        return self._say(self.her_token, method, arguments)

    def _say(self, token: str, method: str, arguments: Args) -> Any:
        headers = {"authorization": f"Bearer {token}"}
        answer = want("POST", f"{self.url}/api/{method}", arguments, headers=headers)
        assert answer["ok"], (method, arguments, answer)
        return answer

    def messages(self, args: Args) -> list[Any]:
        """The channel's messages with those of the thread that a call is about."""
        asked: dict[str, Json] = {"channel": args["channel"], "limit": 1000, "include_all_metadata": True}
        found = self.say("conversations.history", **asked)["messages"]
        if "thread_ts" in args:
            found += self.say("conversations.replies", ts=args["thread_ts"], **asked)["messages"]
        return list({item["ts"]: item for item in found}.values())


def _mark(item: Any) -> Any:
    return item.get("metadata", {}).get("event_payload", {})


# --- messages ---------------------------------------------------------------------------------------------------------


def _channel(workspace: Workspace, word: str) -> str:
    return workspace.new_channel(f"c-{word}")


def _ours(workspace: Workspace, args: Args) -> list[Any]:
    """What the bot wrote there and did not mark as withdrawn."""
    found = workspace.messages(args)
    return [item for item in found if item["user"] == workspace.bot and not _mark(item).get("amends_withdrawn")]


def _crowd(workspace: Workspace, args: Args) -> None:
    thread = {"thread_ts": args["thread_ts"]} if "thread_ts" in args else {}
    for number in range(CROWD):
        workspace.maya_says("chat.postMessage", channel=args["channel"], text=f"other {number}", **thread)


def _delete(workspace: Workspace, args: Args) -> None:
    for item in _ours(workspace, args):
        workspace.say("chat.delete", channel=args["channel"], ts=item["ts"])


def _edit(workspace: Workspace, args: Args) -> None:
    """Somebody with the same bot changes the text."""
    workspace.say("chat.update", channel=args["channel"], ts=_ours(workspace, args)[-1]["ts"], text="theirs")


def _edited(workspace: Workspace, args: Args) -> bool:
    return any(item["text"] == "theirs" for item in workspace.messages(args))


def _reworded(args: Args) -> Args:
    return {**args, "text": "in other words"}


def _post_args(workspace: Workspace, word: str) -> Args:
    return {"channel": _channel(workspace, word), "text": f"billing field is live {word}"}


def _reply_args(workspace: Workspace, word: str) -> Args:
    channel = _channel(workspace, word)
    root = workspace.maya_says("chat.postMessage", channel=channel, text="root")["ts"]
    return {"channel": channel, "text": f"and tested {word}", "thread_ts": root}


POST = Subject[Workspace](
    capability="slack.post",
    args=_post_args,
    effects=lambda workspace, args: len(_ours(workspace, args)),
    other=_reworded,
    text="text",
    taken_away=_delete,
    edited=_edit,
    kept=_edited,
    crowd=_crowd,
    denial=NO,
)
REPLY = Subject[Workspace](
    capability="slack.reply",
    args=_reply_args,
    effects=lambda workspace, args: len(_ours(workspace, args)),
    other=_reworded,
    text="text",
    taken_away=_delete,
    edited=_edit,
    kept=_edited,
    crowd=_crowd,
    denial=NO,
)
EPHEMERAL_MESSAGE = Subject[Workspace](
    capability="slack.ephemeral",
    args=lambda workspace, word: {"channel": _channel(workspace, word), "person": "maya", "text": f"for you {word}"},
    effects=lambda workspace, args: workspace.whispers(str(args["channel"])),
    other=_reworded,
    text="text",
    denial=NO,
    exempt=EPHEMERAL,
)

# --- changes of a message ---------------------------------------------------------------------------------------------


def _message_args(**more: Json) -> Callable[[Workspace, str], Args]:
    """A message that the bot wrote before."""

    def args(workspace: Workspace, word: str) -> Args:
        channel = _channel(workspace, word)
        ts = workspace.say("chat.postMessage", channel=channel, text="status: green")["ts"]
        return {"channel": channel, "ts": ts, **more}

    return args


def _named(workspace: Workspace, args: Args) -> list[Any]:
    return [item for item in workspace.messages(args) if item["ts"] == args["ts"]]


UPDATE = Subject[Workspace](
    capability="slack.update",
    args=_message_args(text="status: red"),
    effects=lambda workspace, args: len([item for item in _named(workspace, args) if _mark(item)]),
    text="text",
    edited=_edit,
    kept=_edited,
    denial=NO,
)
DELETE = Subject[Workspace](
    capability="slack.delete",
    args=_message_args(),
    effects=lambda workspace, args: int(not _named(workspace, args)),
    denial=NO,
    exempt=UNMARKED,
)

# --- scheduled messages -----------------------------------------------------------------------------------------------


def _schedule_args(workspace: Workspace, word: str) -> Args:
    at = int(time.time()) + 2 * HOUR_SECONDS
    return {"channel": _channel(workspace, word), "text": f"maintenance {word}", "post_at": at}


def _waiting(workspace: Workspace, args: Args) -> list[Any]:
    found = workspace.say("chat.scheduledMessages.list", channel=args["channel"], limit=1000)["scheduled_messages"]
    return [item for item in found if not item["text"].startswith("other ")]


def _schedule_crowd(workspace: Workspace, args: Args) -> None:
    at = int(time.time()) + HOUR_SECONDS
    for number in range(CROWD):
        workspace.say("chat.scheduleMessage", channel=args["channel"], text=f"other {number}", post_at=at + number)


def _unschedule(workspace: Workspace, args: Args) -> None:
    for item in _waiting(workspace, args):
        workspace.say("chat.deleteScheduledMessage", channel=args["channel"], scheduled_message_id=item["id"])


SCHEDULE = Subject[Workspace](
    capability="slack.schedule",
    args=_schedule_args,
    effects=lambda workspace, args: len(_waiting(workspace, args)),
    other=_reworded,
    text="text",
    taken_away=_unschedule,
    crowd=_schedule_crowd,
    denial=NO,
)

# --- files ------------------------------------------------------------------------------------------------------------


def _files(workspace: Workspace, args: Args) -> list[Any]:
    return list(workspace.say("files.list", channel=args["channel"], count=1000)["files"])


def _delete_files(workspace: Workspace, args: Args) -> None:
    for item in _files(workspace, args):
        workspace.say("files.delete", file=item["id"])


def _file_crowd(workspace: Workspace, args: Args) -> None:
    """Files that the bot made and showed nowhere: made at once, as one call makes many."""
    made: list[Json] = []
    for number in range(CROWD):
        reserved = workspace.say("files.getUploadURLExternal", filename=f"other-{number}.csv", length=1)
        assert call("POST", reserved["upload_url"], form={"x": 1}).status == 200
        made.append({"id": reserved["file_id"]})
    workspace.say("files.completeUploadExternal", files=made)


UPLOAD = Subject[Workspace](
    capability="slack.upload",
    args=lambda workspace, word: {"channel": _channel(workspace, word), "path": "report.csv", "title": word},
    effects=lambda workspace, args: len(_files(workspace, args)),
    other=lambda args: {**args, "title": "in other words"},
    taken_away=_delete_files,
    crowd=_file_crowd,
    denial=NO,
    exempt=NAMED,
)

# --- the matrix -------------------------------------------------------------------------------------------------------


def report_in(folder: Path) -> Path:
    """A folder with the file that is uploaded, for `Workspace.files`."""
    made = folder / "out"
    made.mkdir()
    (made / "report.csv").write_bytes(b"a;b\n1;2\n")
    return made


class SlackMatrix(AdapterMatrix[Workspace]):
    """A workspace whose bot writes where Maya reads."""

    subjects = (POST, REPLY, EPHEMERAL_MESSAGE, UPDATE, DELETE, SCHEDULE, UPLOAD)

    def upstream(self, system: Workspace) -> str:
        return system.url

    def adapters(self, system: Workspace, address: str) -> Mapping[str, Mapping[str, Json]]:
        options: dict[str, Json] = {"base_url": f"{address}/api", "token": "env:SLACK_TOKEN"}
        return {"slack": {**options, "files": str(system.files), "people": {"maya": system.maya}}}

    def secrets(self, system: Workspace) -> Mapping[str, str]:
        return {"SLACK_TOKEN": system.token}

    def writes(self, exchange: Exchange) -> bool:
        """Slack reads by POST; what nobody sees yet is not the request that a call is about, and neither is a
        correction.
        """
        path = exchange.target.partition("?")[0]
        silent = path.rpartition("/")[2] in {*READS, *UNSEEN} or path.startswith("/upload/")
        return not silent and not exchange.carries(CORRECTION)
