"""A policy author after a run: which decisions would a change change, and why was a compensation denied?"""

import json
import shutil

import cedarpy
import pytest

from amends import Engine, _resources
from amends.backends.cedar import requests
from amends.backends.cedar.replaying import question_of
from amends.core.evidence import Decision
from amends.surfaces.cli import app
from amends.testing.scenarios.running import run_scenario

pytestmark = [pytest.mark.timeout(180), pytest.mark.crash]


@pytest.fixture
def after(capsys, monkeypatch):
    """Play a scenario to its end, and ask in its project."""

    monkeypatch.setenv("COLUMNS", "250")

    def played(scenario, variant, look):
        def seen(world, runs):
            def amends(*arguments, code=0):
                capsys.readouterr()
                answer = app.run(["-c", str(world.project), "policy", *map(str, arguments)])
                out = capsys.readouterr().out
                assert answer == code, out
                return out

            look(amends, world.project)

        verdict = run_scenario(_resources.scenarios_path(), scenario, variant, look=seen)
        assert verdict.problems == ()

    return played


def test_replay_names_the_decisions_that_a_loosened_candidate_changes(after):
    """Exit 1 and the decision's id; a change of comments alone changes none, and means the same."""
    found = {}

    def look(amends, project):
        loosened = json.loads(amends("replay", project / "bundle-1", "--json", code=1))
        found["loosened"] = [
            (one["action"], one["was"]["verdict"], one["would_be"]["verdict"]) for one in loosened["changed"]
        ]
        assert loosened["changed"][0]["decision_id"] in amends("replay", project / "bundle-1", code=1)
        candidate = project / "candidate"
        shutil.copytree(project / "bundle-2-denies", candidate)
        with (candidate / "orders.cedar").open("a", encoding="utf-8") as file:
            file.write("\n// a comment\n")
        commented = json.loads(amends("replay", candidate, "--json"))
        found["commented"] = commented["counts"]["same"] == commented["decisions"] > 5
        compared = json.loads(amends("diff", "active", candidate, "--json", "--exit-code"))
        found["meaning"] = compared["a"]["meaning"] == compared["b"]["meaning"]
        found["sources"] = compared["same_sources"]

    after("order-exception", "policy-denies", look)
    assert found == {
        "loosened": [("payment.adjustment.void", "deny", "allow")],
        "commented": True,
        "meaning": True,
        "sources": False,
    }


def test_denied_compensation_is_explained(after):
    """The policy, its reason, and both versions: the effect was made under one, its undo denied under another."""
    found = {}

    def look(amends, project):
        with Engine.desk(project) as desk:
            rows = desk.sql("SELECT decision_id FROM decisions WHERE verdict = 'deny' AND phase = 'undo'").rows
            versions = desk.sql("SELECT DISTINCT policy_version FROM decisions").rows
        found["text"] = amends("explain", rows[0][0])
        found["versions"] = [row[0] for row in versions]

    after("order-exception", "policy-denies", look)
    assert "orders:no-automatic-void forbids" in found["text"]
    assert "adjustments are taken back by finance" in found["text"]
    assert len(found["versions"]) == 2
    assert all(version in found["text"] for version in found["versions"])


@pytest.mark.parametrize("variant", ["policy-denies", "policy-asks"])
def test_any_cedar_tool_agrees_with_what_was_recorded(after, variant):
    """Every recorded question, exported, and the sources the ledger keeps, given as text to plain cedarpy: the same
    allow or deny; what needs an approval is a deny until it is there."""
    found = {"asked": 0, "verdicts": set()}

    def look(amends, project):
        with Engine.desk(project) as desk:
            bundles = desk.sql("SELECT payload FROM events WHERE kind = 'bundle_recorded'").rows
            decisions = desk.sql("SELECT payload FROM events WHERE kind = 'decision_recorded'").rows
        sources = {body["effective_digest"]: body["sources"] for body in (json.loads(row[0]) for row in bundles)}
        for row in decisions:
            decision = Decision.model_validate(json.loads(row[0])["decision"])
            texts = sources[decision.effective_digest]
            policies = "\n".join(text for file, text in texts.items() if file.endswith(".cedar"))
            schema = "\n".join(text for file, text in texts.items() if file.endswith(".cedarschema"))
            exported = requests.stock(question_of(decision))
            entities = exported.pop("entities")
            assert cedarpy.is_authorized(exported, policies, entities, schema).allowed == decision.allowed
            found["asked"] += 1
            found["verdicts"].add(decision.verdict)

    after("order-exception", variant, look)
    assert found["asked"] > 8
    assert len(found["verdicts"]) > 1
