"""A process may stand still between policy's answer, or what it read, and the intent: both hold at the moment of
sending, so a yes that is older than the call's time limit sends nothing, and nor does a reading older than twice that.
"""

import pytest

from amends.core.status import Outcome, RunStatus
from amends.testing.fakes import FakeAuthorizer
from amends.testing.scripted import SettingCapability
from amends.testing.worlds import corrector, keyed, queued, setting, visible

ARGS = {"name": "o-1"}
HOUR_SECONDS = 3600.0


class SlowToBeHeard(FakeAuthorizer):
    """The asking process is frozen for an hour behind its first question about an action."""

    def __init__(self, clock, action):
        super().__init__()
        self._clock, self._action = clock, action
        self.froze = False

    def decide(self, request):
        decision = super().decide(request)
        if request.action == self._action and not self.froze:
            self.froze = True
            self._clock.advance(HOUR_SECONDS)
        return decision


def a_call(world):
    with world.run() as run:
        run.call("shop.reserve", ARGS)


def a_taken_back_call(world):
    run = world.run()
    run.call("shop.announce", ARGS)
    run.fail("stop", wait_seconds=2 * HOUR_SECONDS)


def a_release(world):
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=2 * HOUR_SECONDS)


def effects(world, action):
    """What took effect, as the system counts it."""
    match action:
        case "shop.announce.undo":
            return 1 - world.system.count("shop.announce")
        case "note.correct.correct":
            return len(world.system.notes)
        case _:
            return world.system.count(action.removesuffix(".release"))


@pytest.mark.parametrize(
    ("action", "work", "sent"),
    [
        ("shop.reserve", a_call, 0),
        ("shop.announce.undo", a_taken_back_call, 1),
        ("note.correct.correct", a_taken_back_call, 1),
        ("shop.notify.release", a_release, 1),
    ],
)
def test_a_yes_from_before_a_long_sleep_sends_nothing(build, action, work, sent):
    """The last check holds the send back; where the engine goes on by itself it asks again, and then sends once."""
    world = build(keyed(), visible(), queued(), corrector())
    world.authorizer = SlowToBeHeard(world.clock, action)
    world.engine(settings={"lease_seconds": 24 * HOUR_SECONDS})  # so that it is not the lease that holds it back
    work(world)
    assert world.authorizer.froze
    asked = [r for r in world.authorizer.requests if r.action == action]
    assert len(asked) == sent + 1
    assert effects(world, action) == sent


class FreezesAfterReading(SettingCapability):
    """Its process is frozen for an hour behind its first answer to `read`, and somebody else sets the value then."""

    def __init__(self, world, read):
        super().__init__(world.system, setting()(world.system).contract)
        self._world, self._read = world, read
        self.froze = False

    def prepare(self, question):
        return self._freeze("prepare", super().prepare(question))

    def probe(self, question):
        return self._freeze("probe", super().probe(question))

    def _freeze(self, read, answer):
        if read == self._read and not self.froze:
            self.froze = True
            self._world.clock.advance(HOUR_SECONDS)
            self._world.system.values["beta"] = "theirs"
        return answer


def setting_once(build, read):
    """A world whose one capability freezes, and a run in it."""
    world = build()
    world.capabilities.append(FreezesAfterReading(world, read))
    world.system.values["beta"] = "off"
    world.engine(settings={"lease_seconds": 24 * HOUR_SECONDS})  # so that it is not the lease that holds it back
    return world, world.run()


def test_a_call_is_not_sent_on_a_reading_from_before_a_long_sleep(build):
    """Its undo would restore what stood there an hour ago. The next call reads anew, and its undo restores that."""
    world, run = setting_once(build, "prepare")
    first = run.call("flags.set", {"name": "beta", "value": "on"})
    assert first.outcome is Outcome.FAILED
    assert world.system.values["beta"] == "theirs"
    assert run.call("flags.set", {"name": "beta", "value": "on"}).outcome is Outcome.SUCCEEDED
    assert world.system.values["beta"] == "on"
    run.fail("stop", wait_seconds=60)
    assert world.system.values["beta"] == "theirs"


def test_an_undo_is_not_sent_on_a_look_from_before_a_long_sleep(build):
    """It would write over what somebody else has set since: the next look sees that, and a person decides."""
    world, run = setting_once(build, "probe")
    assert run.call("flags.set", {"name": "beta", "value": "on"}).outcome is Outcome.SUCCEEDED
    run.fail("stop", wait_seconds=2 * HOUR_SECONDS)
    assert world.capabilities[0].froze
    assert world.system.values["beta"] == "theirs"
    assert run.state.run.status is RunStatus.NEEDS_HUMAN
