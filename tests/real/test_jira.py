"""Jira Data Center as nobody here wrote it: what the adapter relies on, each effect's life, and the fault matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from systems import Jira820
from systems.matrices.jira import LABELS, CustomerMatrix, JiraMatrix, Site
from systems.matrices.people import maya_is_told
from systems.suites import jira, jira_adapter

[NO_LABELS] = [one.why for one in jira.DIFFERENCES if one.behaviour == "labels_are_added_and_removed_one_by_one"]
WITHOUT_EFFECT = {
    "test_arguments_that_are_not_its_own_are_refused_and_nothing_is_sent",
    "test_a_call_that_provably_did_not_leave_is_failed",
    "test_the_contract_is_complete",
    "test_the_call_is_bounded_in_time",
    "test_what_is_restored_was_read_before",
    "test_the_request_names_our_action",
}
INERT = replace(
    LABELS,
    exempt={name: NO_LABELS for name in dir(JiraMatrix) if name.startswith("test_") and name not in WITHOUT_EFFECT},
)


@pytest.mark.parametrize("suite", [jira, jira_adapter], ids=["requests", "lives"])
def test_the_server_does_what_the_suite_says_of_it(jira820: Jira820, suite: Any) -> None:
    """Every behaviour holds, or is listed with the reason why that is no harm; a listed one that holds is a problem."""
    assert suite.problems("jira820", jira820.url, jira820.token, jira820.project) == []


@contextmanager
def data_center() -> Iterator[Site]:
    """A Data Center site of its own: everybody is one account there, so a foreign change is told by its value."""
    with Jira820.start() as running, maya_is_told() as told:
        yield Site(
            url=running.url,
            api="data_center",
            token=running.token,
            told=told,
            project=running.project,
            maya="maya",
            noor="noor",
        )


class TestTeam(JiraMatrix):
    """Read by a team alone."""

    subjects = tuple(INERT if one is LABELS else one for one in JiraMatrix.subjects)

    @contextmanager
    def system(self, folder: Path) -> Iterator[Site]:
        del folder
        with data_center() as site:
            yield site


class TestCustomers(CustomerMatrix):
    """Read by customers too."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Site]:
        del folder
        with data_center() as site:
            yield site
