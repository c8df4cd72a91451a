"""The end of a run, what becomes known after it, and successes that are not final (rules 7, 25 and 33)."""

import threading

import pytest

from amends.core.contract import Limits, ProbeRule
from amends.core.public import PublicState, of_run
from amends.core.status import ActionStatus, Outcome
from amends.runtime import runs
from amends.testing.worlds import gate, keyed, queued

ARGS = {"name": "o-1"}


def follow_ups(engine, run):
    return [engine.state(r.run_id) for r in engine.runs() if r.caused_by == run.run_id]


def committed(build, *makes):
    world = build(*(makes or (keyed(),)))
    with world.run() as run:
        result = run.call("shop.reserve", ARGS)
    assert run.outcome.status.value == "committed"
    return world, run, world.engines[0], result.action_id


def test_a_revoked_success_opens_a_follow_up_run(build):
    """Rule 25: the committed run stays as it is; a person decides about what became known."""
    world, run, engine, action_id = committed(build)
    before = engine.state(run.run_id)
    engine.report(run.run_id, action_id, happened=False, source="webhook", detail="cancelled by the partner")
    assert engine.state(run.run_id) == before
    (later,) = follow_ups(engine, run)
    assert later.run.status.value == "needs_human"
    (action,) = later.forward_actions()
    assert action.outcome is Outcome.FAILED  # it does not claim that it still exists
    (item,) = engine.escalations()
    assert "revoked" in item.in_doubt
    engine.resolve(item.escalation_id, "accept_as_is", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.sent("shop.reserve", "undo") == []


def test_a_late_landing_opens_a_follow_up_run(build):
    """Rule 25: what recovery had proven absent exists after all: told to a person, who may have it taken back."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "recovered"
    from amends.testing.scripted import Thing

    world.system.things["late"] = Thing("late", "shop.reserve", "o-1", result.action_id, "")
    engine = world.engines[0]
    engine.report(run.run_id, result.action_id, happened=True, source="webhook", reference="late")
    (later,) = follow_ups(engine, run)
    assert world.system.count() == 1  # nothing is undone by itself
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "compensate", by="maya")
    engine.recover(wait_seconds=60)
    assert engine.state(later.run.run_id).run.status.value == "recovered"
    assert world.system.count() == 0


def test_the_same_fact_told_twice_opens_one_follow_up(build):
    """Rules 16 and 25: call-backs come more than once."""
    _, run, engine, action_id = committed(build)
    for _ in range(3):
        engine.report(run.run_id, action_id, happened=False, source="webhook")
    assert len(follow_ups(engine, run)) == 1
    assert len(engine.escalations()) == 1


def test_what_is_known_already_opens_nothing(build):
    """Rule 25: a confirmation is no news."""
    _, run, engine, action_id = committed(build)
    before = engine.kit.journal.info().max_seq
    engine.report(run.run_id, action_id, happened=True, source="webhook")
    assert engine.kit.journal.info().max_seq == before


def test_a_thread_that_returns_after_the_end_changes_no_terminal_run(build, monkeypatch):
    """Rules 3 and 25: the call was proven absent and the run recovered; its thread then says that it landed."""
    monkeypatch.setattr(runs, "CALL_SPARE_SECONDS", 0.0)
    world = build(keyed(limits=Limits(timeout_seconds=0.2)))
    held = world.system.hold("shop.reserve", "do")
    landed = threading.Event()

    def land(call):
        from amends.spi.capability import Done

        world.system.arrive("shop.reserve", "do", call)
        thing = world.system.make("shop.reserve", call)
        return Done(effect={"id": thing.reference}, reference=thing.reference)

    world.capabilities[0].do = land
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    assert result.status is ActionStatus.UNKNOWN
    flight = run._parts.sending.in_flight(result.action_id)
    flight.add_done_callback(lambda _: landed.set())
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "recovered"
    held.go()
    assert landed.wait(10)
    assert flight.exception() is None
    engine = world.engines[0]
    assert engine.state(run.run_id).run.status.value == "recovered"
    assert engine.state(run.run_id).actions[result.action_id].outcome is Outcome.FAILED
    (later,) = follow_ups(engine, run)
    assert later.forward_actions()[0].outcome is Outcome.SUCCEEDED
    assert world.system.count() == 1


def returns_after_the_end(build, monkeypatch, answer):
    """A run whose call was given up and proven absent; its thread answers after the end."""
    monkeypatch.setattr(runs, "CALL_SPARE_SECONDS", 0.0)
    world = build(keyed(limits=Limits(timeout_seconds=0.2)))
    held = world.system.hold("shop.reserve", "do")
    landed = threading.Event()

    def land(call):
        world.system.arrive("shop.reserve", "do", call)
        world.clock.advance(1)
        return answer(world, call)

    world.capabilities[0].do = land
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    flight = run._parts.sending.in_flight(result.action_id)
    flight.add_done_callback(lambda _: landed.set())
    run.fail("stop", wait_seconds=200)
    assert run.outcome.status.value == "recovered"
    held.go()
    assert landed.wait(10)
    return world, run, flight


def test_an_answer_lost_after_the_end_is_a_persons_to_look_into(build, monkeypatch):
    """Rules 3 and 25: who woke up after the end may have sent, and knows no more: nobody else would ever notice."""

    def lost(world, call):
        world.system.make("shop.reserve", call)
        raise ConnectionResetError

    world, run, flight = returns_after_the_end(build, monkeypatch, lost)
    assert flight.exception() is None
    engine = world.engines[0]
    (later,) = follow_ups(engine, run)
    (action,) = later.forward_actions()
    assert (later.run.status.value, action.outcome) == ("needs_human", Outcome.UNKNOWN)
    (item,) = engine.escalations()
    assert "may have landed after the end" in item.in_doubt
    (there,) = world.system.things
    engine.resolve(item.escalation_id, "it_happened", by="maya", evidence="the partner's list", reference=there)
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


def test_a_refusal_after_the_end_is_no_news(build, monkeypatch):
    """Rule 25: nothing landed, and nobody said that it had."""
    from amends.spi import Refused

    def refused(world, call):
        raise Refused("sold out", code="sold_out")

    world, run, _ = returns_after_the_end(build, monkeypatch, refused)
    assert follow_ups(world.engines[0], run) == []


def test_a_second_reference_of_what_stands_is_a_twin(build):
    """Rules 7 and 25: what was committed exists once more, under another reference."""
    _, run, engine, action_id = committed(build)
    engine.report(run.run_id, action_id, happened=True, source="webhook", reference="another")
    (later,) = follow_ups(engine, run)
    (action,) = later.forward_actions()
    assert (action.outcome, action.reference) == (Outcome.SUCCEEDED, "another")
    (item,) = engine.escalations()
    assert "exists twice" in item.in_doubt


# --- provisional ------------------------------------------------------------------------------------------------

ODD = ProbeRule(
    strength="list", schedule_seconds=(0.0, 1.0, 4.0), deadline_seconds=15.0, absent_final_after_seconds=10.0
)


def provisional(build, **changes):
    world = build(keyed(provisional_for_seconds=3600.0, probe=ODD, **changes), queued())
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    run.call("shop.notify", ARGS)
    return world, run, result


def test_a_provisional_success_is_looked_at_again_before_anything_rests_on_it(build):
    """Rule 7: it stands, so the run goes on."""
    world, run, _ = provisional(build)
    run.finish(wait_seconds=30)
    assert run.outcome.status.value == "committed"
    assert [verb for verb, _ in world.system.sequence()] == ["do", "probe", "do"]


def test_a_revoked_provisional_success_turns_the_run_back(build):
    """Rule 7: the provider took it back; nothing is released on the strength of the old answer."""
    world, run, result = provisional(build)
    world.system.remove(result.reference)
    world.clock.advance(20)
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
    assert world.system.sent("shop.notify", "do") == []
    assert run.state.actions[result.action_id].compensated_how == "already_gone"


def test_a_provisional_success_that_is_not_visible_yet_is_waited_for(build):
    """Rules 4 and 7: a fresh effect may be seen late; absence counts only once it is final."""
    world, run, _ = provisional(build)
    world.system.tell("shop.reserve", "probe", "absent")
    run.finish(wait_seconds=60)
    assert run.outcome.status.value == "committed"
    assert len(world.system.sent("shop.reserve", "probe")) == 2


def test_a_provisional_success_that_cannot_be_read_releases_nothing(build):
    """Rules 7 and 27: inconclusive looks are bounded; the run goes back and a person is told."""
    world, run, _ = provisional(build)
    world.system.tell("shop.reserve", "probe", *["inconclusive"] * 9)
    run.finish(wait_seconds=60)
    assert world.system.sent("shop.notify", "do") == []
    assert run.outcome.status.value == "needs_human"


def test_past_its_window_a_success_is_final(build):
    """Rule 7: nobody looks for longer than the contract says."""
    world, run, _ = provisional(build)
    world.clock.advance(3601)
    run.finish()
    assert run.outcome.status.value == "committed"
    assert world.system.sent("shop.reserve", "probe") == []


# --- what people are told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "told"),
    [(None, PublicState.RECOVERED), ("nothing", PublicState.PROCESSING_SAFELY), ("refused", PublicState.RECOVERED)],
)
def test_what_is_told_never_claims_more_than_the_evidence(build, fault, told):
    """Rule 33: an unknown is never called recovered."""
    world = build(keyed())
    if fault:
        world.system.tell("shop.reserve", "do", fault)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop")
    assert of_run(run.state) is told
    assert (run.outcome.status.value == "recovered") == (told is PublicState.RECOVERED)


def test_a_run_that_never_sent_anything_failed_before_effect(build):
    """Rule 33: the best thing that can be said of a failure."""
    world = build(queued())
    run = world.run()
    run.call("shop.notify", ARGS)
    run.fail("stop")
    assert of_run(run.state) is PublicState.FAILED_BEFORE_EFFECT
    assert run.outcome.message == "It failed before anything took effect. Nothing was left behind."


@pytest.mark.parametrize("fault", ["lost", "nothing", "not_sent", "refused", "busy", None])
def test_nothing_ever_invites_a_blind_retry_or_quotes_a_payload(build, fault):
    """Rule 33: uncertainty, safety guarantee, next step; no arguments."""
    world = build(keyed(), gate())
    if fault:
        world.system.tell("shop.reserve", "do", fault)
    run = world.run()
    name = "a-very-private-name"
    told = [
        run.call("shop.reserve", {"name": name}).message,
        run.gate("shop.buy", {"name": name}).message,
        run.call("shop.reserve", {"name": name, "value": "other"}).message,
    ]
    run.fail("stop", wait_seconds=200)
    for sentence in (*told, run.outcome.message):
        assert name not in sentence
        for invitation in ("try again", "retry", "resend", "send it again"):
            assert invitation not in sentence.lower()
