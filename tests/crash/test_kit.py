"""The kit itself: who is killed dies where the plan says, who is not lives to the end."""

import json
import os
import subprocess
import sys

import pytest

from amends.testing.crash import KillPlan
from amends.testing.crash.project import ENVIRONMENT

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
