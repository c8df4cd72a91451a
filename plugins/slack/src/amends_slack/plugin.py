"""The hooks of the Slack adapter. They only register."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends.spi.http import HttpSender
from amends_slack.client import Slack
from amends_slack.correctors import PersonNote, ThreadCorrection
from amends_slack.edits import Delete, Update
from amends_slack.ephemeral import Ephemeral
from amends_slack.examine import examine
from amends_slack.messages import Post, Reply
from amends_slack.options import options_of
from amends_slack.schedule import Schedule
from amends_slack.uploads import Upload

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Seven capabilities and two correctors, all on one sender."""
    options = options_of(context)
    slack = Slack(options, HttpSender())
    folder = Path(context.base_path) / options.files if options.files else None
    for capability in (
        Post(slack),
        Reply(slack),
        Update(slack),
        Delete(slack),
        Schedule(slack),
        Ephemeral(slack),
        Upload(slack, folder),
        ThreadCorrection(slack),
        PersonNote(slack),
    ):
        registry.capability(capability)


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Slack`, with their tests."""
    del context
    folder = files("amends_slack") / "policies"
    registry.policies(
        PolicyContribution(
            policies={"slack.cedar": (folder / "slack.cedar").read_text(encoding="utf-8")},
            tests={"slack.policytest.json": (folder / "slack.policytest.json").read_text(encoding="utf-8")},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """`auth.test`."""
    options = options_of(context)
    registry.doctor(lambda: examine(options, HttpSender(), context.secret))
