"""People's answers wake a run that waits (rule 31): the next sweep goes on, whatever date the run was due."""

import pytest

from amends.core.status import RunStatus
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}


@pytest.fixture
def waiting(build):
    """A world with a run that has finished and waits for a yes."""
    world = build(keyed(), queued(mode="on_approval"))
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        run.call("shop.notify", ARGS)
    assert run.outcome.status is RunStatus.COMMITTING
    return world


def test_a_yes_wakes_the_run(waiting):
    """It used to wait for the day the question expires."""
    world = waiting
    desk, worker = world.engines[0], world.engine("owner-2")
    assert worker.recover() == []
    (question,) = desk.approvals()
    desk.approve(question.approval_id, by="maya")
    assert [state.run.status for state in worker.recover()] == [RunStatus.COMMITTED]
    assert world.system.count("shop.notify") == 1


@pytest.mark.parametrize(("roll_back", "ends"), [(False, RunStatus.COMMITTED), (True, RunStatus.RECOVERED)])
def test_a_no_wakes_the_run(waiting, roll_back, ends):
    """The item is withdrawn and the run ends: forward without it, or backwards if that was said."""
    world = waiting
    desk, worker = world.engines[0], world.engine("owner-2")
    (question,) = desk.approvals()
    desk.reject(question.approval_id, by="maya", roll_back=roll_back)
    assert [state.run.status for state in worker.recover()] == [ends]
    assert world.system.count("shop.notify") == 0
