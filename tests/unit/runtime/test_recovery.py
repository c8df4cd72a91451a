"""Recovery: look, undo, look again, in an order that no dependency contradicts (rules 17 to 21 and 23)."""

import pytest

from amends.core.contract import Alternative, ProbeRule, Retry
from amends.core.status import ActionKind, ActionStatus, Outcome
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import blind, keyed, probeable, queued, setting

ARGS = {"name": "o-1"}


def undos(state):
    return [a for a in state.actions.values() if a.kind is ActionKind.UNDO]


def failed(world, *names, capability="shop.reserve", wait_seconds=120.0):
    """A run that made these and then stopped."""
    run = world.run()
    for name in names:
        run.call(capability, {"name": name})
    run.fail("stop", wait_seconds=wait_seconds)
    return run


# --- unknown ------------------------------------------------------------------------------------------------


def test_unknown_first_reconciles_and_what_is_found_is_taken_back(build):
    """Rule 17: the probe is recorded before it is sent; then the undo, on evidence of presence."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "lost")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
    kinds = [s.event.kind for s in world.journal.events(run.run_id)]
    assert kinds.index("probe_sent") < kinds.index("probe_answered") < kinds.index("compensation_started")


def test_what_provably_never_landed_gets_no_blind_inverse(build):
    """Rule 17: no undo without evidence of presence."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert world.system.sent("shop.reserve", "undo") == []


@pytest.mark.parametrize("answer", ["inconclusive", "broken"])
def test_no_proof_by_the_deadline_goes_to_a_person(build, answer):
    """Rule 17: bounded by schedule and deadline; then `needs_human`, and nothing was undone blindly."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    world.system.tell("shop.reserve", "probe", *[answer] * 20)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    assert 3 <= len(world.system.sent("shop.reserve", "probe")) <= 6
    assert world.system.sent("shop.reserve", "undo") == []
    assert [i.cause for i in world.engines[0].escalations()] == ["unknown"]


def test_a_blind_unknown_goes_to_a_person_at_once(build):
    """Rule 17: what cannot be found for sure is not looked for in vain."""
    world = build(blind())
    world.system.tell("shop.shout", "do", "lost")
    run = failed(world, "o-1", capability="shop.shout")
    assert run.outcome.status.value == "needs_human"


def test_an_inverse_harmless_when_absent_may_be_sent_for_an_unknown(build):
    """Rule 17: only where `safe_when` names unknown and the inverse is harmless when absent."""
    harmless = Alternative(
        name="cancel",
        safe_when=(Outcome.SUCCEEDED, Outcome.UNKNOWN),
        harmless_when_absent=True,
        input_from="forward_input",
    )
    world = build(keyed(compensation=(harmless,)))
    world.system.tell("shop.reserve", "do", "lost")
    world.system.tell("shop.reserve", "probe", *["inconclusive"] * 5)
    run = failed(world, "o-1")
    assert len(world.system.sent("shop.reserve", "undo")) == 1
    assert world.system.count() == 0
    assert run.outcome.status.value == "recovered"


def test_failed_in_safe_when_means_partial_residue(build):
    """Rule 17: a refused call whose parts may remain is looked at, and taken back if it is there."""
    residue = Alternative(name="cancel", safe_when=(Outcome.SUCCEEDED, Outcome.FAILED), input_from="forward_input")
    world = build(keyed(compensation=(residue,), partial_inverse=True))
    run = world.run()
    world.system.tell("shop.reserve", "do", "refused")
    result = run.call("shop.reserve", ARGS)
    from amends.testing.scripted import Thing

    world.system.things["left"] = Thing("left", "shop.reserve", "o-1", result.action_id, "")
    run.fail("stop", wait_seconds=120)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_recovery_never_sends_forward(build):
    """Rule 17: whatever happened, recovery makes no forward call."""
    world = build(keyed(), probeable(), queued())
    world.system.tell("shop.reserve", "do", "not_sent")
    world.system.tell("shop.list", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.list", ARGS)
    run.call("shop.notify", ARGS)
    before = len([r for r in world.system.requests if r.verb == "do"])
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "recovered"
    assert len([r for r in world.system.requests if r.verb == "do"]) == before


# --- verification -------------------------------------------------------------------------------------------


def test_compensated_only_after_a_separate_read(build):
    """Rule 18: the last request of a compensation is a read."""
    world = build(keyed())
    run = failed(world, "o-1")
    assert [verb for verb, _ in world.system.sequence()] == ["do", "probe", "undo", "probe"]
    (action,) = run.state.forward_actions()
    assert (action.status, action.compensated_how) == (ActionStatus.COMPENSATED, "undone")


def test_already_gone_before_we_acted_is_compensated_by_looking(build):
    """Rule 18: no undo is sent, and it is no error."""
    world = build(keyed())
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    world.system.remove(result.reference)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert run.state.actions[result.action_id].compensated_how == "already_gone"
    assert world.system.sent("shop.reserve", "undo") == []


def test_a_lying_undo_is_found_out_and_sent_again(build):
    """Rules 18 and 19: still applied is not compensated; re-sent only after the settle time, with a key of its own."""
    retry = Retry(attempts=3, settle_seconds=5.0)
    world = build(keyed(compensation=(Alternative(name="cancel", retry=retry),)))
    world.system.tell("shop.reserve", "undo", "lie")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
    (first, second) = world.system.sent("shop.reserve", "undo")
    assert first.key != second.key
    (undo,) = undos(run.state)
    times = [s.event.ts_us for s in world.journal.events(run.run_id) if s.event.kind == "intent_recorded"]
    assert undo.attempt == 2
    assert times[-1] - times[-2] >= 5_000_000


def test_an_undo_that_lies_for_ever_goes_to_a_person(build):
    """Rule 19: attempts are bounded; exhausted → `needs_human`, never `recovered`."""
    world = build(keyed(compensation=(Alternative(name="cancel", retry=Retry(attempts=3)),)))
    world.system.tell("shop.reserve", "undo", *["lie"] * 10)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    assert len(world.system.sent("shop.reserve", "undo")) == 3
    assert world.system.count() == 1


def test_an_inconclusive_verification_is_not_compensated(build):
    """Rule 18: it is looked at again, bounded, and then a person decides."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.system.tell("shop.reserve", "probe", "applied", *["inconclusive"] * 20)
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "needs_human"
    (action,) = run.state.forward_actions()
    assert (action.status, action.parked_cause.value) == (ActionStatus.NEEDS_HUMAN, "undo_failed")


