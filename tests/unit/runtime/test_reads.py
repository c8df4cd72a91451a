"""Reads: authorized like every call, sent every time, and not recorded."""

from amends.core.contract import Effect
from amends.core.status import ActionStatus
from amends.testing.fakes import DENY
from amends.testing.worlds import keyed

ARGS = {"name": "o-1"}
READ = keyed(
    "shop.look", effect=Effect(kind="look", system="shop", resource="shelf:{name}", changes="none"), compensation=()
)


def test_a_read_is_made_each_time_and_leaves_no_action(build):
    """There is nothing to take back, so nothing is recorded; and the second answer is fresh."""
    world = build(READ)
    with world.run() as run:
        first, second = run.call("shop.look", ARGS), run.call("shop.look", ARGS)
        assert [first.ok, second.ok, second.repeated] == [True, True, False]
        assert run.state.actions == {}
    assert len(world.system.sent("shop.look", "do")) == 2


def test_a_read_is_denied_like_any_call(build):
    """Policy is asked at the moment of sending; nothing is sent on a no."""
    world = build(READ)
    world.authorizer.rules = {"shop.look": DENY}
    with world.run() as run:
        answer = run.call("shop.look", ARGS)
    assert (answer.status, answer.reason) == (ActionStatus.DENIED, "no policy permits it")
    assert world.system.sent("shop.look", "do") == []


def test_a_read_without_an_answer_has_failed(build):
    """A read leaves nothing to be in doubt about: it is never `unknown`."""
    world = build(READ)
    world.system.tell("shop.look", "do", "nothing")
    with world.run() as run:
        answer = run.call("shop.look", ARGS)
        assert answer.status is ActionStatus.FAILED
    assert run.outcome.status.value == "committed"
