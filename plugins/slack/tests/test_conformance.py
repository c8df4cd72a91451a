"""The fault matrix over the Slack capabilities, on the loopback workspace; tests/real has it on another's emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amends.testing.loopback import LoopbackSystem
from systems.matrices.slack import SlackMatrix, Workspace, report_in

TOKEN, HER_TOKEN = "xoxb-of-the-kit", "xoxp-of-maya"


class TestSlack(SlackMatrix):
    """The loopback workspace."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Workspace]:
        with LoopbackSystem.start("slack", settings={"tokens": {TOKEN: "U0AGENT", HER_TOKEN: "U0MAYA"}}) as slack:
            slack.control("seed_user", id="U0MAYA", name="maya", email="maya@example.test")

            def new_channel(name: str) -> str:
                number = f"C{name.upper().replace('-', '')}"
                return str(slack.control("seed_channel", id=number, name=name)["id"])

            def whispers(channel: str) -> int:
                place = f"slack:{channel}/U0MAYA"
                return len([item for item in slack.effects("ephemeral") if item["resource"] == place])

            yield Workspace(
                url=slack.url,
                token=TOKEN,
                bot="U0AGENT",
                maya="U0MAYA",
                her_token=HER_TOKEN,
                new_channel=new_channel,
                whispers=whispers,
                files=report_in(folder),
            )
