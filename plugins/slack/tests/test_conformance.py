"""The fault matrix over the Slack capabilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Denial, Exchange, Subject
from amends.testing.loopback import LoopbackSystem

READS = ("conversations.history", "conversations.replies", "chat.scheduledMessages.list", "files.info", "files.list")
UNSEEN = ("conversations.open", "files.getUploadURLExternal", "auth.test")
TOKEN = "xoxb-loopback"
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


def _channel(slack: LoopbackSystem, word: str) -> str:
    """A channel of its own for each word."""
    key = "C" + "".join(letter for letter in word.upper() if letter.isalnum())
    slack.control("seed_channel", id=key, name=key.lower(), members=["U0AGENT", "U0HUMAN", "U0MAYA"])
    return key


def _in_channel(slack: LoopbackSystem, args: Args) -> list[dict[str, Any]]:
    return [item for item in slack.objects("messages") if item["channel"] == args["channel"]]


def _ours(slack: LoopbackSystem, args: Args) -> list[dict[str, Any]]:
    """What the bot wrote in the channel and did not mark as withdrawn."""
    return [
        item
        for item in _in_channel(slack, args)
        if item["user"] == "U0AGENT" and not item.get("metadata", {}).get("event_payload", {}).get("amends_withdrawn")
    ]


def _said(slack: LoopbackSystem, channel: Json, text: str, account: str, **more: Json) -> str:
    body = {"channel": channel, "text": text, **more}
    return str(slack.foreign("POST", "/api/chat.postMessage", body, account=account)["body"]["ts"])


def _crowd(slack: LoopbackSystem, args: Args) -> None:
    for number in range(205):
        _said(slack, args["channel"], f"other {number}", "U0HUMAN", thread_ts=args.get("thread_ts"))


def _delete(slack: LoopbackSystem, args: Args) -> None:
    for item in _ours(slack, args):
        body = {"channel": args["channel"], "ts": item["ts"]}
        slack.foreign("POST", "/api/chat.delete", body, account="U0AGENT")


def _edit(slack: LoopbackSystem, args: Args) -> None:
    """Somebody with the same bot changes the text."""
    body = {"channel": args["channel"], "ts": _ours(slack, args)[-1]["ts"], "text": "theirs"}
    slack.foreign("POST", "/api/chat.update", body, account="U0AGENT")


def _edited(slack: LoopbackSystem, args: Args) -> bool:
    return any(item["text"] == "theirs" for item in _in_channel(slack, args))


def _reworded(args: Args) -> Args:
    return {**args, "text": "in other words"}


def _post_args(slack: LoopbackSystem, word: str) -> Args:
    return {"channel": _channel(slack, word), "text": f"billing field is live {word}"}


def _thread_args(slack: LoopbackSystem, word: str) -> Args:
    channel = _channel(slack, word)
    there = [item for item in slack.objects("messages") if item["channel"] == channel]
    root = there[0]["ts"] if there else _said(slack, channel, "root", "U0HUMAN")
    return {"channel": channel, "text": f"and tested {word}", "thread_ts": root}


def _message_args(text: str) -> Callable[[LoopbackSystem, str], Args]:
    def args(slack: LoopbackSystem, word: str) -> Args:
        channel = _channel(slack, word)
        there = [item for item in slack.objects("messages") if item["channel"] == channel]
        ts = there[0]["ts"] if there else _said(slack, channel, "status: green", "U0AGENT")
        return {"channel": channel, "ts": ts, **({"text": text} if text else {})}

    return args


def _schedule_args(slack: LoopbackSystem, word: str) -> Args:
    return {"channel": _channel(slack, word), "text": f"maintenance {word}", "post_at": int(time.time()) + 7200}


def _waiting(slack: LoopbackSystem, args: Args) -> list[dict[str, Any]]:
    return [item for item in slack.objects("scheduled") if item["channel"] == args["channel"]]


def _unschedule(slack: LoopbackSystem, args: Args) -> None:
    for item in _waiting(slack, args):
        body = {"channel": args["channel"], "scheduled_message_id": item["id"]}
        slack.foreign("POST", "/api/chat.deleteScheduledMessage", body, account="U0AGENT")


def _files(slack: LoopbackSystem, args: Args) -> list[dict[str, Any]]:
    return [item for item in slack.objects("files") if args["channel"] in item["channels"]]


def _delete_files(slack: LoopbackSystem, args: Args) -> None:
    for item in _files(slack, args):
        slack.foreign("POST", "/api/files.delete", {"file": item["id"]}, account="U0AGENT")


def _shown(slack: LoopbackSystem, args: Args) -> int:
    place = f"slack:{args['channel']}/U0MAYA"
    return len([item for item in slack.effects("ephemeral") if item["resource"] == place])


class _Workspace(AdapterMatrix[LoopbackSystem]):
    """A workspace with a line in between."""

    files: ClassVar[Path] = Path()

    @contextmanager
    def system(self, folder: Path) -> Iterator[LoopbackSystem]:
        (folder / "out").mkdir()
        (folder / "out" / "report.csv").write_bytes(b"a;b\n1;2\n")
        type(self).files = folder / "out"
        with LoopbackSystem.start("slack") as slack:
            slack.control("seed_user", id="U0MAYA", name="maya", email="maya@example.test")
            yield slack

    def upstream(self, system: LoopbackSystem) -> str:
        return system.url

    def adapters(self, system: LoopbackSystem, address: str) -> Mapping[str, Mapping[str, Json]]:
        del system
        options: dict[str, Json] = {"plugin": "slack", "base_url": f"{address}/api", "token": "env:SLACK_TOKEN"}
        return {"slack": {**options, "files": str(self.files), "people": {"maya": "U0MAYA"}}}

    def secrets(self, system: LoopbackSystem) -> Mapping[str, str]:
        del system
        return {"SLACK_TOKEN": TOKEN}

    def writes(self, exchange: Exchange) -> bool:
        """Slack reads by POST; what nobody sees yet is not the request that a call is about."""
        path = exchange.target.partition("?")[0]
        return path.rpartition("/")[2] not in (*READS, *UNSEEN) and not path.startswith("/upload/")


class TestMessages(_Workspace):
    """What is made: messages and files."""

    subjects = (
        Subject(
            capability="slack.post",
            args=_post_args,
            effects=lambda slack, args: len(_ours(slack, args)),
            other=_reworded,
            text="text",
            taken_away=_delete,
            edited=_edit,
            kept=_edited,
            crowd=_crowd,
            denial=NO,
        ),
        Subject(
            capability="slack.reply",
            args=_thread_args,
            effects=lambda slack, args: len(_ours(slack, args)),
            other=_reworded,
            text="text",
            taken_away=_delete,
            edited=_edit,
            kept=_edited,
            crowd=_crowd,
            denial=NO,
        ),
        Subject(
            capability="slack.schedule",
            args=_schedule_args,
            effects=lambda slack, args: len(_waiting(slack, args)),
            other=_reworded,
            text="text",
            taken_away=_unschedule,
            denial=NO,
        ),
        Subject(
            capability="slack.ephemeral",
            args=lambda slack, word: {"channel": _channel(slack, word), "person": "maya", "text": f"for you {word}"},
            effects=_shown,
            other=_reworded,
            text="text",
            denial=NO,
            exempt=EPHEMERAL,
        ),
        Subject(
            capability="slack.upload",
            args=lambda slack, word: {"channel": _channel(slack, word), "path": "report.csv", "title": word},
            effects=lambda slack, args: len(_files(slack, args)),
            other=lambda args: {**args, "title": "in other words"},
            taken_away=_delete_files,
            denial=NO,
            exempt=NAMED,
        ),
    )


class TestEdits(_Workspace):
    """What is changed. The correction that follows a restored text is a message, and no request of the undo."""

    subjects = (
        Subject(
            capability="slack.update",
            args=_message_args("status: red"),
            effects=lambda slack, args: int(bool(_in_channel(slack, args)[0].get("metadata"))),
            text="text",
            edited=_edit,
            kept=_edited,
            denial=NO,
        ),
        Subject(
            capability="slack.delete",
            args=_message_args(""),
            effects=lambda slack, args: int(not _in_channel(slack, args)),
            denial=NO,
            exempt=UNMARKED,
        ),
    )

    def writes(self, exchange: Exchange) -> bool:
        return exchange.target.rpartition("/")[2] in ("chat.update", "chat.delete")
