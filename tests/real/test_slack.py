"""The Slack adapter on an emulator that nobody here wrote: what it relies on, the life of every effect, the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from systems import SlackEmulator
from systems.matrices.slack import SlackMatrix, Workspace, report_in
from systems.suites import slack, slack_adapter


@pytest.mark.parametrize("suite", [slack, slack_adapter], ids=lambda suite: suite.__name__.rpartition(".")[2])
def test_the_emulator_answers_as_the_suite_says(slack_emulator, suite):
    """Every behaviour that the adapter relies on, and every life of an effect; the differences are listed there."""
    base_url = slack_emulator.api_url.rstrip("/")
    assert suite.problems("emulator", base_url, slack_emulator.token) == []


class TestSlack(SlackMatrix):
    """A workspace of its own: a crowd would be in the way of the tests that share one."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Workspace]:
        with SlackEmulator.start() as emulator:

            def new_channel(name: str) -> str:
                channel = str(emulator.ask("conversations.create", name=name)["channel"]["id"])
                assert emulator.ask("conversations.invite", channel=channel, users=maya)["ok"]
                return channel

            bot = emulator.ask("auth.test")["user_id"]
            maya = emulator.ask("users.lookupByEmail", email="maya@example.test")["user"]["id"]
            yield Workspace(
                url=emulator.url,
                token=emulator.token,
                bot=bot,
                maya=maya,
                her_token=emulator.her_token,
                new_channel=new_channel,
                whispers=emulator.whispers,
                files=report_in(folder),
            )
