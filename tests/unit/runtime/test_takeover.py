"""Who drives: leases, proof of death, epochs, late evidence (rules 12 and 13)."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from amends.core.errors import Conflict, Fenced
from amends.core.status import ActionStatus, Outcome
from amends.testing.worlds import keyed

ARGS = {"name": "o-1"}


@pytest.fixture
def two(build):
    """A world with two processes of one host."""
    world = build(keyed())
    world.engine("owner-1")
    world.engine("owner-2")
    return world


def test_a_second_opener_of_a_live_run_is_told_holder_and_until(two):
    """Rule 12: one process drives; the others learn who and until when."""
    run = two.run()
    for resume in (False, True):
        with pytest.raises(Conflict) as told:
            two.run(engine=two.engines[1], resume=resume)
        assert told.value.data["holder"] == "owner-1"
        assert told.value.data["until_us"] == run.state.run.lease_until_us
    run.finish()


def test_a_terminal_run_answers_with_its_report(two):
    """Rule 12: it never has a new effect."""
    with two.run() as run:
        run.call("shop.reserve", ARGS)
    for resume in (False, True):
        with pytest.raises(Conflict) as told:
            two.run(engine=two.engines[1], resume=resume)
        assert told.value.data["report"]["run_status"] == "committed"
    assert two.system.count() == 1


def test_a_run_is_taken_over_at_once_on_proof_of_death(two):
    """Rule 12: whoever acquires the owner file may act at once; the take-over raises the epoch."""
    run = two.run()
    run.call("shop.reserve", ARGS)
    with pytest.raises(Conflict):
        two.engines[1].recover(run.run_id)
    two.die()
    (state,) = two.engines[1].recover(run.run_id)
    assert (state.run.status.value, state.run.epoch) == ("recovered", 2)
    assert two.system.count() == 0


def test_without_proof_a_silent_driver_keeps_the_run_until_lease_deadlines_and_skew_are_over(build):
    """Rule 12: on another host there is no proof of death; max(lease end, open call deadlines) + skew it is."""
    from amends.core.contract import Limits

    world = build(keyed(limits=Limits(timeout_seconds=100.0)))
    world.engine("owner-1", settings={"lease_seconds": 30.0, "skew_seconds": 2.0})
    world.engine("owner-2")
    run = world.run()
    held = world.system.hold("shop.reserve", "do")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        world.clock.advance(101.9)  # the lease is over, the call's deadline + skew is not
        with pytest.raises(Conflict):
            world.engines[1].recover(run.run_id)
        world.clock.advance(0.2)
        (state,) = world.engines[1].recover(run.run_id)
        assert state.run.epoch == 2
        held.go()
        call.result(10)


def test_of_two_recoverers_one_wins(two):
    """Rule 12: a take-over is a compare-and-set on the epoch; the loser is told."""
    run = two.run()
    run.call("shop.reserve", ARGS)
    two.die()
    third = two.engine("owner-3")

    def recover(engine):
        try:
            return engine.recover(run.run_id)[0].run.status.value
        except (Conflict, Fenced):
            return "lost"

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(recover, [two.engines[1], third]))
    assert "recovered" in told
    assert len(two.system.sent("shop.reserve", "undo")) == 1
    assert two.system.count() == 0


def test_a_stale_driver_sends_nothing_more(two):
    """Rules 12 and 13: after a take-over the old epoch's intents are refused."""
    run = two.run()
    two.die()
    two.engines[1].recover(run.run_id)
    with pytest.raises(Exception) as told:  # noqa: PT011 - frozen or fenced, whichever is seen first
        run.call("shop.reserve", ARGS)
    assert told.value.code in {"fenced", "run_frozen"}
    assert two.system.requests == []


