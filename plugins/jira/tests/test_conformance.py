"""The fault matrix over the Jira capabilities, on a Cloud site; tests/real has it on Data Center."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amends.testing.loopback import LoopbackSystem
from systems.matrices.jira import TOKEN, CustomerMatrix, JiraMatrix, Site
from systems.matrices.people import maya_is_told

PEOPLE = {f"acc-{name}": {"displayName": name.title()} for name in ("agent", "maya", "noor")}


@contextmanager
def cloud() -> Iterator[Site]:
    """A Cloud site, where Noor is somebody else."""
    settings = {"users": PEOPLE, "access_tokens": {TOKEN: "acc-agent", "of-noor": "acc-noor"}}
    with LoopbackSystem.start("jira", settings=settings) as jira, maya_is_told() as told:
        yield Site(url=jira.url, api="cloud", token="of-noor", told=told)


class TestTeam(JiraMatrix):
    """Read by a team alone."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Site]:
        del folder
        with cloud() as site:
            yield site


class TestCustomers(CustomerMatrix):
    """Read by customers too. Transitions are released as comments are; tests/real has them too."""

    subjects = tuple(one for one in CustomerMatrix.subjects if one.capability != "jira.transition")

    @contextmanager
    def system(self, folder: Path) -> Iterator[Site]:
        del folder
        with cloud() as site:
            yield site