def test_a_lost_answer_to_an_undo_is_settled_by_looking(build):
    """Rule 19: the undo's own unknown: looked at, not sent again blindly; looked at once more for a late landing."""
    world = build(keyed())
    world.system.tell("shop.reserve", "undo", "lost")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert len(world.system.sent("shop.reserve", "undo")) == 1
    assert "late_check_done" in [s.event.kind for s in world.journal.events(run.run_id)]


def test_an_effect_that_lands_late_is_taken_back_again(build):
    """Rule 18: a verified undo is probed once more at call deadline + settle."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "lost")
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    run.fail("stop")
    assert run.outcome.status.value == "recovering"  # undone and verified, and due for a second look
    assert world.system.count() == 0
    from amends.testing.scripted import Thing

    (reference,) = {a.reference for a in run.state.forward_actions()}
    world.system.things[reference] = Thing(reference, "shop.reserve", "o-1", result.action_id, "")
    (state,) = world.engines[0].recover(run.run_id, wait_seconds=200)
    assert state.run.status.value == "recovered"
    assert world.system.sent("shop.reserve", "undo")[-1].marker == result.action_id


def test_a_diverged_state_is_overwritten_by_nobody(build):
    """Rule 18: neither before nor after: somebody changed it since, and a person decides."""
    world = build(setting())
    run = world.run()
    run.call("flags.set", {"name": "f", "value": "on"})
    world.system.values["f"] = "somebody's"
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert world.system.values["f"] == "somebody's"
    assert [i.cause for i in world.engines[0].escalations()] == ["diverged"]


def test_before_equal_to_after_means_nothing_to_undo(build):
    """DESIGN section 1: a set that changed nothing is compensated by looking."""
    world = build(setting())
    world.system.values["f"] = "on"
    run = world.run()
    run.call("flags.set", {"name": "f", "value": "on"})
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.sent("flags.set", "undo") == []
    assert world.system.values["f"] == "on"


# --- undo actions -------------------------------------------------------------------------------------------


def test_an_undo_is_an_action_with_its_own_intent_decision_and_key(build):
    """Rule 19: kind, of, rung, intent first, own policy decision; the forward action is compensating meanwhile."""
    world = build(keyed())
    run = failed(world, "o-1")
    (forward,) = run.state.forward_actions()
    (undo,) = undos(run.state)
    assert (undo.of, undo.rung, undo.attempt) == (forward.action_id, "cancel", 1)
    assert undo.idempotency_key not in {"", forward.idempotency_key}
    assert undo.decided.action == "shop.reserve.undo"
    assert forward.decided.action in {"shop.reserve", "shop.reserve.probe"}
    assert forward.undo == ""


def test_a_tool_that_is_down_keeps_the_action_compensating_under_its_own_retry_policy(build):
    """Rule 19: provably not sent → the same undo again after the back-off; then it works."""
    world = build(keyed(compensation=(Alternative(name="cancel", retry=Retry(attempts=5, backoff_seconds=3.0)),)))
    world.system.tell("shop.reserve", "undo", "not_sent", "not_sent")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop")
    (action,) = run.state.forward_actions()
    assert (action.status, run.outcome.status.value) == (ActionStatus.COMPENSATING, "recovering")
    assert run.state.run.due_us == world.clock.now_us() + 3_000_000
    world.engines[0].recover(run.run_id, wait_seconds=60)
    assert run.state.run.status.value == "recovered"
    assert len({r.key for r in world.system.sent("shop.reserve", "undo")}) == 1


def test_retries_that_are_exhausted_go_to_a_person(build):
    """Rule 19: exhausted → `needs_human(undo_failed)`."""
    world = build(keyed(compensation=(Alternative(name="cancel", retry=Retry(attempts=2)),)))
    world.system.tell("shop.reserve", "undo", *["not_sent"] * 9)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    assert len(world.system.sent("shop.reserve", "undo")) == 2
    (action,) = run.state.forward_actions()
    assert action.parked_cause.value == "undo_failed"


def test_a_system_that_can_neither_be_read_nor_changed_does_not_spin(build):
    """Rule 19: while everything is down, looks are bounded and spaced; then a person is told."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.system.tell("shop.reserve", "undo", *["not_sent"] * 50)
    world.system.tell("shop.reserve", "probe", "applied", *["inconclusive"] * 500)
    run.fail("stop", wait_seconds=600)
    assert run.outcome.status.value == "needs_human"
    assert len(world.system.requests) < 20


