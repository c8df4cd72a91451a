"""Outcome unknown: the answer is missing or wrong."""

import pytest

from amends.core.contract import Keying
from amends.testing.worlds import keyed, probeable, queued

ARGS = {"name": "o-1"}


@pytest.mark.parametrize("make", [keyed, probeable])
def test_a_02_an_effect_that_shows_itself_late_is_adopted_and_not_made_again(build, make):
    """Still absent at the first two looks after the error: nothing is sent again, and the third look finds it."""
    world = build(make("shop.start"))
    world.system.tell("shop.start", "do", "lost")
    world.system.tell("shop.start", "probe", "absent", "absent")
    with world.run() as run:
        outcomes = [run.call("shop.start", ARGS).outcome.value]
        while outcomes[-1] == "unknown":
            world.clock.advance(2)
            outcomes.append(run.call("shop.start", ARGS).outcome.value)
    assert outcomes[-1] == "succeeded"
    assert run.outcome.status.value == "committed"
    assert len(world.system.sent("shop.start", "do")) == 1
    assert not world.system.tells["shop.start", "probe"]


@pytest.mark.parametrize("make", [keyed, probeable])
def test_a_15_a_sequence_that_broke_between_its_steps_goes_on_with_the_second(build, make):
    """The answer to the branch was lost and the process died: resumed, there is one branch and one pull request."""
    world = build(make("git.branch"), make("git.propose"))
    world.system.tell("git.branch", "do", "lost")
    run = world.run(resume_grace_seconds=600.0)
    run.call("git.branch", ARGS)
    world.die()
    second = world.engine("owner-2")
    resumed = world.run(engine=second, resume=True)
    branch = resumed.call("git.branch", ARGS)
    assert (branch.ok, branch.repeated) == (True, True)
    assert resumed.call("git.propose", ARGS).ok
    resumed.finish()
    assert resumed.outcome.status.value == "committed"
    assert (world.system.count("git.branch"), world.system.count("git.propose")) == (1, 1)
    assert len(world.system.sent("git.branch", "do")) == 1


@pytest.mark.parametrize("fault", ["lost", "nothing"])
def test_a_18_a_refund_in_doubt_keeps_its_key_through_the_death_of_who_sent_it(build, fault):
    """Its answer is lost and its sender dies: another one looks, and refunds only what still stands, under that key."""
    world = build(keyed("shop.charge"))
    run = world.run()
    run.call("shop.charge", ARGS)
    world.system.tell("shop.charge", "undo", fault)
    run.fail("the order was cancelled")
    world.die()
    second = world.engine("owner-2")
    (state,) = second.recover(wait_seconds=600)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0
    refunds = world.system.sent("shop.charge", "undo")
    assert len(refunds) == (1 if fault == "lost" else 2)
    assert len({request.key for request in refunds}) == 1


@pytest.mark.parametrize("probe", [True, False])
def test_a_21_a_call_with_neither_key_nor_look_is_never_sent_a_second_time(build, probe):
    """Its answer is lost: a person is asked, whoever recovers it and however often."""
    bare = {} if probe else {"probe": None}
    world = build(queued("ads.buy", keying=Keying(kind="blind"), **bare))
    world.system.tell("ads.buy", "do", "lost")
    world.system.tell("ads.buy", "probe", *["inconclusive"] * 20)
    run = world.run()
    run.call("ads.buy", ARGS)
    run.finish(wait_seconds=600)
    assert run.outcome.status.value == "needs_human"
    engine = world.engines[0]
    assert [item.cause for item in engine.escalations()] == ["unknown"]
    for number in range(2, 5):
        world.clock.advance(86_400)
        world.engine(f"owner-{number}").recover(wait_seconds=600)
    assert len(world.system.sent("ads.buy", "do")) == 1
