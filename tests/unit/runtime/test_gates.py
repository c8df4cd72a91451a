"""Gates: a person's yes in the middle of a run (rule 29)."""

import pytest

from amends.core.contract import Release
from amends.core.status import ActionStatus, Outcome
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import gate, keyed, prepared, setting

ARGS = {"name": "report"}


@pytest.fixture
def gated(build):
    world = build(keyed(), gate(), keyed("shop.use"))
    run = world.run()
    run.call("shop.reserve", {"name": "before"})
    result = run.gate("shop.buy", ARGS)
    assert result.status is ActionStatus.AWAITING_APPROVAL
    return world, run, world.engines[0]


def test_a_gate_asks_a_person_whatever_policy_allows(gated):
    """Rule 29: an irreversible call that cannot wait is never sent on policy alone; the text says that it stays."""
    world, run, engine = gated
    assert world.system.count("shop.buy") == 0
    (asked,) = engine.approvals()
    assert "cannot be taken back" in asked.shown["note"]
    run.detach()


def test_after_a_yes_the_call_is_made_and_the_run_goes_on(gated):
    """Rule 29: the same arguments again go on waiting, and then go through."""
    world, run, engine = gated
    assert run.gate("shop.buy", ARGS).status is ActionStatus.AWAITING_APPROVAL  # a caller's time-out changes nothing
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    assert run.gate("shop.buy", ARGS, wait_seconds=5).ok
    run.finish()
    assert run.outcome.status.value == "committed"
    assert world.system.count("shop.buy") == 1


def test_a_no_turns_the_run_back(gated):
    """Rule 29: a "no" → recovering; nothing was bought, the rest is taken back."""
    world, run, engine = gated
    (asked,) = engine.approvals()
    engine.reject(asked.approval_id, by="noor", comment="too dear")
    assert run.gate("shop.buy", ARGS, wait_seconds=5).status is ActionStatus.WITHDRAWN if _open(run) else True
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def _open(run):
    return run.state.run.status.value == "open"


def test_expiry_turns_the_run_back(build):
    """Rule 29: no timer approves; expiry is the run's due time."""
    world = build(keyed(), gate(release=Release(mode="gate", approval_ttl_seconds=60.0)))
    run = world.run()
    run.call("shop.reserve", {"name": "before"})
    result = run.gate("shop.buy", ARGS, wait_seconds=300)
    assert result.status is not ActionStatus.SUCCEEDED
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_gated_effect_is_an_approved_residue_and_never_undone(gated):
    """Rule 29: after yes and a later failure it stays, is listed, and the independent rest is taken back."""
    world, run, engine = gated
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    run.gate("shop.buy", ARGS, wait_seconds=5)
    run.call("shop.use", {"name": "after"}, depends_on=[])
    run.fail("CI failed", wait_seconds=60)
    assert world.system.sent("shop.buy", "undo") == []
    assert [t.capability for t in world.system.things.values()] == ["shop.reserve", "shop.buy"]
    # The purchase may rest on the reservation, which was there before: a person decides about that one.
    assert run.outcome.status.value == "needs_human"
    assert [i.cause for i in engine.escalations()] == ["unregistered"]
    exists = {line["capability"] for line in engine.run_report(run.run_id)["exists"]}
    assert "shop.buy" in exists


