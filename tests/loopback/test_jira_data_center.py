"""The tracker in Data Center's form: what the adapter relies on, asked as of any system that speaks REST v2."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from amends.testing.loopback import LoopbackSystem

API = "/rest/api/2"
SUITES = Path(__file__).parents[1] / "systems" / "suites"


def load(name: str) -> ModuleType:
    """A request and answer suite, which the tier of real systems runs on the independent server."""
    spec = importlib.util.spec_from_file_location(f"suite_of_{name}", SUITES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    return load("jira")


@pytest.fixture
def tracker(suite):
    with LoopbackSystem.start("jira", settings=suite.LOOPBACK) as system:
        yield system


def test_the_loopback_tracker_behaves_as_data_center_is_documented_to(suite, tracker):
    """Every behaviour of the suite, and no difference."""
    assert suite.problems("loopback", tracker.url, "jira-token") == []


def test_every_effect_of_the_adapter_lives_on_the_loopback_tracker_as_it_should(tracker):
    """Made, found without its answer, taken back, seen to be gone; left alone where somebody went on with it."""
    assert load("jira_adapter").problems("loopback", tracker.url, "jira-token") == []


def test_a_listed_difference_that_is_gone_is_a_problem(suite, tracker):
    """Asked of a system that has none of them, each listed difference is told to be taken off the list."""
    told = suite.problems("jira820", tracker.url, "jira-token")
    assert len(told) == len(suite.DIFFERENCES)
    assert all("take it off the list" in line for line in told)


def test_both_forms_show_one_tracker(jira):
    """A person is an account id here and a name there; text is a document here and plain there."""
    issue = {"project": {"key": "BILL"}, "issuetype": {"name": "Task"}, "summary": "x", "description": "plain"}
    refused = jira("POST", "/rest/api/3/issue", {"fields": issue})
    assert (refused.status, list(refused.json["errors"])) == (400, ["description"])
    key = jira("POST", f"{API}/issue", {"fields": issue}).json["key"]
    jira("PUT", f"{API}/issue/{key}", {"fields": {"assignee": {"name": "acc-agent"}}})
    shown = [jira("GET", f"{api}/issue/{key}").json["fields"]["assignee"] for api in (API, "/rest/api/3")]
    assert [shown[0]["name"], shown[1]["accountId"]] == ["acc-agent", "acc-agent"]
    assert "accountId" not in shown[0]


def test_a_field_that_can_only_be_added_to_is_given_under_update(tracker):
    """A worklog of a screen; without it the field is named."""
    tracker.control("seed_issue", key="BILL-1", summary="x")
    path = f"{API}/issue/BILL-1/transitions"
    bare = tracker.foreign("POST", path, {"transition": {"id": "61"}})
    assert (bare["status"], list(bare["body"]["errors"])) == (400, ["worklog"])
    update = {"worklog": [{"add": {"timeSpent": "1h"}}]}
    assert tracker.foreign("POST", path, {"transition": {"id": "61"}, "update": update})["status"] == 204


def test_links_are_effects_until_they_are_gone(jira):
    """Both kinds are counted at the tracker's own side, a remote link with the marker of its global id."""
    for number in (1, 2):
        jira.system.control("seed_issue", key=f"BILL-{number}", summary="x")
    ends = {"inwardIssue": {"key": "BILL-1"}, "outwardIssue": {"key": "BILL-2"}}
    jira("POST", f"{API}/issueLink", {"type": {"name": "Blocks"}, **ends})
    target = {"globalId": "amends:m-1", "object": {"url": "https://wiki.test", "title": "w"}}
    number = jira("POST", f"{API}/issue/BILL-1/remotelink", target).json["id"]
    assert [(row["kind"], row["marker"]) for row in jira.system.present()] == [
        ("issue_link", ""),
        ("remote_link", "m-1"),
    ]
    (link,) = jira("GET", f"{API}/issue/BILL-1?fields=issuelinks").json["fields"]["issuelinks"]
    jira("DELETE", f"{API}/issueLink/{link['id']}")
    jira("DELETE", f"{API}/issue/BILL-1/remotelink/{number}")
    assert jira.system.present() == []
    assert [jira("DELETE", path).status for path in (f"{API}/issueLink/1", f"{API}/issue/BILL-1/remotelink/1")] == [
        404
    ] * 2


@pytest.mark.parametrize("kind", ["Nonsense", None])
def test_a_link_of_an_unknown_type_is_refused(jira, kind):
    """404, as the product says it."""
    assert jira("POST", f"{API}/issueLink", {"type": {"name": kind}}).status == 404


def test_a_personal_access_token_is_a_bearer(jira):
    """Data Center's tokens need no user name; a wrong one is turned away."""
    answers = [type(jira)(jira.system, f"Bearer {token}")("GET", f"{API}/myself") for token in ("jira-token", "x")]
    assert [answer.status for answer in answers] == [200, 401]
    assert answers[0].json["name"] == "acc-agent"
