"""The story Amends comes from, played for real: an agent that dies in CI, one that ends well, one that improvises.

What must hold is in each `scenario.toml` (`expect`); here stands what a reader would ask beyond it.
"""

import json

import pytest

from amends import _resources
from amends.bootstrap import Engine
from amends.testing.scenarios.places import git
from amends.testing.scenarios.running import run_scenario

pytestmark = [pytest.mark.timeout(180), pytest.mark.crash]


def played(scenario, look):
    """The verdict; `look(world, run_id)` sees the world before it is taken down."""

    def seen(world, runs):
        look(world, next(iter(runs.values())))

    return run_scenario(_resources.scenarios_path(), scenario, look=seen)


def test_a_run_that_dies_in_ci_is_taken_back_and_only_the_cohort_owner_hears_of_it():
    """Branch, schema and flag are as before; ticket, channel, partner and portal were never touched; one note."""
    seen = {}

    def look(world, run_id):
        channels = {message["channel"] for message in world.loopbacks["slack"].objects("messages")}
        direct = {c["id"]: c.get("user") for c in world.loopbacks["slack"].objects("channels") if c["is_im"]}
        desk = Engine.desk(world.project)
        try:
            moves = [s.event for s in desk.kit.journal.events(run_id) if s.event.kind == "run_claimed"]
        finally:
            desk.close()
        seen.update(
            readers=[direct.get(channel, channel) for channel in channels],
            branches=git(world.places["repo"].path, "for-each-ref", "--format=%(refname)").split(),
            schema=world.places["staging"].residue(),
            strategies=[s["title"] for s in world.loopbacks["unleash"].objects("strategies")],
            told_outside=[world.loopbacks[name].counts() for name in ("jira", "portal", "partner")],
            proofs=[json.loads(event.payload)["proof"] for event in moves],
        )

    verdict = played("billing-field", look)
    assert verdict.problems == ()
    assert seen == {
        "readers": ["U0MAYA"],
        "branches": ["refs/heads/main"],
        "schema": [],
        "strategies": ["beta testers"],
        "told_outside": [{}, {}, {}],
        "proofs": ["owner_dead"],
    }


def test_a_green_run_leaves_once_and_never_looks_back():
    """The ticket moves after a person's yes; a lost answer is one message; past the pivot a refusal undoes nothing."""
    seen = {}

    def look(world, run_id):
        desk = Engine.desk(world.project)
        try:
            state = desk.state(run_id)
            kinds = [s.event.kind for s in desk.kit.journal.events(run_id)]
        finally:
            desk.close()
        approved = [row for row in state.approvals.values() if row.status == "consumed"]
        seen.update(
            messages=len(world.loopbacks["slack"].objects("messages")),
            ticket=[issue["fields"]["status"] for issue in world.loopbacks["jira"].objects("issues")],
            approvers=[row.approvers for row in approved],
            undone=kinds.count("compensation_started"),
        )

    verdict = played("billing-field-green", look)
    assert verdict.problems == ()
    assert seen == {"messages": 1, "ticket": ["In Review"], "approvers": [("lena",)], "undone": 0}


def test_an_agent_that_improvises_makes_one_of_each():
    """No second branch, no second migration, no "correction": each call is the same intent, however it is worded."""
    seen = {}

    def look(world, run_id):
        refs = git(world.places["repo"].path, "for-each-ref", "--format=%(refname)").split()
        seen.update(
            branches=[ref for ref in refs if ref != "refs/heads/main"],
            revisions=[row["resource"] for row in world.places["staging"].residue() if row["reference"] == "added"],
            texts=[message["text"] for message in world.loopbacks["slack"].objects("messages")],
            strategies=len(world.loopbacks["unleash"].objects("strategies")),
        )

    verdict = played("billing-field-improvise", look)
    assert verdict.problems == ()
    assert seen["branches"] == ["refs/heads/feature/billing-field"]
    assert "version:0002_cost_centre" in seen["revisions"]
    assert not any("0003" in line for line in seen["revisions"])
    assert [text.startswith("BILL-12: invoices show the cost centre") for text in seen["texts"]] == [True]
    assert seen["strategies"] == 2
