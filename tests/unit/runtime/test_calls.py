"""Calls: intent before effect, and what an answer proves (rules 1 to 4 and 8)."""

import pytest

from amends.core.contract import Limits
from amends.core.errors import InvalidInput, JournalUnavailable, SystemUnavailable
from amends.core.status import ActionStatus, Outcome, RunStatus
from amends.runtime.book import GivenUp
from amends.runtime.resolving import Request
from amends.testing.worlds import keyed, prepared, setting

ARGS = {"name": "o-1"}


def actions(state):
    return [(a.capability, a.status.value, a.outcome.value) for a in state.actions.values()]


def kinds(world, run_id):
    return [stored.event.kind for stored in world.journal.events(run_id)]


def test_the_intent_and_its_decision_are_durable_in_one_commit_before_the_call(build):
    """Rule 1: what is registered, decided and intended stands in the ledger, together, before anything is sent."""
    world = build(keyed())
    seen = []

    class Watching:
        def reached(self, milestone, run_id, action_id):
            if milestone == "before_call":
                seen.append(world.journal.info().max_seq)

    commits = []
    commit = world.journal.commit
    world.journal.commit = lambda command: (commits.append([e.kind for e in command.events]), commit(command))[1]
    world.engine(progress=Watching())
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        assert ["action_planned", "decision_recorded", "intent_recorded"] in commits
        assert len(seen) == 1
        assert kinds(world, run.run_id)[: seen[0]][-1] == "intent_recorded"


def test_an_intent_holds_what_recovery_needs(build):
    """Rule 1: key, before-image, contract as it was, compensation, decision and deadline are read from the ledger."""
    world = build(setting())
    world.system.values["f"] = "off"
    with world.run() as run:
        result = run.call("flags.set", {"name": "f", "value": "on"})
        action = run.state.actions[result.action_id]
    assert action.before_image == {"value": "off"}
    assert action.after_image == {"value": "on"}
    assert action.idempotency_key.startswith("amends-")
    assert action.contract == world.capabilities[0].contract
    assert action.contract.compensation[0].name == "restore"
    assert action.decided is not None
    assert action.decided.policy_version == "fake@sha256:1"
    assert action.deadline_us == action.sent_us + 30_000_000


def test_nothing_is_sent_if_the_journal_does_not_answer(build):
    """Rule 1: a journal that is gone refuses the call before anything leaves."""
    world = build(keyed())
    run = world.run()
    world.journal.fails_before = JournalUnavailable("the disk is full")
    with pytest.raises(SystemUnavailable):
        run.call("shop.reserve", ARGS)
    world.journal.fails_before = None
    assert world.system.requests == []
    run.finish()


def test_nothing_is_sent_if_the_acknowledgement_of_the_intent_is_lost(build):
    """Rule 1: an intent that may be durable, but was not acknowledged, is not followed by a call."""
    world = build(keyed())
    run = world.run()
    world.journal.fails_after = JournalUnavailable("no answer")
    with pytest.raises(SystemUnavailable):
        run.call("shop.reserve", ARGS)
    world.journal.fails_after = None
    assert world.system.sent("shop.reserve", "do") == []
    run.fail("the journal was gone", wait_seconds=120)
    assert run.outcome.status is RunStatus.RECOVERED
    assert world.system.sent("shop.reserve", "do") == []


def test_a_caller_that_gave_up_before_the_commit_sends_nothing(build):
    """Rule 1: giving up is looked at under the write lock, last of all."""
    world = build(keyed())
    run = world.run()
    invoker = run._parts.invoker
    with pytest.raises(GivenUp):
        invoker.begin(run._session, Request("shop.reserve", ARGS), lambda: False)
    assert run.state.actions == {}
    run.finish()
    assert world.system.requests == []


def test_a_caller_that_gave_up_after_the_commit_leaves_a_proof_that_nothing_was_sent(build):
    """Rule 1: the intent is followed by `not_sent`, which proves `failed`, whether or not the adapter asks."""
    world = build(keyed())
    run = world.run()
    begun = run._parts.invoker.begin(run._session, Request("shop.reserve", ARGS), lambda: True)
    result = run._parts.sending.send(
        run._session, begun.action_id, lambda: False, allowed=frozenset({RunStatus.OPEN})
    ).result(timeout=10)
    assert (result.status, result.outcome) == (ActionStatus.FAILED, Outcome.FAILED)
    assert run.state.actions[begun.action_id].evidence[-1].code == "not_sent"
    assert world.system.sent("shop.reserve", "do") == []  # the engine looks itself, immediately before the call
    run.finish()


