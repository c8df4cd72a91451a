"""Proposed inverses: an agent does not take back what its run did (rule 11)."""

from amends.core.contract import Alternative
from amends.core.status import ActionStatus
from amends.testing.worlds import keyed, removing

ARGS = {"name": "o-1"}


def test_an_unregistered_inverse_is_denied_recorded_and_escalated(build):
    """Rule 11: nothing is sent; a person reconciles; the run waits for them and does not call itself recovered."""
    world = build(keyed(), removing())
    run = world.run()
    run.call("shop.reserve", ARGS)
    result = run.call("shop.release", ARGS)
    assert result.status is ActionStatus.DENIED
    assert "shop.reserve" in result.reason
    (item,) = world.engines[0].escalations()
    assert item.cause == "unregistered_inverse"
    assert world.system.count("shop.reserve") == 1
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"  # rule 23: an open escalation
    assert world.system.count() == 0
    world.engines[0].resolve(item.escalation_id, "acknowledge", by="maya")
    (state,) = world.engines[0].recover()
    assert state.run.status.value == "recovered"


def test_the_registered_compensation_is_left_to_recovery(build):
    """Rule 11: as a forward call even the registered inverse is denied; recovery sends it, looked at and verified."""
    rung = Alternative(name="release", undo="shop.release", input_from="forward_input", required_fields=("name",))
    world = build(keyed(compensation=(rung,)), removing())
    run = world.run()
    run.call("shop.reserve", ARGS)
    assert run.call("shop.release", ARGS).status is ActionStatus.DENIED
    assert world.engines[0].escalations() == ()
    assert world.system.sent("shop.release", "do") == []
    run.detach()


def test_what_the_run_did_not_make_may_be_removed(build):
    """Rule 11: only effects of this run are protected; removing something else is an ordinary call."""
    world = build(keyed(), removing())
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        assert run.call("shop.release", {"name": "somebody's"}).ok
    assert run.outcome.status.value == "committed"


def test_an_unknown_effect_is_protected_too(build):
    """Rule 11: it may exist, so no forward call may take it away blindly."""
    world = build(keyed(), removing())
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", ARGS)
    assert run.call("shop.release", ARGS).status is ActionStatus.DENIED
    assert world.system.sent("shop.release", "do") == []
    run.detach()


def test_compensation_touches_only_what_the_run_made(build):
    """Rule 11: what others have in the same system stays."""
    world = build(keyed())
    with world.run("1") as other:
        other.call("shop.reserve", {"name": "theirs"})
    run = world.run("2")
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert [t.name for t in world.system.things.values()] == ["theirs"]