def test_an_independent_rest_is_recovered_around_a_residue(build):
    """Rule 29: what the residue does not rest on is compensated, and the run is recovered with the residue listed."""
    world = build(keyed(), gate())
    run = world.run()
    run.call("shop.reserve", {"name": "aside"}, depends_on=[])
    run.gate("shop.buy", ARGS, depends_on=[])
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    assert run.gate("shop.buy", ARGS, depends_on=[], wait_seconds=5).ok
    run.fail("CI failed", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert [t.capability for t in world.system.things.values()] == ["shop.buy"]


def test_waiting_at_a_gate_needs_no_lease(gated):
    """Rule 29: its process may be gone; recovery begins at expiry, or when the grace after an answer has passed."""
    world, _, _ = gated
    world.die()
    second = world.engine("owner-2")
    world.clock.advance(3600)
    assert second.recover() == []
    assert world.system.count("shop.reserve") == 1
    (asked,) = second.approvals()
    second.approve(asked.approval_id, by="noor")
    (state,) = second.recover(wait_seconds=5)  # yes, but nobody is left to make the call
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


def test_after_a_yes_the_grace_for_a_resume_passes_first(build):
    """Rule 29: a declared grace is kept after the answer; a resumed session goes through the gate."""
    world = build(gate())
    run = world.run(resume_grace_seconds=600.0)
    run.gate("shop.buy", ARGS)
    world.die()
    second = world.engine("owner-2")
    (asked,) = second.approvals()
    second.approve(asked.approval_id, by="noor")
    world.clock.advance(300)
    assert second.recover() == []
    resumed = world.run(engine=second, resume=True)
    assert resumed.gate("shop.buy", ARGS).ok
    resumed.finish()
    assert resumed.outcome.status.value == "committed"


def test_expiry_with_nobody_alive_recovers(build):
    """Rule 29: expiry is `due_at`."""
    world = build(keyed(), gate(release=Release(mode="gate", approval_ttl_seconds=60.0)))
    run = world.run()
    run.call("shop.reserve", {"name": "before"})
    run.gate("shop.buy", ARGS)
    world.die()
    world.clock.advance(61)
    (state,) = world.engine("owner-2").recover(wait_seconds=60)
    assert state.run.status.value == "recovered"


def test_a_gate_is_not_the_pivot(gated):
    """Rule 29: after it the run may still go back."""
    _, run, engine = gated
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    run.gate("shop.buy", ARGS, wait_seconds=5)
    assert not run.state.pivot_passed
    run.detach()


def test_content_that_changed_since_the_yes_is_asked_about_again(build):
    """Rules 29 and 30: a yes is about what was shown, in mid-run too."""
    world = build(prepared(mode="gate"))
    world.system.values["report"] = "v1"
    run = world.run()
    run.gate("shop.publish", ARGS)
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.system.values["report"] = "v2"
    assert run.gate("shop.publish", ARGS).status is ActionStatus.AWAITING_APPROVAL
    assert world.system.count() == 0
    (again,) = engine.approvals()
    assert again.digest != asked.digest
    engine.approve(again.approval_id, by="noor")
    assert run.gate("shop.publish", ARGS).ok
    assert run.state.forward_actions()[0].before_image == {"value": "v2"}
    run.detach()


def test_a_forward_call_that_policy_wants_approved_keeps_its_before_image(build):
    """Rules 1 and 30: a call that waited for a yes can be taken back like any other."""
    world = build(setting())
    world.authorizer.rules = {"flags.set": needs_approval(1)}
    world.system.values["f"] = "old"
    run = world.run()
    args = {"name": "f", "value": "on"}
    assert run.call("flags.set", args).status is ActionStatus.AWAITING_APPROVAL
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    assert run.call("flags.set", args).ok
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.values["f"] == "old"


def test_an_approved_call_is_decided_again_at_its_send(build):
    """Rule 30: denied by now → `policy_changed`; after a person's word it is asked for anew."""
    world = build(keyed())
    world.authorizer.rules = {"shop.reserve": needs_approval(1)}
    run = world.run()
    run.call("shop.reserve", ARGS)
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.authorizer.rules = {"shop.reserve": DENY}
    assert run.call("shop.reserve", ARGS).status is ActionStatus.NEEDS_HUMAN
    world.authorizer.rules = {"shop.reserve": needs_approval(1)}
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "look_again", by="maya")
    assert run.call("shop.reserve", ARGS).status is ActionStatus.AWAITING_APPROVAL
    (again,) = engine.approvals()
    engine.approve(again.approval_id, by="noor")
    assert run.call("shop.reserve", ARGS).ok
    run.detach()


def test_many_callers_at_one_gate_make_one_call(build):
    """Rules 5 and 29: threads that wait at the same gate send once between them."""
    from concurrent.futures import ThreadPoolExecutor

    world = build(gate())
    run = world.run()
    run.gate("shop.buy", ARGS)
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: run.gate("shop.buy", ARGS), range(6)))
    assert world.system.count() == 1
    assert len(world.system.sent("shop.buy", "do")) == 1
    run.detach()


@pytest.mark.parametrize(("now", "asked_again"), [("v1", False), ("v2", True)])
def test_a_call_that_is_sent_again_reads_again(build, now, asked_again):
    """Rules 5 and 30: its undo restores what stood before the send that counts, and a yes is about what it was for."""
    world = build(setting())
    world.authorizer.rules = {"flags.set": needs_approval(1)}
    world.system.values["f"] = "v1"
    run, engine = world.run(), world.engines[0]
    args = {"name": "f", "value": "on"}
    run.call("flags.set", args)
    engine.approve(engine.approvals()[0].approval_id, by="noor")
    world.system.tell("flags.set", "do", "not_sent")
    assert run.call("flags.set", args).outcome is Outcome.FAILED
    world.system.values["f"] = now
    world.clock.advance(60)
    assert run.call("flags.set", args).ok is not asked_again
    for approval in engine.approvals():
        engine.approve(approval.approval_id, by="noor")
    assert run.call("flags.set", args).ok
    assert world.system.values["f"] == "on"
    run.fail("stop", wait_seconds=60)
    assert world.system.values["f"] == now
