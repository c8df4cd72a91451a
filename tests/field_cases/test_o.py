"""The outbox and who empties it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from amends.core.contract import Keying
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}


def committing(world):
    """A run that had finished, and whose process died before its outbox was empty."""
    run = world.run()
    run.call("shop.reserve", ARGS)
    for name in ("a", "b", "c"):
        run.call("mail.send", {"name": name})
    engine = world.engines[0]
    engine.pause("all", reason="hold", by="maya")
    run.finish()
    assert run.outcome.status.value == "committing"
    engine.lift_pause("all", by="maya")
    world.die()
    return run


@pytest.mark.parametrize("kind", ["keyed", "probeable"])
def test_o_01_two_dispatchers_of_one_outbox_send_every_item_once(build, kind):
    """Both start at once on what a dead process left waiting."""
    keying = Keying(kind="probeable") if kind == "probeable" else Keying(kind="keyed", parameter="Idempotency-Key")
    world = build(keyed(), queued("mail.send", keying=keying))
    run = committing(world)
    both = [world.engine(f"owner-{number}") for number in (2, 3)]
    gate = threading.Barrier(2)

    def dispatch(engine):
        gate.wait(10)
        return engine.recover(wait_seconds=60)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(dispatch, both))
    assert both[0].state(run.run_id).run.status.value == "committed"
    assert sorted(request.name for request in world.system.sent("mail.send", "do")) == ["a", "b", "c"]


def test_o_01_an_item_whose_sender_died_in_mid_send_is_looked_for_and_not_sent_again(build):
    """Killed after the provider took the mail and before it was recorded: the claim does not simply run out."""
    world = build(queued("mail.send", keying=Keying(kind="probeable")))
    (adapter,) = world.capabilities
    taken, go, make = threading.Event(), threading.Event(), adapter.do

    def stuck(call):
        receipt = make(call)
        taken.set()
        go.wait(20)
        return receipt

    adapter.do = stuck
    run = world.run()
    run.call("mail.send", ARGS)
    with ThreadPoolExecutor(1) as pool:
        finish = pool.submit(run.finish)
        assert taken.wait(10)
        world.die()
        second = world.engine("owner-2")
        second.recover(wait_seconds=600)
        go.set()
        finish.exception(10)
    assert second.state(run.run_id).run.status.value == "committed"
    assert world.system.count("mail.send") == 1
    assert len(world.system.sent("mail.send", "do")) == 1
