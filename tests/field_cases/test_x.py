"""Compensation and the engines that carry it out."""

import pytest

from amends.core.contract import Alternative, Retry
from amends.testing.worlds import keyed, probeable

ARGS = {"name": "o-1"}
QUICK = (Alternative(name="cancel", retry=Retry(attempts=2)),)


@pytest.mark.parametrize("how", ["raises", "lies"])
def test_x_01_one_compensation_that_did_nothing_keeps_the_whole_run_from_being_called_recovered(build, how):
    """Of three, the middle one fails for good: what it does not block is taken back, the run waits for a person."""
    world = build(keyed("shop.a"), keyed("shop.b", compensation=QUICK), keyed("shop.c"))
    world.system.tell("shop.b", "undo", *(["nothing"] if how == "raises" else ["lie"]) * 9)
    run = world.run()
    for name in ("shop.a", "shop.b", "shop.c"):
        run.call(name, ARGS, depends_on=[])
    run.fail("stop", wait_seconds=600)
    assert run.outcome.status.value == "needs_human"
    assert [thing.capability for thing in world.system.things.values()] == ["shop.b"]
    statuses = [action.status.value for action in run.state.forward_actions()]
    assert statuses == ["compensated", "needs_human", "compensated"]
    assert [item.cause for item in world.engines[0].escalations()] == ["undo_failed"]


@pytest.mark.parametrize("make", [keyed, probeable])
def test_x_03_the_step_that_raised_after_its_effect_is_taken_back_with_the_others(build, make):
    """The second of three raises although it acted, the agent stops there: nothing of either is left."""
    world = build(make("shop.a"), make("shop.b"), make("shop.c"))
    world.system.tell("shop.b", "do", "lost")
    run = world.run()

    def agent():
        with run:
            run.call("shop.a", ARGS)
            if not run.call("shop.b", ARGS).ok:
                raise RuntimeError("the step failed")
            run.call("shop.c", ARGS)

    with pytest.raises(RuntimeError):
        agent()
    world.engines[0].recover(run.run_id, wait_seconds=600)
    assert run.state.run.status.value == "recovered"
    assert world.system.count() == 0
    assert [request.capability for request in world.system.requests if request.verb == "undo"] == ["shop.b", "shop.a"]