def test_alternatives_are_tried_by_probed_state(build):
    """Rule 19: the first rung whose `when` fits what the system shows now."""
    ladder = (
        Alternative(name="void", when={"state": ("authorized",)}),
        Alternative(name="refund", when={"state": ("settled",)}),
        Alternative(name="review", undo="escalate"),
    )
    world = build(keyed(compensation=ladder))
    run = world.run()
    first = run.call("shop.reserve", {"name": "o-1"}, depends_on=[])
    second = run.call("shop.reserve", {"name": "o-2"}, depends_on=[])
    third = run.call("shop.reserve", {"name": "o-3"}, depends_on=[])
    world.system.things[second.reference].state["state"] = "settled"
    world.system.things[third.reference].state["state"] = "disputed"
    run.fail("stop", wait_seconds=60)
    sent = {r.marker: r.rung for r in world.system.sent("shop.reserve", "undo")}
    assert sent == {first.action_id: "void", second.action_id: "refund"}
    parked = run.state.actions[third.action_id]
    assert (parked.status, parked.parked_cause.value) == (ActionStatus.NEEDS_HUMAN, "unregistered")


def test_a_refused_rung_is_followed_by_the_next(build):
    """Rule 19: a rung that the provider refuses is tried once; the next one is tried by what is seen then."""
    world = build(keyed(compensation=(Alternative(name="void"), Alternative(name="refund"))))
    world.system.tell("shop.reserve", "undo", "refused")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert [r.rung for r in world.system.sent("shop.reserve", "undo")] == ["void", "refund"]


