"""Freeze, pauses, and runs that stop no other (rules 14 to 16)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from amends.core.contract import ProbeRule
from amends.core.errors import AmendsError, Conflict, PolicyError
from amends.core.status import ActionStatus, Outcome
from amends.ports.journal import RowKey
from amends.runtime.book import Frozen, Paused
from amends.testing.worlds import keyed, queued, setting

ARGS = {"name": "o-1"}


def test_after_a_freeze_no_forward_intent_passes(build):
    """Rule 14: one durable compare-and-set; every forward intent is checked against it in its own statement."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.engines[0].freeze(run.run_id, "the operator said stop")
    with pytest.raises(Frozen):
        run.call("shop.reserve", {"name": "o-2"})
    assert len(world.system.sent("shop.reserve", "do")) == 1
    run.fail("stop", wait_seconds=60)
    assert world.system.count() == 0


def test_a_freeze_from_another_process_is_seen_in_the_intents_own_statement(build):
    """Rule 14: even an engine that has just read the run open cannot write an intent after the freeze."""
    world = build(keyed())
    world.engine("owner-1")
    other = world.engine("owner-2")
    run = world.run()

    class FreezingAtTheLastMoment:
        def reached(self, milestone, run_id, action_id):
            if milestone == "before_intent":
                other.freeze(run_id, "stop")

    object.__setattr__(run._parts.kit, "progress", FreezingAtTheLastMoment())
    with pytest.raises(Frozen):
        run.call("shop.reserve", ARGS)
    assert world.system.requests == []
    run.finish()


def test_threads_in_flight_still_write_their_outcomes_after_a_freeze(build):
    """Rule 14: a freeze does not raise the epoch; what is in flight is drained, and what it did is known."""
    world = build(keyed())
    held = world.system.hold("shop.reserve", "do")

    def answer_without_asking(call):
        world.system.arrive("shop.reserve", "do", call)
        thing = world.system.make("shop.reserve", call)
        from amends.spi.capability import Done

        return Done(effect={"id": thing.reference}, reference=thing.reference)

    world.capabilities[0].do = answer_without_asking
    run = world.run()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        world.engines[0].freeze(run.run_id, "stop")
        held.go()
        result = call.result(10)
    assert (result.status, result.outcome) == (ActionStatus.SUCCEEDED, Outcome.SUCCEEDED)
    assert run.state.run.epoch == 1
    run.fail("stop", wait_seconds=60)
    assert world.system.count() == 0


def test_a_running_action_is_waited_for_and_keeps_blocking(build):
    """Rule 14: nothing is probed as final or undone while a call may still land; what it depends on waits too."""
    world = build(keyed(), keyed("shop.pay"))
    run = world.run()
    first = run.call("shop.reserve", ARGS)
    held = world.system.hold("shop.pay", "do")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "shop.pay", ARGS)
        assert held.arrived.wait(10)
        run.fail("stop")
        assert run.outcome.status.value == "recovering"
        assert run.state.actions[first.action_id].status is ActionStatus.SUCCEEDED
        assert world.system.sequence("probe", "undo") == []
        held.go()
        call.result(10)
    (state,) = world.engines[0].recover(run.run_id, wait_seconds=200)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


@pytest.mark.parametrize("scope", ["all", "tenant:acme", "workflow:order"])
def test_a_pause_lets_no_forward_intent_pass(build, scope):
    """Rule 15: checked inside the intent's statement; lifting it lets calls pass again."""
    world = build(keyed())
    engine = world.engine()
    with world.run() as run:
        engine.pause(scope, reason="the partner is down", by="maya")
        with pytest.raises(Paused):
            run.call("shop.reserve", ARGS)
        assert world.system.requests == []
        engine.lift_pause(scope, by="maya")
        assert run.call("shop.reserve", ARGS).ok


def test_another_scope_is_not_paused(build):
    """Rule 15: a pause is no wider than its scope."""
    world = build(keyed())
    engine = world.engine()
    engine.pause("workflow:other", reason="x", by="maya")
    engine.pause("tenant:other", reason="x", by="maya")
    with world.run() as run:
        assert run.call("shop.reserve", ARGS).ok