def test_what_cannot_be_serialised_is_refused(build):
    """Rule 1: an intent that cannot be written and read back is never sent."""
    world = build(keyed())
    with world.run() as run:
        for wrong in ({"name": float("nan")}, {"name": object()}, {"name": "\ud800"}):
            with pytest.raises(InvalidInput):
                run.call("shop.reserve", wrong)
    assert world.system.requests == []


def test_invalid_arguments_are_failed_and_not_sent_again(build):
    """Rule 2: resolving sends nothing, so its failure is `failed`; the same arguments answer from the ledger."""
    world = build(keyed())
    with world.run() as run:
        first = run.call("shop.reserve", {"name": "o-1", "value": 3})
        again = run.call("shop.reserve", {"name": "o-1", "value": 3})
        assert (first.status, first.outcome) == (ActionStatus.FAILED, Outcome.FAILED)
        assert again.action_id == first.action_id
        assert again.repeated
    assert world.system.requests == []


@pytest.mark.parametrize("fault", ["broken", "refused"])
def test_a_failing_prepare_is_failed_and_not_unknown(build, fault):
    """Rule 2: `prepare` only reads, so whatever it raises proves that nothing was sent."""
    world = build(setting())
    world.system.tell("flags.set", "prepare", fault)
    with world.run() as run:
        result = run.call("flags.set", {"name": "f", "value": "on"})
        assert (result.status, result.outcome) == (ActionStatus.FAILED, Outcome.FAILED)
    assert world.system.sent("flags.set", "do") == []


def test_a_prepare_that_could_not_read_may_be_tried_again(build):
    """Rules 2 and 5: a proven failure opens a new generation; a bad minute of a system does not close the slot."""
    world = build(setting())
    world.system.tell("flags.set", "prepare", "broken")
    with world.run() as run:
        run.call("flags.set", {"name": "f", "value": "on"})
        again = run.call("flags.set", {"name": "f", "value": "on"})
        assert again.ok
        assert run.state.actions[again.action_id].generation == 2
    assert world.system.values == {"f": "on"}


def test_prepare_is_authorized_as_a_probe_by_the_service(build):
    """Rules 2 and 21: reading before a call is the Service's read; a denied read denies the call, unsent."""
    from amends.testing.fakes import DENY

    world = build(setting())
    world.authorizer.rules = {"*.probe": DENY}
    with world.run() as run:
        result = run.call("flags.set", {"name": "f", "value": "on"})
        assert result.status is ActionStatus.DENIED
    asked = next(r for r in world.authorizer.requests if r.phase == "probe")
    assert asked.principal.type == "Service"
    assert world.system.requests == []


@pytest.mark.parametrize(
    ("fault", "status"),
    [("lost", "unknown"), ("nothing", "unknown"), ("not_sent", "failed"), ("refused", "failed"), ("busy", "failed")],
)
def test_only_a_proof_makes_a_call_failed(build, fault, status):
    """Rule 3: whatever is raised is `unknown`, unless the adapter proves that nothing left or the provider said no."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", fault)
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    assert (result.status.value, result.outcome.value) == (status, status)
    run.detach()


@pytest.mark.parametrize("answer", ["unreadable", "nonsense", "exits"])
def test_an_answer_that_cannot_be_recorded_is_unknown(build, answer, monkeypatch):
    """Rule 3: the call was made, so an answer nobody can keep, none at all, or an exit loses nothing but certainty."""
    world = build(keyed())
    if answer == "unreadable":
        world.system.tell("shop.reserve", "do", "unreadable")
    else:
        made = world.capabilities[0]._made

        def do(call, fault):
            made(call, fault)
            if answer == "exits":
                raise SystemExit(3)
            return "done"

        monkeypatch.setattr(world.capabilities[0], "_made", do)
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    assert result.status is ActionStatus.UNKNOWN
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status is RunStatus.RECOVERED
    assert world.system.count() == 0


def test_the_last_check_sees_a_deadline_that_has_passed(build):
    """Rule 3: a call whose deadline passed before its first byte is not sent."""
    world = build(keyed(limits=Limits(timeout_seconds=5.0)))
    run = world.run()
    begun = run._parts.invoker.begin(run._session, Request("shop.reserve", ARGS), lambda: True)
    world.clock.advance(6.0)
    result = run._parts.sending.send(
        run._session, begun.action_id, lambda: True, allowed=frozenset({RunStatus.OPEN})
    ).result(timeout=10)
    assert result.status is ActionStatus.FAILED
    assert world.system.sent("shop.reserve", "do") == []
    run.finish()


def test_absence_is_no_proof_before_it_is_final(build):
    """Rule 4: `absent` proves `failed` only past the call's deadline and the contract's settle time."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", ARGS)
    early = run.call("shop.reserve", ARGS)
    assert early.status is ActionStatus.UNKNOWN
    world.clock.advance(39.9)
    assert run.call("shop.reserve", ARGS).status is ActionStatus.UNKNOWN
    world.clock.advance(0.2)
    assert run.call("shop.reserve", ARGS).status is ActionStatus.FAILED
    assert run.call("shop.reserve", ARGS).ok  # the same generation and key again
    assert len({r.key for r in world.system.sent("shop.reserve", "do")}) == 1
    run.finish()


