"""The outbox: what cannot be taken back waits, and leaves only when it may (rules 26 to 28 and 30)."""

import sys

import pytest

from amends.core.contract import Limits, Release
from amends.core.errors import Conflict
from amends.core.status import ActionStatus, Outcome
from amends.spi.hookspecs import Check
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import keyed, prepared, queued

ARGS = {"name": "o-1"}


def by_capability(state):
    return {a.capability: a.status.value for a in state.forward_actions()}


def test_an_irreversible_call_is_queued_and_the_agent_is_told_so(build):
    """Rule 26: nothing is sent before the run has succeeded."""
    world = build(queued())
    with world.run() as run:
        result = run.call("shop.notify", ARGS)
        assert result.status is ActionStatus.QUEUED
        assert "not been sent" in result.message
        assert world.system.requests == []
    assert run.outcome.status.value == "committed"
    assert world.system.count() == 1


def test_the_handle_an_agent_holds_cannot_release_approve_or_recover(build):
    """Rule 26: none of it is on the handle."""
    world = build(queued())
    run = world.run()
    offered = {name for name in dir(run) if not name.startswith("_")}
    assert not offered & {"release", "approve", "reject", "recover", "resolve", "engine", "report", "freeze"}
    run.finish()


def test_nothing_is_released_when_a_step_did_not_succeed(build):
    """Rule 27: every compensatable action succeeded, or the run goes back."""
    world = build(keyed(), queued())
    run = world.run()
    run.call("shop.reserve", {"name": "o-0"})
    world.system.tell("shop.reserve", "do", "refused")
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
    assert by_capability(run.state)["shop.notify"] == "withdrawn"


def test_a_step_that_is_not_required_may_fail(build):
    """Rule 27: withdrawn or denied unsent and not required is no obstacle."""
    world = build(keyed(), queued())
    world.authorizer.rules = {"shop.reserve": DENY}
    with world.run() as run:
        run.call("shop.reserve", ARGS, required=False)
        run.call("shop.notify", ARGS)
    assert run.outcome.status.value == "committed"


class Answers:
    """A check that answers in turn, the last for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, run_id):
        self.asked += 1
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, "as told"


def checked(build, *answers, makes=(), **settings):
    world = build(keyed(), queued(), *makes)
    world.checks["ci"] = Check("ci", Answers(*answers))
    world.engine(settings=settings)
    return world


@pytest.mark.parametrize("answer", ["not_passed", "unknown", RuntimeError("the check itself is broken")])
def test_only_a_passed_check_releases(build, answer):
    """Rule 27: `not_passed` turns back; `unknown` waits and never releases."""
    world = checked(build, answer)
    run = world.run(check="ci")
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run.finish()
    assert run.outcome.status.value == ("recovered" if answer == "not_passed" else "committing")
    assert world.system.count("shop.notify") == 0
    assert world.engines[0].escalations() == ()


@pytest.mark.parametrize("ask", [lambda _: sys.exit(3), lambda _: ("fine", ""), lambda _: "passed", lambda _: None])
def test_a_check_that_breaks_its_promise_cannot_tell(build, ask):
    """Rule 27: whatever a plugin's check does, it has not passed, and the engine goes on."""
    world = build(keyed(), queued())
    world.checks["ci"] = Check("ci", ask)
    run = world.run(check="ci")
    run.call("shop.notify", ARGS)
    run.finish()
    assert (run.state.run.status.value, run.state.run.check_answer) == ("committing", "unknown")
    assert world.system.count() == 0


def test_a_check_that_cannot_tell_yet_is_asked_again(build):
    """Rule 27: the run waits with a due time, and is released once the check has passed."""
    world = checked(build, "unknown", "unknown", "passed")
    run = world.run(check="ci")
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=120)
    assert run.outcome.status.value == "committed"
    assert world.system.count() == 1
    assert world.checks["ci"].ask.asked >= 3


def test_a_check_without_answer_by_its_deadline_turns_back(build):
    """Rule 27: before the pivot the run recovers."""
    world = checked(build, "unknown", check_deadline_seconds=60.0)
    run = world.run(check="ci")
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=300)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_check_without_answer_past_the_pivot_goes_to_a_person(build):
    """Rules 27 and 34: nothing is undone; somebody gets an item and can let the run go on."""
    world = checked(build, "passed", "unknown", check_deadline_seconds=60.0)
    run = world.run(check="ci")
    run.call("shop.notify", ARGS, label="a", depends_on=[])
    run.call("shop.notify", ARGS, label="b", depends_on=[])
    run.finish(wait_seconds=300)
    assert run.outcome.status.value == "needs_human"
    assert world.system.count() == 1
    (item,) = world.engines[0].escalations()
    world.checks["ci"].ask.answers = ["passed"]
    world.engines[0].resolve(item.escalation_id, "look_again", by="maya")
    (state,) = world.engines[0].recover(wait_seconds=60)
    assert state.run.status.value == "committed"
    assert world.system.count() == 2


