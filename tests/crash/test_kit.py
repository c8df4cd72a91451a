"""The kit itself: who is killed dies where the plan says, who is not lives to the end."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest

from amends.testing.crash import KillPlan, audit, contradictions, meant
from amends.testing.crash.project import ENVIRONMENT, PARTNER_TOKEN

pytestmark = pytest.mark.crash


def test_a_held_child_dies_where_it_stands(stage):
    """The gap and the milestone are those of the plan; nothing after them was announced or sent."""
    killed = stage.agent([("o1", 1, "fail")], KillPlan("pre-send", "before_call", 2))
    assert killed.ended.wait(30)
    assert (killed.death.gap, killed.death.milestone, killed.death.how) == ("pre-send", "before_call", "held")
    assert stage.partner.counts() == {"reservation": {"present": 1}}


def test_a_child_that_ends_before_its_time_is_not_shot(stage):
    """A plan for later has no victim if the child was quicker."""
    quick = stage.agent([("o1", 1, "commit")], KillPlan("intent", "before_intent", delay_seconds=30.0))
    assert quick.ended.wait(30)
    assert quick.death is None
    assert [said["status"] for said in quick.of("ran")] == ["committed"]


def test_the_worker_runs_alone(stage):
    """`python -m amends.testing.crash.worker PROJECT N` needs no killer."""
    command = [sys.executable, "-m", "amends.testing.crash.worker", str(stage.project), "2"]
    told = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}, check=True)
    assert [json.loads(line)["status"] for line in told.stdout.splitlines()] == ["recovered", "recovered"]


def test_what_a_later_run_adopts_counts_once_and_is_missed_when_it_is_gone(stage, open_desk):
    """The second run makes nothing and sets what is set: all bears the first one's marker. What is gone, both miss."""
    agent = stage.agent([("o1", 1, "commit"), ("o1", 2, "commit")])
    assert agent.ended.wait(30)
    assert [said["status"] for said in agent.of("ran")] == ["committed", "committed"]
    desk = open_desk()
    findings = audit(stage.partner, stage.slack, meant(desk))
    assert (findings.duplicates, findings.residue) == ([], [])
    assert len(stage.partner.present()) == 4
    assert contradictions(desk, stage.partner, stage.slack) == []
    gone = next(e for e in stage.partner.present() if e["kind"] == "reservation")
    _release(stage.partner, gone["reference"])
    assert len(stage.partner.present()) == 3
    found = contradictions(desk, stage.partner, stage.slack)
    assert sorted(said.split(": ", 1)[1] for said in found) == [
        "it was adopted, and is there 0 times",
        "the ledger says succeeded, and it is there 0 times",
    ]


def _release(partner, reference):
    request = urllib.request.Request(
        f"{partner.url}/v1/reservations/{reference}/release",
        method="POST",
        headers={"Authorization": f"Bearer {PARTNER_TOKEN}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
