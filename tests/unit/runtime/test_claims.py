"""Claims: an effect whose identity reaches past the run exists once, whoever asks (rules 6 and 7)."""

import pytest

from amends.core.contract import Identity, ProbeRule
from amends.core.errors import Conflict
from amends.core.status import ActionKind, ActionStatus
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}
WIDE = {"identity": Identity(fields=("name",), scope="workflow")}


def test_an_effect_held_by_an_open_run_is_a_conflict(build):
    """Rule 6: a workflow started anew while the first is dead does not reserve twice."""
    world = build(keyed(**WIDE))
    first = world.run("1")
    first.call("shop.reserve", ARGS)
    second = world.run("2")
    with pytest.raises(Conflict) as told:
        second.call("shop.reserve", ARGS)
    assert told.value.data["holder_run"] == first.run_id
    assert world.system.count() == 1
    first.fail("stop", wait_seconds=60)
    assert second.call("shop.reserve", ARGS).ok  # released when it was compensated
    second.finish()
    assert world.system.count() == 1


def test_an_effect_of_a_committed_run_is_adopted_and_never_compensated(build):
    """Rule 6: recorded as adopted; it belongs to the other run."""
    world = build(keyed(**WIDE), keyed("shop.other"))
    with world.run("1") as first:
        made = first.call("shop.reserve", ARGS)
    second = world.run("2")
    adopted = second.call("shop.reserve", ARGS)
    second.call("shop.other", ARGS)
    assert (adopted.ok, adopted.reference) == (True, made.reference)
    assert second.state.actions[adopted.action_id].evidence[0].source == "adopted"
    second.fail("stop", wait_seconds=60)
    assert second.outcome.status.value == "recovered"
    assert (world.system.count("shop.reserve"), world.system.count("shop.other")) == (1, 0)


def test_an_effect_of_a_committed_run_with_other_arguments_is_a_conflict(build):
    """Rules 5 and 6: what was made is not what is asked for now, so it is neither adopted nor made again."""
    world = build(keyed(**WIDE))
    with world.run("1") as first:
        first.call("shop.reserve", ARGS)
    with world.run("2") as second, pytest.raises(Conflict):
        second.call("shop.reserve", ARGS | {"value": "two of them"})
    assert world.system.count() == 1


@pytest.mark.parametrize("fault", ["refused", "not_sent"])
def test_a_claim_is_released_when_the_call_failed(build, fault):
    """Rule 6: what provably does not exist is held by nobody."""
    world = build(keyed(**WIDE))
    world.system.tell("shop.reserve", "do", fault)
    first = world.run("1")
    assert first.call("shop.reserve", ARGS).status is ActionStatus.FAILED
    with world.run("2") as second:
        assert second.call("shop.reserve", ARGS).ok
    first.fail("stop")
    assert world.system.count() == 1


def test_facts_about_a_failed_action_do_not_take_a_claim_back(build):
    """Rule 6: a run that lost its claim writes on about its own action, and the new holder keeps the claim."""
    world = build(keyed(**WIDE))
    world.system.tell("shop.reserve", "do", "nothing")
    first = world.run("1")
    held = first.call("shop.reserve", ARGS)
    world.clock.advance(60)
    assert first.call("shop.reserve", ARGS).status is ActionStatus.FAILED  # absent, finally
    second = world.run("2")
    assert second.call("shop.reserve", ARGS).ok
    world.engines[0].report(first.run_id, held.action_id, happened=True, source="webhook")  # a late landing
    first.fail("stop", wait_seconds=200)
    assert first.state.run.status.value in {"recovered", "needs_human"}
    with pytest.raises(Conflict):
        world.run("3").call("shop.reserve", ARGS)
    second.finish()


def test_two_runs_race_for_one_effect(build):
    """Rule 6: the claim is taken in the intent's commit, so exactly one of many gets it."""
    from concurrent.futures import ThreadPoolExecutor

    world = build(keyed(**WIDE))
    world.engine()
    runs = [world.run(str(n)) for n in range(8)]

    def call(run):
        try:
            return run.call("shop.reserve", ARGS).ok
        except Conflict:
            return False

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(call, runs))
    assert won.count(True) == 1
    assert world.system.count() == 1
    for run in runs:
        run.detach()


COUNTING = ProbeRule(
    strength="list", schedule_seconds=(0.0, 1.0), deadline_seconds=5.0, absent_final_after_seconds=10.0, counts=True
)


def test_a_twin_the_provider_made_is_undone_before_the_pivot(build):
    """Rule 7: a second effect bearing our marker becomes an action of its own, undone by the ordinary path."""
    world = build(keyed(probe=COUNTING))
    world.system.tell("shop.reserve", "do", "twice")
    with world.run() as run:
        assert run.call("shop.reserve", ARGS).ok
    twin = next(a for a in run.state.actions.values() if a.kind is ActionKind.DUPLICATE)
    assert run.outcome.status.value == "committed"
    assert twin.status is ActionStatus.COMPENSATED
    assert world.system.count() == 1
    assert twin.reference not in world.system.things


def test_a_twin_found_while_reconciling_is_undone_with_its_original(build):
    """Rule 7: recovery of a lost call that landed twice leaves nothing."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "twice_lost")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=120)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_twin_of_what_cannot_be_undone_goes_to_a_person(build):
    """Rule 7: after the pivot a person decides about a twin."""
    world = build(queued(probe=COUNTING))
    world.system.tell("shop.notify", "do", "twice")
    with world.run() as run:
        run.call("shop.notify", ARGS)
    assert run.outcome.status.value == "needs_human"
    assert [item.cause for item in world.engines[0].escalations()] == ["unregistered"]
    assert world.system.count() == 2


def test_a_part_of_an_effect_keeps_it_unknown(build):
    """Rule 7: `applied` with only some parts proves no success, unless a partial inverse is declared."""
    world = build(keyed(parts=("head", "body")))
    world.system.tell("shop.reserve", "do", "half")
    run = world.run()
    run.call("shop.reserve", ARGS)
    assert run.call("shop.reserve", ARGS).status is ActionStatus.UNKNOWN
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "needs_human"
    assert world.system.count() == 1


def test_a_part_of_an_effect_is_taken_back_by_a_partial_inverse(build):
    """Rule 7: with a declared partial inverse, what is there is undone."""
    world = build(keyed(parts=("head", "body"), partial_inverse=True))
    world.system.tell("shop.reserve", "do", "half")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