def test_the_check_is_verified_again_at_each_release(build):
    """Rule 27: an old yes is no yes after something has changed."""
    world = checked(build, "passed", "not_passed")
    run = world.run(check="ci")
    run.call("shop.notify", ARGS, label="a", depends_on=[])
    run.call("shop.notify", ARGS, label="b", depends_on=[])
    run.finish()
    assert world.system.count() == 1
    assert run.outcome.status.value in {"committing", "needs_human"}


def test_items_leave_in_the_order_declared(build):
    """Rule 27: one after the other."""
    world = build(queued())
    with world.run() as run:
        for n in range(3):
            run.call("shop.notify", {"name": f"o-{n}"})
    assert [r.name for r in world.system.sent("shop.notify", "do")] == ["o-0", "o-1", "o-2"]


def test_trouble_stops_dependents(build):
    """Rule 27: what depends on an item in trouble is not sent; what does not, is."""
    world = build(queued())
    run = world.run()
    run.call("shop.notify", {"name": "first"}, depends_on=[])
    broken = run.call("shop.notify", {"name": "broken"}, depends_on=[])
    run.call("shop.notify", {"name": "after-broken"}, depends_on=[broken])
    run.call("shop.notify", {"name": "aside"}, depends_on=[])
    do = world.capabilities[0].do

    def refusing(call):
        if call.args["name"] == "broken":
            world.system.tell("shop.notify", "do", "refused")
        return do(call)

    world.capabilities[0].do = refusing
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert sorted(t.name for t in world.system.things.values()) == ["aside", "first"]


def test_an_agent_may_withdraw_a_queued_item(build):
    """Rule 27: it leaves the outbox unsent; the run commits without it if it is not required."""
    world = build(queued())
    with world.run() as run:
        result = run.call("shop.notify", ARGS, required=False)
        assert run.withdraw(result).status is ActionStatus.WITHDRAWN
        with pytest.raises(Conflict):
            run.withdraw(result)
    assert run.outcome.status.value == "committed"
    assert world.system.requests == []


# --- approvals of items ---------------------------------------------------------------------------------------


def awaiting(build, **changes):
    world = build(keyed(), prepared(**changes))
    world.system.values["o-1"] = "v1"
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.publish", ARGS)
    run.finish()
    assert run.outcome.status.value == "committing"
    return world, run, world.engines[0]


def test_an_item_on_approval_waits_for_its_very_own_yes(build):
    """Rules 27 and 30: asked with what it is; sent after the yes; consumed by the first intent."""
    world, _, engine = awaiting(build)
    assert world.system.count("shop.publish") == 0
    (asked,) = engine.approvals()
    assert (asked.phase, asked.shown["args"]) == ("release", ARGS | {"value": ""})
    engine.approve(asked.approval_id, by="noor", digest=asked.digest)
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committed"
    assert state.approvals[asked.approval_id].status == "consumed"
    assert world.system.count("shop.publish") == 1


def test_a_changed_content_voids_an_approval(build):
    """Rules 27 and 30: what was approved is not what would be sent; people are asked about what it is now."""
    world, _, engine = awaiting(build)
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.system.values["o-1"] = "v2"
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committing"
    assert state.approvals[asked.approval_id].status == "voided"
    assert world.system.count("shop.publish") == 0
    (again,) = engine.approvals()
    assert again.digest != asked.digest
    engine.approve(again.approval_id, by="noor")
    engine.recover(wait_seconds=5)
    assert world.system.count("shop.publish") == 1