def test_recovery_goes_on_under_a_pause(build):
    """Rule 15: a pause stops what is new, not the taking back."""
    world = build(keyed())
    engine = world.engine()
    run = world.run()
    run.call("shop.reserve", ARGS)
    engine.pause("all", reason="incident", by="maya")
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_pause_holds_releases_back_and_the_run_waits(build):
    """Rule 15: a release is a forward call; the run neither fails nor goes on until the pause is lifted."""
    world = build(queued())
    engine = world.engine()
    run = world.run()
    run.call("shop.notify", ARGS)
    engine.pause("all", reason="incident", by="maya")
    run.finish()
    assert run.outcome.status.value == "committing"
    assert world.system.count() == 0
    engine.lift_pause("all", by="maya")
    world.clock.advance(30)
    (state,) = engine.recover(wait_seconds=30)
    assert state.run.status.value == "committed"
    assert world.system.count() == 1


def test_one_stuck_run_stops_no_other(build, monkeypatch):
    """Rule 16: a run whose driving breaks is left and named; the rest is recovered."""
    world = build(keyed())
    world.engine("owner-1")
    second = world.engine("owner-2")
    runs = [world.run(str(n)) for n in range(3)]
    for n, run in enumerate(runs):
        run.call("shop.reserve", {"name": f"o-{n}"})
    world.die()
    driver = second._made.sweeper.driver
    compensate = driver.compensator.compensate

    def broken(session, action_id):
        if session.run_id == runs[1].run_id:
            raise ValueError("an adapter's bug deep inside")
        compensate(session, action_id)

    object.__setattr__(driver, "compensator", type("C", (), {"compensate": staticmethod(broken)}))
    states = {s.run.run_id: s.run.status.value for s in second.recover(wait_seconds=60)}
    assert states[runs[0].run_id] == states[runs[2].run_id] == "recovered"
    assert runs[1].run_id in second._made.sweeper.stuck
    assert world.system.count() == 1


@pytest.mark.parametrize("kind", ["run", "action"])
def test_an_undecodable_row_quarantines_its_run_and_no_other(build, kind):
    """Rule 16: what cannot be read back is guessed at by nobody."""
    world = build(keyed())
    world.engine("owner-1")
    second = world.engine("owner-2")
    broken, sound = world.run("1"), world.run("2")
    for run in (broken, sound):
        run.call("shop.reserve", {"name": run.run_id})
    world.die()
    key = next(row.key for row in world.journal.load(broken.run_id) if row.key.kind == kind)
    whole = world.journal._rows[key]
    world.journal._rows[key] = replace(whole, body='{"nonsense": true}')
    states = second.recover(wait_seconds=60)
    assert [(s.run.run_id, s.run.status.value) for s in states] == [(sound.run_id, "recovered")]
    assert world.journal.row(RowKey("quarantine", broken.run_id)) is not None
    assert [t.name for t in world.system.things.values()] == [broken.run_id]
    with pytest.raises(AmendsError):
        second.state(broken.run_id)
    world.journal._rows[key] = whole


def test_a_full_queue_refuses_new_runs_and_records_all_the_same(build):
    """Rule 16: people have to catch up first; what happens in open runs is still recorded and recovered."""
    world = build(keyed(compensation=(), reversibility="compensatable"))
    engine = world.engine(settings={"max_open_escalations": 1})
    first, second = world.run("1"), world.run("2")
    for run in (first, second):
        run.call("shop.reserve", {"name": run.run_id})
    first.fail("stop")
    with pytest.raises(Conflict):
        world.run("3")
    second.fail("stop")
    assert second.outcome.status.value == "needs_human"
    assert len(engine.escalations()) == 2
    for item in engine.escalations():
        engine.resolve(item.escalation_id, "accept_as_is", by="maya")
    world.run("3").finish()


def test_one_open_item_per_run_action_and_cause(build):
    """Rule 16: parking twice for one reason opens one item."""
    world = build(keyed(probe=ProbeRule(strength="search", schedule_seconds=(0.0,), deadline_seconds=1.0)))
    world.system.tell("shop.reserve", "do", "nothing")
    engine = world.engine()
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "look_again", by="maya")
    engine.recover(wait_seconds=60)
    assert [(i.action_id, i.cause) for i in engine.escalations()] == [(item.action_id, item.cause)]


def test_a_paused_call_is_a_policy_error(build):
    """Rule 15: the caller learns who must act: the owner of the policy, not they."""
    world = build(setting())
    engine = world.engine()
    with world.run() as run:
        engine.pause("all", reason="x", by="maya")
        with pytest.raises(PolicyError):
            run.call("flags.set", {"name": "f", "value": "on"})
    assert world.system.values == {}
