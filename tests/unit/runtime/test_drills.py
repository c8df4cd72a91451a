"""A drill certificate is in force wherever policy is asked about the call, not only the first time."""

import pytest

from amends.core.status import ActionStatus
from amends.spi import Prepared
from amends.testing.fakes import needs_approval
from amends.testing.scripted import ScriptedCapability
from amends.testing.worlds import keyed

_S = ActionStatus
ARGS = {"name": "o-1"}


class Drilled(ScriptedCapability):
    """A call whose certificate is about the content that `prepare` reads."""

    content = "sha256:1"

    def prepare(self, question):
        return Prepared(subject_digest=self.content, content_digest=self.content)

    def drill(self, question):
        return self.content, "done and undone"


def drilled(system):
    """`shop.reserve` with a drill."""
    return Drilled(system, keyed(needs_drill=True)(system).contract)


def proven(world, phase="forward"):
    """What policy was told about the certificate, each time it was asked about the content."""
    return [request.contract_facts["proven"] for request in world.authorizer.requests if request.phase == phase]


@pytest.fixture
def world(build):
    """A world in which the call is drilled."""
    world = build(drilled)
    world.engine().drill("shop.reserve", ARGS)
    return world


def test_a_drilled_call_is_proven_when_people_have_said_yes(world):
    """Policy is asked before people are, and again when they have approved."""
    world.authorizer.rules = {"shop.reserve": needs_approval(1)}
    run = world.run()
    assert run.call("shop.reserve", ARGS).status is _S.AWAITING_APPROVAL
    [question] = world.engines[0].approvals()
    world.engines[0].approve(question.approval_id, by="maya")
    assert run.call("shop.reserve", ARGS).status is _S.SUCCEEDED
    assert set(proven(world)) == {True}


def test_a_drilled_call_is_proven_when_it_is_sent_again(world):
    """After a proof that nothing was sent, policy is asked about the same content."""
    world.system.tell("shop.reserve", "do", "not_sent")
    run = world.run()
    assert run.call("shop.reserve", ARGS).status is _S.FAILED
    assert run.call("shop.reserve", ARGS).status is _S.SUCCEEDED
    assert proven(world) == [True, True]


def test_a_drilled_call_is_proven_when_it_is_taken_back(world):
    """The undo is that of the drill."""
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    assert set(proven(world, "undo")) == {True}


def test_content_that_changed_while_people_were_asked_is_not_proven(world, monkeypatch):
    """The certificate is about what was drilled, not about what is there now."""
    world.authorizer.rules = {"shop.reserve": needs_approval(1)}
    run = world.run()
    run.call("shop.reserve", ARGS)
    [question] = world.engines[0].approvals()
    world.engines[0].approve(question.approval_id, by="maya")
    monkeypatch.setattr(Drilled, "content", "sha256:2")
    assert run.call("shop.reserve", ARGS).status is _S.AWAITING_APPROVAL
    assert proven(world)[-1] is False
