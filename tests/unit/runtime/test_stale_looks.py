"""A process may stand still between a look and its record: what was seen holds for that time (rules 4 and 18)."""

from amends.core.contract import Alternative, ProbeRule, Retry
from amends.core.status import ActionKind
from amends.testing.fakes import RecordingProgress
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}
HOUR_SECONDS = 3600.0
ODD = ProbeRule(
    strength="list", schedule_seconds=(0.0, 1.0, 4.0), deadline_seconds=15.0, absent_final_after_seconds=10.0
)


class StandsStill(RecordingProgress):
    """The process is frozen for an hour after its first look."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def reached(self, milestone, run_id, action_id):
        if milestone == "after_probe" and milestone not in {told for told, _, _ in self.milestones}:
            self._clock.advance(HOUR_SECONDS)
        super().reached(milestone, run_id, action_id)

    @property
    def stood(self):
        """Whether it was."""
        return "after_probe" in {told for told, _, _ in self.milestones}


class StandsAfterTheUndo(StandsStill):
    """The process is frozen after its second look, the one that follows the undo."""

    def reached(self, milestone, run_id, action_id):
        if milestone == "after_probe" and not self.stood:
            self.milestones.append((milestone, run_id, action_id))
            return
        if milestone == "after_probe" and [told for told, _, _ in self.milestones].count("after_probe") == 1:
            self._clock.advance(HOUR_SECONDS)
        RecordingProgress.reached(self, milestone, run_id, action_id)


def stopped(world, *also):
    """A run that reserved, was stopped, and is recovered by a process that stands still after its first look."""
    progress = StandsStill(world.clock)
    engine = world.engine(progress=progress)
    run = world.run(engine=engine)
    run.call("shop.reserve", ARGS)
    for capability in also:
        run.call(capability, ARGS)
    return run, progress


def test_absence_that_was_seen_early_proves_nothing_later(build):
    """Rule 4: the read lagged, and when it is recorded absence would be final; the effect is found and undone."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "lost")
    world.system.tell("shop.reserve", "probe", "absent")
    run, progress = stopped(world)
    run.fail("stop", wait_seconds=2 * HOUR_SECONDS)
    assert progress.stood
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
    assert len(world.system.sent("shop.reserve", "undo")) == 1


def test_what_seems_gone_already_is_looked_at_again_however_long_its_record_took(build):
    """Rule 18: an effect too young for a read that lags is not taken for gone."""
    world = build(keyed())
    world.system.tell("shop.reserve", "probe", "absent")
    run, progress = stopped(world)
    run.fail("stop", wait_seconds=2 * HOUR_SECONDS)
    assert progress.stood
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_an_undo_has_not_failed_for_what_was_seen_before_it_settled(build):
    """Rule 19: `still there` counts once the settle time is over at the look, not at its record."""
    settling = Alternative(name="cancel", retry=Retry(attempts=3, settle_seconds=30.0))
    world = build(keyed(compensation=(settling,)))
    world.system.tell("shop.reserve", "undo", "lost")
    world.system.tell("shop.reserve", "probe", "applied")  # before the undo
    world.system.tell("shop.reserve", "probe", "applied")  # after it, from a replica that lags
    engine = world.engine(progress=(progress := StandsAfterTheUndo(world.clock)))
    run = world.run(engine=engine)
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=2 * HOUR_SECONDS)
    assert progress.stood
    assert run.outcome.status.value == "recovered"
    undo = next(action for action in run.state.actions.values() if action.kind is ActionKind.UNDO)
    assert "still_applied" not in {item.code for item in undo.evidence}
    assert len(world.system.sent("shop.reserve", "undo")) == 1


def test_a_success_is_not_revoked_by_a_look_from_before_it_was_visible(build):
    """Rule 7: absence of a provisional success counts from when it was asked for."""
    world = build(keyed(provisional_for_seconds=24 * HOUR_SECONDS, probe=ODD), queued())
    world.system.tell("shop.reserve", "probe", "absent")
    run, progress = stopped(world, "shop.notify")
    run.finish(wait_seconds=2 * HOUR_SECONDS)
    assert progress.stood
    assert run.outcome.status.value == "committed"
    assert world.system.count("shop.notify") == 1