def test_a_used_yes_is_asked_for_again_when_the_content_changed_before_the_second_send(build):
    """Rules 5 and 27: the first send came to nothing, and by the second there is something else to send."""
    world, _, engine = awaiting(build)
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.system.tell("shop.publish", "do", "nothing")
    engine.recover(wait_seconds=5)
    world.system.values["o-1"] = "v2"
    (state,) = engine.recover(wait_seconds=60)
    assert state.approvals[asked.approval_id].status == "voided"
    assert world.system.count("shop.publish") == 0
    (again,) = engine.approvals()
    engine.approve(again.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committed"
    assert world.system.count("shop.publish") == 1


def asked_again(build):
    """An item whose first send seemed to come to nothing, and about which people are asked a second time."""
    world, run, engine = awaiting(build)
    engine.approve(engine.approvals()[0].approval_id, by="noor")
    world.system.tell("shop.publish", "do", "lost")
    world.system.tell("shop.publish", "probe", *["absent"] * 5)
    engine.recover(wait_seconds=5)
    world.system.values["o-1"] = "v2"
    engine.recover(wait_seconds=60)
    (item,) = [a for a in run.state.forward_actions() if a.capability == "shop.publish"]
    assert (item.status, item.outcome) == (ActionStatus.AWAITING_APPROVAL, Outcome.FAILED)
    return world, run, engine, item


def test_late_proof_that_it_landed_is_heard_while_people_are_asked_again(build):
    """Rules 4 and 13: a yes would send it a second time; nobody is asked any more, and a look settles it."""
    world, run, engine, item = asked_again(build)
    engine.report(run.run_id, item.action_id, happened=True, source="webhook", reference="ref-000002")
    assert engine.approvals() == ()
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "committed"
    assert state.actions[item.action_id].outcome is Outcome.SUCCEEDED
    assert world.system.count("shop.publish") == 1
    assert len(world.system.sent("shop.publish", "do")) == 1


def test_late_proof_that_it_landed_is_heard_after_a_no_to_the_second_send(build):
    """Rules 4 and 13: withdrawn is only what does not exist."""
    world, run, engine, item = asked_again(build)
    engine.reject(engine.approvals()[0].approval_id, by="noor")
    engine.report(run.run_id, item.action_id, happened=True, source="webhook", reference="ref-000002")
    engine.recover(wait_seconds=60)
    told = [engine.state(row.run_id) for row in engine.runs()]
    outcomes = {a.outcome for each in told for a in each.forward_actions() if a.capability == "shop.publish"}
    assert Outcome.SUCCEEDED in outcomes
    assert world.system.count("shop.publish") == 1


def test_no_timer_ever_approves(build):
    """Rule 30: an expired question goes to a person; nothing was sent."""
    world, _, engine = awaiting(build, release=Release(mode="on_approval", approval_ttl_seconds=60.0))
    world.clock.advance(61)
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "needs_human"
    assert world.system.count("shop.publish") == 0
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "compensate", by="maya")
    engine.recover(wait_seconds=5)
    (again,) = engine.approvals()
    engine.approve(again.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committed"


def test_a_yes_that_has_expired_by_the_send_is_asked_for_again(build):
    """Rule 30: a yes lives as long as it says, whatever held the release up."""
    world, _, engine = awaiting(build, release=Release(mode="on_approval", approval_ttl_seconds=60.0))
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.clock.advance(61)
    engine.recover(wait_seconds=5)
    assert world.system.count("shop.publish") == 0
    (again,) = engine.approvals()
    assert again.approval_id != asked.approval_id


@pytest.mark.parametrize("rule", [DENY, needs_approval(3)])
def test_an_approved_item_is_decided_again_under_the_active_bundle(build, rule):
    """Rule 30: higher tier or deny → `needs_human(policy_changed)`; then a person of that tier may approve."""
    world, _, engine = awaiting(build)
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    world.authorizer.rules, world.authorizer.version = {"*.release": rule}, "fake@sha256:2"
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "needs_human"
    assert world.system.count("shop.publish") == 0
    (item,) = engine.escalations()
    assert item.cause == "policy_changed"
    if rule is DENY:
        return
    engine.resolve(item.escalation_id, "look_again", by="maya")
    engine.recover(wait_seconds=5)
    (again,) = engine.approvals()
    assert again.tier == 3
    engine.approve(again.approval_id, by="maya")
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committed"


def test_a_yes_is_reused_for_sending_the_same_item_again(build):
    """Rules 28 and 30: finally absent → the same key and the same approval, inside its time."""
    world, _, engine = awaiting(build)
    world.system.tell("shop.publish", "do", "nothing")
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=200)
    assert state.run.status.value == "committed"
    assert engine.approvals() == ()
    sent = world.system.sent("shop.publish", "do")
    assert (len(sent), len({r.key for r in sent})) == (2, 1)


def test_a_no_withdraws_the_item_and_what_depends_on_it(build):
    """Rule 27: the rest of the outbox goes its way."""
    world = build(queued(mode="on_approval"), queued("shop.ping"))
    run = world.run()
    item = run.call("shop.notify", ARGS, required=False, depends_on=[])
    run.call("shop.ping", {"name": "after"}, depends_on=[item], required=False)
    run.call("shop.ping", {"name": "aside"}, depends_on=[])
    run.finish()
    engine = world.engines[0]
    (asked,) = engine.approvals()
    engine.reject(asked.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=5)
    assert state.run.status.value == "committed"
    assert [t.name for t in world.system.things.values()] == ["aside"]


