"""Whoever has to be told when something that people could see is taken back."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from amends.core.canonical import Json
from amends.testing.loopback import LoopbackSystem

MAYA = "maya"
SECRETS = {"SLACK_TOKEN": "xoxb-loopback"}


@contextmanager
def maya_is_told() -> Generator[Mapping[str, Json]]:
    """The table of an adapter `slack` through which `person:maya` is told; it needs `SECRETS`."""
    with LoopbackSystem.start("slack") as slack:
        slack.control("seed_user", id="U0MAYA", name=MAYA)
        yield {"base_url": f"{slack.url}/api", "token": "env:SLACK_TOKEN", "people": {MAYA: "U0MAYA"}}