def test_the_last_rung_may_let_it_stand(build):
    """Rule 19: `correct` as last rung: it stays, is accepted by contract, and is no obstacle to `recovered`."""
    world = build(keyed(compensation=(Alternative(name="void"), Alternative(name="tell", undo="correct"))))
    world.system.tell("shop.reserve", "undo", "refused")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    (action,) = run.state.forward_actions()
    assert (action.accepted_by, world.system.count()) == ("contract:tell", 1)


def test_a_rung_may_be_another_capability(build):
    """Rule 19: the inverse is sent as the undo action it is, with its input from the ledger."""
    rung = Alternative(name="settle", undo="shop.credit", input_from="forward_input", required_fields=("name",))
    world = build(keyed(compensation=(rung,)), keyed("shop.credit"))
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    made = world.capabilities[1].do

    def credit(call):
        world.system.remove(result.reference)
        return made(call)

    world.capabilities[1].do = credit
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    (sent,) = world.system.sent("shop.credit", "do")
    assert (sent.name, sent.marker) == ("o-1", undos(run.state)[0].action_id)


def test_an_expired_window_goes_to_a_person(build):
    """DESIGN section 4: past `expires_after` nothing is sent."""
    world = build(keyed(compensation=(Alternative(name="cancel", expires_after_seconds=60.0),)))
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.clock.advance(61)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert world.system.sent("shop.reserve", "undo") == []


# --- policy -------------------------------------------------------------------------------------------------


def test_an_undo_that_policy_denies_is_parked_with_both_versions(build):
    """Rules 21 and 22: the decision names the bundle then and now; nothing is sent."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.authorizer.rules, world.authorizer.version = {"*.undo": DENY}, "fake@sha256:2"
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    (item,) = world.engines[0].escalations()
    assert item.cause == "policy_changed"
    assert "fake@sha256:1" in item.in_doubt
    assert "fake@sha256:2" in item.in_doubt
    assert world.system.sent("shop.reserve", "undo") == []


def test_a_denied_undo_reopens_under_a_new_bundle(build):
    """Rule 22: parked by policy, reopened by policy."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.authorizer.rules, world.authorizer.version = {"*.undo": DENY}, "fake@sha256:2"
    run.fail("stop", wait_seconds=60)
    assert world.engines[0].recover(wait_seconds=60) == []
    world.authorizer.rules, world.authorizer.version = {}, "fake@sha256:3"
    (state,) = world.engines[0].recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.engines[0].escalations() == ()


