"""Slots: one live action per intent, however often and however worded it is called (rule 5)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from amends.core.contract import Identity, Limits
from amends.core.errors import InvalidInput, Unidentified
from amends.core.status import ActionStatus
from amends.testing.fakes import DENY
from amends.testing.worlds import blind, keyed, probeable, setting

ARGS = {"name": "o-1"}


def test_a_second_call_of_a_slot_answers_with_the_recorded_effect(build):
    """Rule 5: the same intent is the same call: one request, one effect, one answer."""
    world = build(keyed())
    with world.run() as run:
        first = run.call("shop.reserve", ARGS)
        again = run.call("shop.reserve", ARGS)
        assert (again.action_id, again.output, again.repeated) == (first.action_id, first.output, True)
    assert len(world.system.sent("shop.reserve", "do")) == 1


@pytest.mark.parametrize("fault", [None, "lost"])
def test_other_arguments_for_a_taken_slot_are_a_conflict(build, fault):
    """Rule 5: answered with the recorded state, never executed, never a "-2"."""
    world = build(keyed())
    if fault:
        world.system.tell("shop.reserve", "do", fault)
    run = world.run()
    run.call("shop.reserve", ARGS)
    other = run.call("shop.reserve", ARGS | {"value": "worded otherwise"})
    assert other.conflict
    assert len(run.state.actions) == 1
    assert len(world.system.sent("shop.reserve", "do")) == 1
    run.fail("stop", wait_seconds=60)


@pytest.mark.parametrize("make", [keyed, probeable, blind])
def test_an_unknown_call_is_reconciled_and_never_sent_again(build, make):
    """Rule 5: unknown means look, not send; a lost answer never makes a second effect."""
    world = build(make("shop.act"))
    world.system.tell("shop.act", "do", "lost")
    run = world.run()
    for _ in range(4):
        run.call("shop.act", ARGS)
    assert world.system.count() == 1
    assert len(world.system.sent("shop.act", "do")) == 1
    run.detach()


@pytest.mark.parametrize("fault", ["not_sent", "busy"])
def test_what_provably_did_not_land_is_sent_again_under_the_same_key(build, fault):
    """Rule 5: NotSent and 429 re-send the same generation and key."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", fault)
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        again = run.call("shop.reserve", ARGS)
        action = run.state.actions[again.action_id]
        assert (again.ok, action.generation, action.attempt) == (True, 1, 2)
    assert len({r.key for r in world.system.sent("shop.reserve", "do")}) == 1


def test_a_stored_refusal_opens_the_next_generation_with_a_fresh_key(build):
    """Rule 5: the provider would replay its refusal to the same key."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "refused")
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        again = run.call("shop.reserve", ARGS)
        assert (again.ok, run.state.actions[again.action_id].generation) == (True, 2)
    assert len({r.key for r in world.system.sent("shop.reserve", "do")}) == 2


def test_a_denied_call_may_be_tried_again_under_another_bundle(build):
    """Rule 5: a new generation opens after denied; nothing was sent before."""
    world = build(keyed())
    world.authorizer.rules = {"shop.reserve": DENY}
    with world.run() as run:
        assert run.call("shop.reserve", ARGS).status is ActionStatus.DENIED
        world.authorizer.rules = {}
        assert run.call("shop.reserve", ARGS).ok
    assert run.outcome.status.value == "committed"


def test_equal_calls_from_many_threads_make_one_effect(build):
    """Rule 5: parallel twins are one intent; all are answered with the same action."""
    world = build(probeable())
    with world.run() as run, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: run.call("shop.list", ARGS), range(16)))
    assert len({r.action_id for r in results}) == 1
    assert world.system.count() == 1


def test_a_twin_call_waits_for_the_one_in_flight(build):
    """Rule 5: running → wait; the second caller gets the first one's outcome."""
    world = build(keyed())
    held = world.system.hold("shop.reserve", "do")
    with world.run() as run, ThreadPoolExecutor(2) as pool:
        first = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        second = pool.submit(run.call, "shop.reserve", ARGS)
        held.go()
        assert first.result(10).ok
        assert second.result(10).ok
        assert second.result().repeated
    assert world.system.count() == 1


def test_parallel_calls_again_after_a_proven_failure_send_once(build):
    """Rule 5: many threads that re-send the same failed call write one intent between them."""
    world = build(probeable(limits=Limits(max_attempts=20)))
    world.system.tell("shop.list", "do", "not_sent")
    with world.run() as run, ThreadPoolExecutor(8) as pool:
        run.call("shop.list", ARGS)
        results = list(pool.map(lambda _: run.call("shop.list", ARGS), range(8)))
        assert len(run.state.actions) == 1
    assert any(r.ok for r in results)
    assert world.system.count() == 1


def test_two_labels_are_two_intents(build):
    """Rule 5: two intended equal calls name two labels."""
    world = build(keyed())
    with world.run() as run:
        run.call("shop.reserve", ARGS, label="morning")
        run.call("shop.reserve", ARGS, label="evening")
        run.call("shop.reserve", ARGS, label="evening")
    assert world.system.count() == 2


def test_a_call_without_identity_or_label_is_refused(build):
    """Rule 5: nobody could tell such a call from its repetition."""
    world = build(keyed(identity=Identity()))
    with world.run() as run:
        with pytest.raises(Unidentified):
            run.call("shop.reserve", ARGS)
        assert run.call("shop.reserve", ARGS, label="the one").ok
    assert world.system.count() == 1


def test_a_named_later_value_is_a_new_action_whose_before_image_is_the_earlier_value(build):
    """Rule 5: `many` with a value field: on, then off, are two actions; undoing both restores what was there first."""
    world = build(setting())
    world.system.values["f"] = "old"
    run = world.run()
    run.call("flags.set", {"name": "f", "value": "on"})
    second = run.call("flags.set", {"name": "f", "value": "off"})
    assert run.state.actions[second.action_id].before_image == {"value": "on"}
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.values["f"] == "old"


def test_a_dependency_that_is_no_action_of_the_run_is_refused(build):
    """Rule 20: a dependency that names nothing would silently make the order looser."""
    world = build(keyed())
    with world.run() as run, pytest.raises(InvalidInput):
        run.call("shop.reserve", ARGS, depends_on=["nobody"])
    assert world.system.requests == []


def test_no_more_calls_of_a_capability_than_its_contract_allows(build):
    """DESIGN section 4: `limits.per_run` bounds what one run may do; the call past it is denied, unsent."""
    world = build(keyed(limits=Limits(per_run=2)))
    with world.run() as run:
        for n in range(2):
            assert run.call("shop.reserve", {"name": f"o-{n}"}).ok
        assert run.call("shop.reserve", {"name": "o-2"}, required=False).status is ActionStatus.DENIED
        assert run.call("shop.reserve", {"name": "o-1"}).repeated
    assert world.system.count() == 2


def test_the_same_answer_to_two_attempts_in_one_moment_is_two_outcomes(build):
    """Rule 5: an attempt is settled by its own answer, however much it looks like the one before."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "busy", "busy")
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        assert run.call("shop.reserve", ARGS).status is ActionStatus.FAILED
        assert run.call("shop.reserve", ARGS).ok