def test_absence_never_proves_where_the_contract_does_not_say_so(build):
    """Rule 4: without an authoritative, complete read, absence leaves the outcome open, and a person decides."""
    from amends.core.contract import ProbeRule

    world = build(keyed(probe=ProbeRule(strength="search", schedule_seconds=(0.0, 1.0), deadline_seconds=5.0)))
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=100)
    assert run.outcome.status is RunStatus.NEEDS_HUMAN
    assert actions(run.state) == [("shop.reserve", "needs_human", "unknown")]


def test_failed_by_absence_becomes_unknown_on_contradicting_evidence(build):
    """Rule 4: a call-back that says it exists beats an absence, before the slot is used again."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "lost")
    world.system.tell("shop.reserve", "probe", "absent")
    run = world.run()
    first = run.call("shop.reserve", ARGS)
    world.clock.advance(60)
    assert run.call("shop.reserve", ARGS).status is ActionStatus.FAILED  # the read replica lagged
    world.engines[0].report(run.run_id, first.action_id, happened=True, source="webhook")
    again = run.call("shop.reserve", ARGS)
    assert again.ok
    assert len(world.system.sent("shop.reserve", "do")) == 1
    assert world.system.count() == 1
    run.finish()


def test_proven_failures_absorb_contradicting_evidence(build):
    """Rule 4: what was never sent, or was refused, cannot have happened, whoever says so."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "refused")
    run = world.run()
    first = run.call("shop.reserve", ARGS)
    state = world.engines[0].report(run.run_id, first.action_id, happened=True, source="webhook")
    assert state.actions[first.action_id].outcome is Outcome.FAILED
    run.fail("stop")
    assert run.outcome.status is RunStatus.RECOVERED
    assert run.state.actions[first.action_id].outcome is Outcome.FAILED


def test_ledger_time_does_not_follow_a_clock_that_jumps_back(build):
    """Rule 4: with the clock an hour back, nothing is proven early and nothing is dated before what it follows."""
    world = build(keyed())
    world.system.tell("shop.reserve", "do", "nothing")
    run = world.run()
    run.call("shop.reserve", {"name": "o-0"})
    sent = world.clock.now_us()
    world.clock.jump_to(sent - 3_600_000_000)
    world.system.tell("shop.reserve", "do", "lost")
    result = run.call("shop.reserve", ARGS)
    action = run.state.actions[result.action_id]
    assert action.deadline_us >= sent + 30_000_000
    assert run.call("shop.reserve", ARGS).ok  # found by the probe
    assert run.call("shop.reserve", {"name": "o-0"}).status is ActionStatus.UNKNOWN
    run.detach()


def test_a_failed_tool_does_not_decide_about_the_run(build):
    """Rule 8: an agent may take another way; the run ends well, and nothing is compensated."""
    world = build(keyed(), keyed("shop.other"))
    world.system.tell("shop.reserve", "do", "refused")
    with world.run() as run:
        assert run.call("shop.reserve", ARGS, required=False).status is ActionStatus.FAILED
        assert run.state.run.status is RunStatus.OPEN
        assert run.call("shop.reserve", ARGS).ok
        run.call("shop.other", ARGS)
    assert run.outcome.status is RunStatus.COMMITTED
    assert world.system.count() == 2


def test_content_read_for_an_item_is_kept_with_it(build):
    """Rule 1: the digest of what a call is about is in the ledger before the call is."""
    world = build(prepared(mode="on_success"))
    world.system.values["o-1"] = "v1"
    with world.run() as run:
        result = run.call("shop.publish", ARGS)
        assert run.state.actions[result.action_id].content_digest == "content:v1"
    assert run.outcome.status is RunStatus.COMMITTED


def test_who_is_frozen_while_it_reads_the_journal_is_too_late(build, monkeypatch):
    """Rule 3: the clock is asked last, so nothing is sent past the deadline by who slept in the last check itself."""
    world = build(keyed())
    run = world.run()
    journal = world.engines[0].kit.journal
    read = journal.row

    def slow(key):
        found = read(key)
        if key.kind == "pause":
            world.clock.advance(3600)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(journal, "row", slow)
        result = run.call("shop.reserve", {"name": "o-1"})
    assert result.status is ActionStatus.FAILED
    assert world.system.sent("shop.reserve", "do") == []