def test_no_and_roll_back_is_offered_only_before_the_pivot(build):
    """Rule 27: before it, everything is taken back; past it, only forward."""
    world, _, engine = awaiting(build)
    (asked,) = engine.approvals()
    engine.reject(asked.approval_id, by="noor", roll_back=True)
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0

    past = build(queued(), queued("shop.ask", mode="on_approval"))
    run = past.run()
    run.call("shop.notify", ARGS, depends_on=[])
    run.call("shop.ask", ARGS, depends_on=[])
    run.finish()
    (asked,) = past.engines[0].approvals()
    with pytest.raises(Conflict):
        past.engines[0].reject(asked.approval_id, by="noor", roll_back=True)


# --- the pivot ------------------------------------------------------------------------------------------------


def test_a_first_release_that_failed_is_no_pivot(build):
    """Rule 28: `committing → recovering` stays legal: nothing irreversible exists."""
    world = build(keyed(), queued())
    world.system.tell("shop.notify", "do", "refused")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_past_the_pivot_nothing_is_compensated(build):
    """Rule 28: a later failure is a person's; what the run did stays."""
    world = build(keyed(), queued(), queued("shop.ping"))
    world.system.tell("shop.ping", "do", "refused")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run.call("shop.ping", ARGS)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert world.system.sent("shop.reserve", "undo") == []
    assert (world.system.count("shop.reserve"), world.system.count("shop.notify")) == (1, 1)


def test_a_lost_answer_of_a_release_is_found_by_looking(build):
    """Rule 28: applied → succeeded; one effect, and the run commits."""
    world = build(queued())
    world.system.tell("shop.notify", "do", "lost")
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "committed"
    assert (world.system.count(), len(world.system.sent("shop.notify", "do"))) == (1, 1)


def test_an_inconclusive_release_is_parked_and_independent_ones_go_on(build):
    """Rule 28: that item waits for a person, and `committed` waits for it."""
    world = build(queued(), queued("shop.ping"))
    world.system.tell("shop.notify", "do", "nothing")
    world.system.tell("shop.notify", "probe", *["inconclusive"] * 9)
    run = world.run()
    run.call("shop.notify", ARGS, depends_on=[])
    run.call("shop.ping", ARGS, depends_on=[])
    run.finish(wait_seconds=200)
    assert run.outcome.status.value == "needs_human"
    assert world.system.count("shop.ping") == 1
    (item,) = world.engines[0].escalations()
    world.engines[0].resolve(item.escalation_id, "it_happened", by="maya", evidence="seen in their portal")
    (state,) = world.engines[0].recover(wait_seconds=5)
    assert state.run.status.value == "committed"


def test_a_release_whose_adapter_is_gone_waits_for_it(build):
    """Rules 21 and 28: nobody to send it → `adapter_unavailable`; it goes when the adapter is back."""
    world = build(queued(mode="on_approval"))
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish()
    (asked,) = world.engines[0].approvals()
    world.engines[0].approve(asked.approval_id, by="noor")
    without = world.engine("owner-2", capabilities=[])
    (state,) = without.recover(wait_seconds=5)
    (action,) = state.forward_actions()
    assert action.parked_cause.value == "adapter_unavailable"
    (state,) = world.engine("owner-3").recover(wait_seconds=5)
    assert state.run.status.value == "committed"


def test_a_busy_provider_gets_the_same_item_again(build):
    """Rule 28: refused for now → the same key, later, within its attempts."""
    world = build(queued(limits=Limits(max_attempts=3)))
    world.system.tell("shop.notify", "do", "busy")
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "committed"
    assert len({r.key for r in world.system.sent("shop.notify", "do")}) == 1


def test_a_call_whose_queueing_would_need_a_person_is_denied(build):
    """Rule 26: queueing sends nothing, so approval belongs to the release; such a policy is told, not guessed at."""
    world = build(queued())
    world.authorizer.rules = {"shop.notify": needs_approval(1)}
    with world.run() as run:
        assert run.call("shop.notify", ARGS, required=False).status is ActionStatus.DENIED
    assert world.system.requests == []


def test_two_people_where_policy_wants_two(build):
    """Rule 30: one yes of two is no yes; nobody counts twice."""
    _, _, engine = awaiting(build)
    (asked,) = engine.approvals()
    assert asked.people == 1
    two = build(queued(mode="on_approval"))
    decide = two.authorizer.decide
    rules = {"*.release": needs_approval(1)}
    two.authorizer.rules = rules
    two.authorizer.decide = lambda request: decide(request).model_copy(update={"approvers": 2})
    run = two.run()
    run.call("shop.notify", ARGS)
    run.finish()
    (asked,) = two.engines[0].approvals()
    two.engines[0].approve(asked.approval_id, by="noor")
    with pytest.raises(Conflict):
        two.engines[0].approve(asked.approval_id, by="noor")
    two.engines[0].recover(wait_seconds=5)
    assert two.system.count() == 0
    two.engines[0].approve(asked.approval_id, by="maya")
    (state,) = two.engines[0].recover(wait_seconds=5)
    assert state.run.status.value == "committed"
