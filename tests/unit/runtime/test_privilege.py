"""More privilege after a refusal is a new action: nothing of what was refused, asked or approved passes to it."""

import pytest

from amends.core.errors import UnknownName
from amends.core.status import ActionStatus
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import keyed

ARGS = {"name": "main"}


def asked_about(world, capability):
    return [request for request in world.authorizer.requests if request.action == capability]


def test_force_push_after_a_refused_push_is_another_action_with_its_own_decision(build):
    """A denied push leaves nothing to escalate from: the force push is judged as itself, from the beginning."""
    world = build(keyed("git.push"), keyed("git.force_push"))
    world.authorizer.rules = {"git.push": DENY, "git.force_push": DENY}
    run = world.run()
    push = run.call("git.push", ARGS)
    force = run.call("git.force_push", ARGS)
    assert (push.status, force.status) == (ActionStatus.DENIED, ActionStatus.DENIED)
    assert force.action_id != push.action_id
    assert force.slot != push.slot
    decided = {a.capability: a.decided for a in run.state.actions.values()}
    assert decided["git.force_push"].decision_id != decided["git.push"].decision_id
    assert decided["git.force_push"].action == "git.force_push"
    assert world.system.sent("git.force_push", "do") == []
    run.fail("nothing was pushed", wait_seconds=60)


def test_no_approval_of_a_push_reaches_a_force_push(build):
    """A person's yes is bound to the action they saw; the other one is asked about without any."""
    world = build(keyed("git.push"), keyed("git.force_push"))
    world.authorizer.rules = {"git.push": needs_approval(1), "git.force_push": needs_approval(1)}
    run = world.run()
    run.call("git.push", ARGS)
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="maya")
    force = run.call("git.force_push", ARGS)
    assert force.status is ActionStatus.AWAITING_APPROVAL
    assert [request.approval for request in asked_about(world, "git.force_push")] == [None] * 2
    (other,) = engine.approvals()
    assert other.digest != asked.digest
    assert world.system.sent("git.force_push", "do") == []
    run.fail("it was told to", wait_seconds=60)


def test_what_no_adapter_offers_cannot_be_called_whatever_was_refused(build):
    """Without a capability for it there is no force push at all."""
    world = build(keyed("git.push"))
    world.authorizer.rules = {"git.push": DENY}
    run = world.run()
    run.call("git.push", ARGS)
    with pytest.raises(UnknownName, match=r"`git\.force_push`"):
        run.call("git.force_push", ARGS)
    run.fail("nothing was pushed", wait_seconds=60)
