"""Authorization and approval: what was approved, where, and whether it still holds at the moment of sending."""

from dataclasses import replace

import pytest

from amends.runtime.book import Paused
from amends.runtime.kit import Catalog, Offer
from amends.spi.capability import Prepared
from amends.testing.worlds import catalog_of, corrector, gate, keyed, prepared, queued, visible

ARGS = {"name": "o-1"}


def elsewhere(world, **swapped):
    """What the same capabilities are in a process whose configuration says something else."""
    offers = catalog_of(world.capabilities, world.secrets.resolve).all()
    return Catalog(Offer(offer.capability, replace(offer.context, **swapped)) for offer in offers)


@pytest.mark.parametrize("swapped", [{"environment": "prod"}, {"instance": "another"}])
@pytest.mark.parametrize("recovered", [True, False])
def test_z_06_a_connection_that_was_swapped_after_the_yes_carries_nothing_out(build, swapped, recovered):
    """A process whose adapter points elsewhere neither releases what was approved nor undoes what was done."""
    world = build(keyed(), queued(mode="on_approval"))
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS, depends_on=[])
    engine = world.engines[0]
    if recovered:
        run.detach()
    else:
        run.finish()
        (asked,) = engine.approvals()
        engine.approve(asked.approval_id, by="noor")
    world.die()
    before = len(world.system.requests)
    other = world.engine("owner-2", catalog=elsewhere(world, **swapped))
    (state,) = other.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert {item.cause for item in other.escalations()} == {"adapter_unavailable"}
    assert len(world.system.requests) == before


def test_z_06_people_are_not_told_at_a_place_of_the_same_name_elsewhere(build):
    """The correction of what was seen on staging is not posted on production by the same adapter's new section."""
    world = build(visible(), corrector("shop.correct"))
    world.run().call("shop.announce", ARGS)
    world.die()
    other = world.engine("owner-2", catalog=elsewhere(world, environment="prod"))
    (state,) = other.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert world.system.notes == []
    assert any("note:o-1" in item.in_doubt for item in other.escalations())


def test_z_06_a_correction_whose_corrector_means_another_system_by_now_waits_for_a_person(build):
    """It was registered, and not posted before its process died; the corrector's section has changed since."""
    world = build(visible(), corrector())
    run = world.run()
    run.call("shop.announce", ARGS)
    world.system.tell("note.correct", "do", "busy", "busy")
    run.fail("stop", wait_seconds=0)
    world.die()
    other = world.engine("owner-2", catalog=elsewhere(world, environment="prod"))
    (state,) = other.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert world.system.notes == []


def test_z_05_arguments_that_a_caller_changes_while_people_decide_are_not_sent(build):
    """What was shown is what is sent: the caller's own dictionary is not looked at again."""
    world = build(gate())
    run = world.run()
    args = dict(ARGS, value="5")
    assert not run.gate("shop.buy", args).ok
    (asked,) = world.engines[0].approvals()
    world.engines[0].approve(asked.approval_id, by="noor")
    args["value"] = "500"
    changed = run.gate("shop.buy", args)
    assert changed.conflict
    assert world.system.count() == 0
    assert run.gate("shop.buy", dict(ARGS, value="5")).ok
    assert next(iter(run.state.actions.values())).args == {"name": "o-1", "value": "5"}
    run.finish()


def test_z_05_an_adapter_that_writes_into_what_it_is_shown_changes_nothing_else(build):
    """A hook that rewrites arguments works on a copy: what was judged, shown and recorded is what is sent."""
    world = build(prepared(mode="gate"))
    adapter = world.capabilities[0]
    sent, make = [], adapter.do

    def rewriting(question):
        question.args["value"] = "500"
        return Prepared(before={"value": ""})

    def sending(call):
        sent.append(call.args["value"])
        return make(call)

    world.capabilities[0] = type("Rewriting", (type(adapter),), {})(world.system, adapter.contract)
    world.capabilities[0].prepare, world.capabilities[0].do = rewriting, sending
    with world.run() as run:
        run.gate("shop.publish", ARGS | {"value": "5"})
        (asked,) = world.engines[0].approvals()
        assert asked.shown["args"]["value"] == "5"
        world.engines[0].approve(asked.approval_id, by="noor")
        assert run.gate("shop.publish", ARGS | {"value": "5"}).ok
    assert sent == ["5"]
    assert [action.args["value"] for action in run.state.actions.values()] == ["5"]


def test_z_05_an_answer_that_its_receiver_writes_into_stays_as_recorded(build):
    """An agent that edits the answer it got does not edit what the next caller, or an undo, is told."""
    world = build(keyed())
    with world.run() as run:
        first = run.call("shop.reserve", ARGS)
        recorded = dict(first.output)
        first.output.clear()
        first.effect["id"] = "another"
        again = run.call("shop.reserve", ARGS)
        assert (again.repeated, again.output, again.effect) == (True, recorded, {"id": recorded["id"]})


def test_z_08_a_pause_between_permission_and_intent_stops_the_call(build):
    """A pause that is set while policy is asked is seen by the intent's own commit, on every path that sends."""
    world = build(keyed(), queued())
    engine = world.engine()
    ask = world.authorizer.decide

    def pausing(request):
        if request.phase in {"forward", "release"}:
            engine.pause("all", reason="the partner is down", by="maya")
        return ask(request)

    world.authorizer.decide = pausing
    run = world.run()
    with pytest.raises(Paused):
        run.call("shop.reserve", ARGS)
    assert world.system.requests == []
    engine.lift_pause("all", by="maya")
    world.authorizer.decide = ask
    assert run.call("shop.notify", ARGS).status.value == "queued"
    world.authorizer.decide = pausing
    run.finish()
    assert run.outcome.status.value == "committing"
    assert world.system.requests == []
    world.authorizer.decide = ask
    engine.lift_pause("all", by="maya")
    (state,) = engine.recover(run.run_id, wait_seconds=60)
    assert (state.run.status.value, world.system.count()) == ("committed", 1)
