"""Which loopback systems there are."""

from __future__ import annotations

from collections.abc import Callable

from amends.testing.loopback.github import GitHub
from amends.testing.loopback.jira import Jira
from amends.testing.loopback.partner import Partner
from amends.testing.loopback.portal import Portal
from amends.testing.loopback.shop import Shop
from amends.testing.loopback.slack import Slack
from amends.testing.loopback.system import System
from amends.testing.loopback.unleash import Unleash

SYSTEMS: dict[str, Callable[[], System]] = {
    "github": GitHub,
    "jira": Jira,
    "partner": Partner,
    "portal": Portal,
    "shop": Shop,
    "slack": Slack,
    "unleash": Unleash,
}


def build_system(name: str) -> System:
    """A fresh system by name.

    Raises:
        ValueError: there is no such system; the text names those that there are.
    """
    if name not in SYSTEMS:
        raise ValueError(f"no loopback system `{name}`; there are {', '.join(sorted(SYSTEMS))}")
    return SYSTEMS[name]()
