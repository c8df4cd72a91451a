"""A process may stand still between policy's answer and the intent: policy holds at the moment of sending, so a yes
that is older than the call's time limit sends nothing.
"""

import pytest

from amends.testing.fakes import FakeAuthorizer
from amends.testing.worlds import corrector, keyed, queued, visible

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
