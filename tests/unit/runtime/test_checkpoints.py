"""Checkpoints, resume and grace (rule 24)."""

import pytest

from amends.core.errors import Conflict, UnknownName
from amends.core.status import ActionStatus
from amends.testing.worlds import keyed, queued, visible

ARGS = {"name": "o-1"}


def names(world):
    return sorted(t.name for t in world.system.things.values())


def with_checkpoint(build, *makes):
    world = build(keyed(), *makes)
    run = world.run()
    run.call("shop.reserve", {"name": "before"})
    run.checkpoint("booked")
    run.call("shop.reserve", {"name": "after-1"})
    run.call("shop.reserve", {"name": "after-2"})
    return world, run, world.engines[0]


def test_recovery_to_a_checkpoint_takes_back_only_what_came_after(build):
    """Rule 24: and the run is open again."""
    world, run, engine = with_checkpoint(build)
    run.detach()
    (state,) = engine.recover(run.run_id, to="booked", wait_seconds=60)
    assert state.run.status.value == "open"
    assert names(world) == ["before"]
    assert [r.name for r in world.system.sent("shop.reserve", "undo")] == ["after-2", "after-1"]


def test_a_reopened_run_goes_on(build):
    """Rule 24: what was kept answers from the ledger; what was taken back may be done again, under a fresh key."""
    world, run, engine = with_checkpoint(build)
    run.detach()
    engine.recover(run.run_id, to="booked", wait_seconds=60)
    resumed = world.run(resume=True)
    assert resumed.call("shop.reserve", {"name": "before"}).repeated
    again = resumed.call("shop.reserve", {"name": "after-1"})
    assert (again.ok, again.repeated) == (True, False)
    resumed.finish()
    assert resumed.outcome.status.value == "committed"
    assert names(world) == ["after-1", "before"]
    assert len({r.key for r in world.system.sent("shop.reserve", "do")}) == 4


def test_a_run_that_recovery_reopened_is_not_swept_away_at_once(build):
    """Rule 24: it was left open on purpose, and somebody is about to resume it."""
    world, run, engine = with_checkpoint(build)
    run.detach()
    engine.recover(run.run_id, to="booked", wait_seconds=60)
    assert engine.recover(wait_seconds=5) == []
    assert names(world) == ["before"]
    world.clock.advance(60)  # nobody came
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert names(world) == []


def test_a_recovery_to_a_checkpoint_that_dies_goes_on_to_it(build):
    """Rule 24: the target is in the ledger; another process takes back no more than was ordered."""
    world, run, engine = with_checkpoint(build)
    run.detach()
    world.system.tell("shop.reserve", "undo", "not_sent")
    (state,) = engine.recover(run.run_id, to="booked")
    assert state.run.status.value == "recovering"
    world.die()
    other = world.engine("owner-2")
    other.recover(wait_seconds=20)
    assert other.state(run.run_id).run.status.value == "open"
    assert names(world) == ["before"]


def test_a_second_recovery_after_a_reopening_takes_everything_back(build):
    """Rule 24: the checkpoint was the target of that one recovery only."""
    world, run, engine = with_checkpoint(build)
    run.detach()
    engine.recover(run.run_id, to="booked", wait_seconds=60)
    resumed = world.run(resume=True)
    resumed.call("shop.reserve", {"name": "later"})
    resumed.fail("stop", wait_seconds=60)
    assert resumed.outcome.status.value == "recovered"
    assert names(world) == []


def test_only_a_checkpoint_that_was_reached_is_a_target(build):
    """Rule 24: and only while nobody drives the run."""
    _, run, engine = with_checkpoint(build)
    with pytest.raises(UnknownName):
        engine.recover(run.run_id, to="nowhere")
    with pytest.raises(Conflict):
        engine.recover(run.run_id, to="booked")  # it is driven
    run.detach()
    engine.recover(run.run_id, to="booked", wait_seconds=60)


