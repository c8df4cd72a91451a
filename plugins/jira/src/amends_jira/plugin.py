"""The hooks of the Jira adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends.spi.http import HttpSender
from amends_jira import contracts
from amends_jira.assign import Assign
from amends_jira.client import Jira
from amends_jira.comment import Comment, IssueCorrection
from amends_jira.create import Create
from amends_jira.examine import examine
from amends_jira.labels import Labels
from amends_jira.link import Link
from amends_jira.options import options_of
from amends_jira.remote_link import RemoteLink
from amends_jira.transition import Transition

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Seven capabilities and the corrector of `jira:` places, all on one sender."""
    jira = Jira(options_of(context), HttpSender())
    for capability in (
        Transition(jira),
        Comment(jira),
        Create(jira),
        Assign(jira),
        Labels(jira),
        Link(jira),
        RemoteLink(jira),
        IssueCorrection(jira),
    ):
        registry.capability(capability)


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Jira`, with their tests.

    A release is only spoken of where the site's options make the call irreversible: otherwise there is no such action.
    """
    options = options_of(context)
    calls = {"transition": contracts.transition, "comment": contracts.comment, "create": contracts.create}
    released = [name for name, contract in calls.items() if contract(options).irreversible]
    names = ["jira", *(f"release_{name}" for name in released)]
    registry.policies(
        PolicyContribution(
            policies={f"{name}.cedar": _text(f"{name}.cedar") for name in names},
            tests={f"{name}.policytest.json": _text(f"{name}.policytest.json") for name in names},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """`myself`."""
    options = options_of(context)
    registry.doctor(lambda: examine(options, HttpSender(), context.secret))


def _text(name: str) -> str:
    return (files("amends_jira") / "policies" / name).read_text(encoding="utf-8")
