"""A loopback Slack over real sockets, and calls as the engine would make them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from amends.spi import Call, Capability, Observation
from amends.spi.http import HttpSender
from amends.testing.loopback.handle import LoopbackSystem
from amends_slack.client import Slack
from amends_slack.correctors import PersonNote, ThreadCorrection
from amends_slack.edits import Delete, Update
from amends_slack.ephemeral import Ephemeral
from amends_slack.messages import Post, Reply
from amends_slack.options import SlackOptions
from amends_slack.schedule import Schedule

CHANNEL = "C0BILLING"
KINDS: dict[str, type[Any]] = {
    "post": Post,
    "reply": Reply,
    "update": Update,
    "delete": Delete,
    "schedule": Schedule,
    "ephemeral": Ephemeral,
    "correction": ThreadCorrection,
    "note": PersonNote,
}


class Workspace:
    """The system, the capabilities against it, and what its own side counted."""

    def __init__(self, system: LoopbackSystem) -> None:
        self.system = system
        self.options = SlackOptions(base_url=f"{system.url}/api", people={"maya": "U0MAYA"})
        self.slack = Slack(self.options, HttpSender())

    def capability(self, kind: str) -> Capability:
        return KINDS[kind](self.slack)

    def call(self, args: dict[str, Any], *, marker: str = "act-1", **facts: Any) -> Call:
        """A call that is still wanted, written just now."""
        now_us = int(time.time() * 1_000_000)
        call = Call(
            run_id="run-1",
            action_id=marker,
            marker=marker,
            idempotency_key=f"key-{marker}",
            args=args,
            before={},
            allocated={},
            effect={},
            after={},
            reference="",
            attempt=1,
            sent_at_us=now_us,
            timeout_seconds=5.0,
            secret=lambda reference: {"env:SLACK_BOT_TOKEN": "xoxb-loopback"}[reference],
            deadline_us=now_us + 5_000_000,
            still_wanted=lambda: True,
        )
        return replace(call, **facts)

    def prepared(self, capability: Capability, call: Call) -> Call:
        """The call with what `prepare` read."""
        found = capability.prepare(call)
        return replace(call, before=found.before, allocated=found.allocated)

    def done(self, capability: Capability, call: Call) -> Call:
        """Make the call and return it with what was recorded of it."""
        receipt = capability.do(call)
        return replace(call, effect=receipt.effect, reference=receipt.reference, after=receipt.after)

    def undo(self, capability: Capability, call: Call, rung: str = "") -> Observation:
        """Undo by one rung, then read again."""
        capability.undo(replace(call, rung=rung, undo_key="key-undo", undo_marker="act-undo"))
        return capability.verify_undone(call)

    def sent(self, method: str) -> int:
        """How many requests of a method reached the server."""
        return len(self.system.requests("POST", f"/api/{method}"))

    def messages(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        return [item for item in self.system.objects("messages") if item["channel"] == channel]

    def foreign_post(self, text: str, **fields: Any) -> str:
        """Somebody else's message; returns its ts."""
        body = {"channel": CHANNEL, "text": text, **fields}
        answer = self.system.foreign("POST", "/api/chat.postMessage", body, account="U0HUMAN")
        return str(answer["body"]["ts"])


@pytest.fixture
def workspace():
    with LoopbackSystem.start("slack") as system:
        system.control("seed_channel", id=CHANNEL, name="billing", members=["U0AGENT", "U0HUMAN"])
        system.control("seed_channel", id="C0OTHER", name="other", members=["U0HUMAN"])
        system.control("seed_user", id="U0MAYA", name="maya")
        yield Workspace(system)
        assert system.unfired() == [], "a fault was armed in vain: the test has tested nothing"