def test_what_was_queued_after_the_checkpoint_is_withdrawn(build):
    """Rule 24: what was queued before it stays queued."""
    world = build(keyed(), queued())
    run = world.run()
    early = run.call("shop.notify", {"name": "early"})
    run.checkpoint("here")
    late = run.call("shop.notify", {"name": "late"})
    run.detach()
    (state,) = world.engines[0].recover(run.run_id, to="here", wait_seconds=60)
    assert state.actions[early.action_id].status is ActionStatus.QUEUED
    assert state.actions[late.action_id].status is ActionStatus.WITHDRAWN
    resumed = world.run(resume=True)
    resumed.finish()
    assert [t.name for t in world.system.things.values()] == ["early"]


def test_signals_before_the_checkpoint_are_not_corrected(build):
    """Rules 24 and 32: what stays needs no note."""
    world = build(visible())
    run = world.run()
    run.call("shop.announce", {"name": "stays"})
    run.checkpoint("here")
    run.detach()
    (state,) = world.engines[0].recover(run.run_id, to="here", wait_seconds=60)
    assert state.run.status.value == "open"
    assert world.system.count() == 1


# --- resume ---------------------------------------------------------------------------------------------------


def test_a_new_session_re_attaches_under_a_new_epoch(build):
    """Rule 24: settled slots answer from the ledger."""
    world = build(keyed())
    run = world.run()
    first = run.call("shop.reserve", ARGS)
    world.die()
    second = world.engine("owner-2")
    resumed = world.run(engine=second, resume=True)
    assert resumed.state.run.epoch == 2
    again = resumed.call("shop.reserve", ARGS)
    assert (again.action_id, again.repeated) == (first.action_id, True)
    resumed.finish()
    assert resumed.outcome.status.value == "committed"
    assert world.system.count() == 1


def test_a_call_in_flight_at_the_death_is_looked_for_by_the_resumed_session(build):
    """Rules 5 and 24: its owner is dead, so it is lost; it is found, not sent again."""
    world = build(keyed())
    run = world.run()
    world.system.tell("shop.reserve", "do", "lost")
    result = run.call("shop.reserve", ARGS)
    _forget_the_answer(world, run, result)
    world.die()
    resumed = world.run(engine=world.engine("owner-2"), resume=True)
    assert resumed.call("shop.reserve", ARGS).ok
    assert len(world.system.sent("shop.reserve", "do")) == 1
    resumed.finish()


def _forget_the_answer(world, run, result):
    """The process died before it could write what it knew: here, it did not know."""
    assert result.status is ActionStatus.UNKNOWN


def test_a_call_whose_outcome_was_never_written_is_lost_and_looked_for(build):
    """Rules 14 and 24: `running` under a dead epoch is unknown at once."""
    from amends.core.errors import JournalUnavailable

    world = build(keyed())

    class DyingBeforeTheOutcome:
        def reached(self, milestone, run_id, action_id):
            if milestone == "before_outcome":
                world.journal.fails_before = JournalUnavailable("the process is gone")

    world.engine(progress=DyingBeforeTheOutcome())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.journal.fails_before = None
    run._parts.sending._unwritten.clear()  # it died with it
    world.die()
    resumed = world.run(engine=world.engine("owner-2"), resume=True)
    assert resumed.call("shop.reserve", ARGS).ok
    assert len(world.system.sent("shop.reserve", "do")) == 1
    resumed.finish()
    assert resumed.outcome.status.value == "committed"


def test_recovery_waits_for_a_resume_as_long_as_was_declared(build):
    """Rule 24: `resume_grace_seconds`, default 0."""
    world = build(keyed())
    patient = world.run("1", resume_grace_seconds=600.0)
    patient.call("shop.reserve", {"name": "patient"})
    world.run("2").call("shop.reserve", {"name": "plain"})
    world.die()
    second = world.engine("owner-2")
    states = second.recover(wait_seconds=10)
    assert [s.run.run_key for s in states] == ["2"]
    assert names(world) == ["patient"]
    world.clock.advance(601)
    (state,) = second.recover(wait_seconds=10)
    assert (state.run.run_key, state.run.status.value) == ("1", "recovered")


def test_a_run_that_is_not_open_is_not_resumed(build):
    """Rule 24: recovery finishes what it has begun."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop")
    with pytest.raises(Conflict):
        world.run(resume=True)