def test_a_retry_that_policy_denies_by_now_is_parked_and_not_a_defect(build):
    """Rules 19 and 30: every send of an undo is decided anew."""
    world = build(keyed())
    world.system.tell("shop.reserve", "undo", "not_sent")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop")
    world.authorizer.rules, world.authorizer.version = {"*.undo": DENY}, "fake@sha256:2"
    (state,) = world.engines[0].recover(run.run_id, wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert len(world.system.sent("shop.reserve", "undo")) == 1


def test_an_undo_under_its_own_approval(build):
    """Rules 19 and 30: people are asked with evidence; their yes lets exactly this undo go, once."""
    world = build(keyed())
    world.authorizer.rules = {"*.undo": needs_approval(2)}
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    assert world.system.count() == 1
    (asked,) = world.engines[0].approvals()
    assert (asked.phase, asked.tier) == ("undo", 2)
    world.engines[0].approve(asked.approval_id, by="noor")
    (state,) = world.engines[0].recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0
    assert world.engines[0].escalations() == ()


def test_choosing_to_compensate_while_a_question_is_open_denies_nothing(build):
    """Rules 19 and 30: the question stays open; nothing is sent before its yes."""
    world = build(keyed())
    world.authorizer.rules = {"*.undo": needs_approval(2)}
    failed(world, "o-1")
    engine = world.engines[0]
    (asked,) = engine.approvals()
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "compensate", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert world.system.sent("shop.reserve", "undo") == []
    (still,) = engine.approvals()
    assert still.approval_id == asked.approval_id
    engine.approve(asked.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"


def test_an_approved_undo_whose_state_has_moved_on_takes_the_rung_that_fits_now(build):
    """Rule 19: approved as a void, settled meanwhile: the void is not sent, the refund is asked for."""
    ladder = (
        Alternative(name="void", when={"state": ("authorized",)}),
        Alternative(name="refund", when={"state": ("settled",)}),
    )
    world = build(keyed(compensation=ladder))
    world.authorizer.rules = {"*.undo": needs_approval(1)}
    run = world.run()
    made = run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    engine = world.engines[0]
    (asked,) = engine.approvals()
    world.system.things[made.reference].state["state"] = "settled"
    engine.approve(asked.approval_id, by="noor")
    engine.recover(wait_seconds=60)
    assert world.system.sent("shop.reserve", "undo") == []
    (again,) = engine.approvals()
    engine.approve(again.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert [r.rung for r in world.system.sent("shop.reserve", "undo")] == ["refund"]


def test_the_service_asks_for_everything_but_the_forward_call(build):
    """Rule 21: probe and undo are the Service's, never the agent's."""
    world = build(keyed())
    failed(world, "o-1")
    who = {(r.phase, r.principal.type) for r in world.authorizer.requests}
    assert who == {("forward", "Agent"), ("probe", "Service"), ("undo", "Service")}


def test_a_missing_adapter_goes_to_a_person_and_reopens_when_it_is_back(build):
    """Rules 21 and 22: the stored contract decides; nobody to carry it out → `adapter_unavailable`."""
    world = build(keyed(), keyed("shop.pay"))
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.pay", ARGS)
    world.die()
    without = world.engine("owner-2", capabilities=world.capabilities[1:])
    (state,) = without.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    assert {a.capability: a.status.value for a in state.forward_actions()} == {
        "shop.reserve": "needs_human",
        "shop.pay": "compensated",
    }
    whole = world.engine("owner-3")
    (state,) = whole.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"


def test_a_changed_contract_is_not_accepted_silently(build):
    """Rule 21: the inverse that was registered is the one that is authorized; another one needs a person."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.die()
    changed = keyed(compensation=(Alternative(name="void"),))(world.system)
    (state,) = world.engine("owner-2", capabilities=[changed]).recover(wait_seconds=60)
    (action,) = state.forward_actions()
    assert action.parked_cause.value == "adapter_unavailable"
    assert world.system.count() == 1


def test_a_denied_look_is_parked_with_an_item_for_a_person(build):
    """Rules 17 and 34: a probe is authorized; if it is not, somebody is told and can decide."""
    world = build(keyed())
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.authorizer.rules = {"*.probe": DENY}
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert [i.cause for i in world.engines[0].escalations()] == ["denied"]
    assert world.system.sent("shop.reserve", "probe") == []


# --- order --------------------------------------------------------------------------------------------------


def order(world):
    return [r.name for r in world.system.requests if r.verb == "undo"]


def test_with_nothing_declared_the_order_is_the_reverse(build):
    """Rule 20: after every action whose outcome was recorded before this intent."""
    world = build(keyed())
    failed(world, "o-1", "o-2", "o-3")
    assert order(world) == ["o-3", "o-2", "o-1"]


def test_an_output_used_as_input_is_a_dependency(build):
    """Rule 20: where timestamps would be wrong, the data says who depends on whom."""
    world = build(keyed(), keyed("shop.pay"))
    run = world.run()
    first = run.call("shop.reserve", {"name": "o-1"}, depends_on=[])
    run.call("shop.pay", {"name": first.output["id"]}, depends_on=[])
    world.system.tell("shop.pay", "undo", "not_sent")
    run.fail("stop")
    assert order(world) == [first.output["id"]]  # the reservation waits for the payment
    world.engines[0].recover(run.run_id, wait_seconds=60)
    assert order(world)[-1] == "o-1"


def test_a_parked_action_blocks_only_what_it_may_depend_on(build):
    """Rule 20: an independent branch is taken back although the other one waits for a person."""
    world = build(keyed(), keyed("shop.pay"))
    run = world.run()
    base = run.call("shop.reserve", {"name": "base"}, depends_on=[])
    run.call("shop.reserve", {"name": "aside"}, depends_on=[])
    run.call("shop.pay", {"name": "on-base"}, depends_on=[base])
    world.system.tell("shop.pay", "undo", *["refused"] * 3)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    assert "aside" in order(world)
    assert "base" not in order(world)
    assert sorted(t.name for t in world.system.things.values()) == ["base", "on-base"]


# --- fixpoint -----------------------------------------------------------------------------------------------


def test_recovering_a_recovered_run_does_nothing(build):
    """Rule 23: a fixpoint stays one."""
    world = build(keyed())
    run = failed(world, "o-1")
    before = (world.journal.info().max_seq, len(world.system.requests))
    world.engines[0].recover(run.run_id)
    world.engines[0].recover()
    assert (world.journal.info().max_seq, len(world.system.requests)) == before


def test_a_run_that_died_open_recovers_backwards_even_if_all_succeeded(build):
    """Rule 23: nobody said that it was done."""
    world = build(keyed())
    world.run().call("shop.reserve", ARGS)
    world.die()
    (state,) = world.engine("owner-2").recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


def test_a_run_that_died_committing_goes_forward(build):
    """Rule 23: it had finished; what was queued is released by whoever takes over."""
    world = build(keyed(), queued())
    world.engine("owner-1")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    run._lifecycle._leave_open(run.run_id, _committing(), "the agent finished", run._session.epoch)
    world.die()
    (state,) = world.engine("owner-2").recover(wait_seconds=60)
    assert state.run.status.value == "committed"
    assert (world.system.count("shop.reserve"), world.system.count("shop.notify")) == (1, 1)


def _committing():
    from amends.core.status import RunStatus

    return RunStatus.COMMITTING


def test_waiting_stays_recovering_with_a_due_time(build):
    """Rule 23: nothing due now, something due later: not settled, not a person's."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = failed(world, "o-1", wait_seconds=0)
    assert run.outcome.status.value == "recovering"
    assert run.state.run.due_us > world.clock.now_us()
    states = world.engines[0].recover()  # nothing is due, so nothing is done
    assert states == []


def test_many_dead_runs_are_each_recovered_once_by_two_recoverers(build):
    """Rules 12 and 23: both take what they get; every compensation happens once."""
    from concurrent.futures import ThreadPoolExecutor

    world = build(keyed())
    world.engine("owner-1")
    for n in range(20):
        world.run(str(n)).call("shop.reserve", {"name": f"o-{n}"})
    world.die()
    engines = [world.engine("owner-2"), world.engine("owner-3")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda engine: engine.recover(wait_seconds=30), engines))
    assert {r.status.value for r in engines[0].runs()} == {"recovered"}
    assert len(world.system.sent("shop.reserve", "undo")) == 20
    assert world.system.count() == 0


def test_a_search_that_finds_is_authoritative_for_presence_only(build):
    """Rule 4: what was found exists, whatever the strength of the search."""
    world = build(keyed(probe=ProbeRule(strength="search", schedule_seconds=(0.0, 1.0), deadline_seconds=5.0)))
    world.system.tell("shop.reserve", "do", "lost")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