def test_a_stale_driver_may_only_append_late_evidence_which_the_owner_folds(two):
    """Rule 13: `evidence.late` moves no status; the owner folds it at its next plan."""
    run = two.run()
    held = two.system.hold("shop.reserve", "do")
    landed = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        flight = run._parts.sending.in_flight(next(iter(run.state.actions)))
        flight.add_done_callback(lambda _: landed.set())
        two.clock.advance(60)
        two.die()
        two.system.tell("shop.reserve", "probe", "inconclusive")
        (state,) = two.engines[1].recover(run.run_id)  # lost, looked once, and waits for the next look
        (action,) = state.actions.values()
        assert (state.run.epoch, action.status) == (2, ActionStatus.UNKNOWN)
        held.go()
        call.result(10)
        assert landed.wait(10)
    (action,) = run.state.actions.values()
    assert action.status is ActionStatus.UNKNOWN
    assert [late.source for late in action.late] == ["response"]
    assert world_events(two, run.run_id, "evidence.late")[-1].epoch == 1
    (state,) = two.engines[1].recover(run.run_id, wait_seconds=120)
    assert state.run.status.value == "recovered"
    assert two.system.count() == 0


def world_events(world, run_id, kind):
    return [s.event for s in world.journal.events(run_id) if s.event.kind == kind]


def test_a_late_answer_of_a_stale_driver_wakes_a_run_that_waits_for_a_person(two):
    """Rules 13 and 22: a parked unknown reopens on authoritative evidence, whoever brought it."""
    run = two.run()
    held = two.system.hold("shop.reserve", "do")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        two.clock.advance(60)
        two.die()
        two.system.tell("shop.reserve", "probe", *["inconclusive"] * 8)
        (state,) = two.engines[1].recover(run.run_id, wait_seconds=300)
        assert state.run.status.value == "needs_human"
        held.go()
        call.result(10)
    two.system.tells.clear()
    states = two.engines[1].recover(wait_seconds=120)
    assert [s.run.status.value for s in states] == ["recovered"]
    assert two.system.count() == 0
    assert two.engines[1].escalations() == ()


def test_a_delayed_call_back_is_evidence(two):
    """Rule 13: `report` takes it; what was unknown is settled without another look."""
    two.system.tell("shop.reserve", "do", "lost")
    run = two.run()
    result = run.call("shop.reserve", ARGS)
    two.engines[0].report(run.run_id, result.action_id, happened=True, source="webhook", reference="ref-000001")
    again = run.call("shop.reserve", ARGS)
    assert (again.ok, again.reference) == (True, "ref-000001")
    assert two.system.sent("shop.reserve", "probe") == []
    run.finish()


def test_a_call_in_flight_of_a_driver_that_let_go_is_not_called_dead(two):
    """Rules 4 and 12: who released a run may still be in a call; absence is not final before its deadline."""
    run = two.run()
    held = two.system.hold("shop.reserve", "do")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        run.detach()
        (state,) = two.engines[1].recover(run.run_id)
        (action,) = state.actions.values()
        assert action.status is ActionStatus.RUNNING  # it waits; it does not prove
        held.go()
        call.result(10)
    (state,) = two.engines[1].recover(run.run_id, wait_seconds=200)
    assert state.run.status.value == "recovered"
    assert two.system.count() == 0


def test_a_driver_that_works_longer_than_its_lease_keeps_it(build):
    """Rule 12: a lease is renewed while its driver lives and works."""
    world = build(keyed())
    world.engine("owner-1", settings={"lease_seconds": 5.0})
    with world.run() as run:
        for n in range(10):
            world.clock.advance(4.0)
            assert run.call("shop.reserve", {"name": f"o-{n}"}).ok
    assert run.outcome.status.value == "committed"
    assert world_events(world, run.run_id, "lease_renewed")


def test_an_outcome_in_flight_at_a_take_over_is_counted_once(two):
    """Rules 3 and 13: the effect the stale driver made is taken back exactly once."""
    run = two.run()
    for n in range(3):
        run.call("shop.reserve", {"name": f"o-{n}"})
    two.die()
    (state,) = two.engines[1].recover(run.run_id)
    assert state.run.status.value == "recovered"
    assert len(two.system.sent("shop.reserve", "undo")) == 3
    assert all(a.outcome in {Outcome.SUCCEEDED, Outcome.UNKNOWN} for a in state.actions.values())


def test_recovery_waits_for_a_lease_that_nobody_renews(two):
    """Rule 12: a child of a dead driver still holds its file, which is no proof of death; its lease ends by itself."""
    run = two.run()
    run.call("shop.reserve", ARGS)
    second = two.engines[1]
    assert second.recover(wait_seconds=60) == []  # a living driver is not waited for
    second.kit.owners.orphans.add("owner-1")
    (state,) = second.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert two.system.count("shop.reserve") == 0
