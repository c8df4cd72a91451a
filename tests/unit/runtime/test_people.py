"""People: named choices, first come first served; told until they acknowledge (rules 16, 22, 31 and 34)."""

import pytest

from amends.core.contract import ProbeRule
from amends.core.errors import CallerError, Conflict, InvalidInput, UnknownName
from amends.core.status import ActionStatus, Outcome
from amends.runtime.escalations import CHOICES
from amends.testing.fakes import needs_approval
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}
SHORT = ProbeRule(strength="list", schedule_seconds=(0.0, 1.0), deadline_seconds=5.0)


def parked(build, fault="lost", probes=9):
    """A run whose one call nobody could prove: it waits for a person."""
    world = build(keyed(probe=SHORT))
    world.system.tell("shop.reserve", "do", fault)
    world.system.tell("shop.reserve", "probe", *["inconclusive"] * probes)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "needs_human"
    world.system.tells.clear()
    engine = world.engines[0]
    (item,) = engine.escalations()
    return world, run, engine, item


# --- choices --------------------------------------------------------------------------------------------------


def test_it_happened_lets_recovery_take_it_back(build):
    """Rules 22 and 31: a person's word, with evidence, settles an unknown and wakes the run."""
    world, _, engine, item = parked(build)
    engine.resolve(item.escalation_id, "it_happened", by="maya", evidence="seen in their console")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0
    (action,) = state.forward_actions()
    assert [(e.source, e.by) for e in action.evidence if e.source == "person"] == [("person", "maya")]


def test_it_did_not_happen_ends_it(build):
    """Rule 31: nothing is undone for what a person says is not there."""
    world, _, engine, item = parked(build, "nothing")
    engine.resolve(item.escalation_id, "it_did_not_happen", by="maya", evidence="their list is empty")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.sent("shop.reserve", "undo") == []


def test_a_word_needs_evidence_and_a_choice_must_be_offered(build):
    """Rule 31: never a bare "resolve"."""
    _, _, engine, item = parked(build)
    with pytest.raises(InvalidInput):
        engine.resolve(item.escalation_id, "it_happened", by="maya")
    with pytest.raises(InvalidInput):
        engine.resolve(item.escalation_id, "resolve", by="maya")
    with pytest.raises(UnknownName):
        engine.resolve("nothing", "abandon", by="maya")
    assert "resolve" not in {choice for choices in CHOICES.values() for choice in choices}


def test_look_again_looks_again(build):
    """Rule 31: the system can be read by now; automation takes over again."""
    world, _, engine, item = parked(build)
    engine.resolve(item.escalation_id, "look_again", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


def test_accept_as_is_settles_without_touching_anything(build):
    """Rules 23 and 31: accepted by a person is settled; the report says by whom."""
    world, _, engine, item = parked(build)
    before = len(world.system.requests)
    engine.resolve(item.escalation_id, "accept_as_is", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert len(world.system.requests) == before
    (action,) = state.forward_actions()
    assert action.accepted_by == "maya"
    assert action.outcome is Outcome.UNKNOWN  # an acceptance is no evidence


def test_the_loser_of_two_decisions_learns_what_the_winner_decided(build):
    """Rule 31: compare-and-set on the item."""
    _, _, engine, item = parked(build)
    engine.resolve(item.escalation_id, "accept_as_is", by="maya")
    with pytest.raises(Conflict) as told:
        engine.resolve(item.escalation_id, "look_again", by="noor")
    assert (told.value.data["by"], told.value.data["choice"]) == ("maya", "accept_as_is")


def test_who_decided_when_by_which_channel_is_in_the_ledger(build):
    """Rule 31: with comment and evidence."""
    world, run, engine, item = parked(build)
    engine.resolve(
        item.escalation_id, "it_happened", by="maya", channel="cli", comment="called them", evidence="ticket 7"
    )
    (event,) = [s.event for s in world.journal.events(run.run_id) if s.event.kind == "escalation_resolved"]
    for word in ("maya", "cli", "called them", "ticket 7"):
        assert word in event.payload
    assert event.ts_us == world.clock.now_us()


def test_abandoning_ends_the_run_and_every_open_question(build):
    """Rule 31: nobody is asked, paged or counted for what was given up."""
    world, run, engine, item = parked(build)
    engine.resolve(item.escalation_id, "abandon", by="maya")
    state = engine.state(run.run_id)
    assert state.run.status.value == "abandoned"
    assert engine.escalations() == ()
    assert engine.recover(run.run_id)[0].run.status.value == "abandoned"
    assert world.system.count() == 1


@pytest.mark.parametrize("status", ["open", "recovering", "committing"])
def test_a_run_may_be_abandoned_from_wherever_it_is(build, status):
    """Rule 31: an item of a run that goes on elsewhere can still end it, and leaves no action waiting for nobody."""
    from amends.testing.worlds import removing

    world = build(keyed(), removing(), queued(mode="on_approval"))
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("shop.release", ARGS, required=False)
    run.call("shop.notify", ARGS)
    engine = world.engines[0]
    if status == "recovering":
        world.system.tell("shop.reserve", "undo", "not_sent")
        run.fail("stop")
    elif status == "committing":
        run.finish()
    assert engine.state(run.run_id).run.status.value == status
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "abandon", by="maya")
    assert engine.state(run.run_id).run.status.value == "abandoned"
    assert engine.escalations() == ()
    assert engine.approvals() == ()


# --- approvals ------------------------------------------------------------------------------------------------


def asked(build, ruling=None):
    world = build(queued(mode="on_approval"))
    if ruling is not None:
        world.authorizer.rules = {"*.release": ruling}
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish()
    (row,) = world.engines[0].approvals()
    return world, run, world.engines[0], row


def test_the_initiator_may_not_approve(build):
    """DESIGN section 5: nobody approves what they started."""
    world, _, engine, row = asked(build)
    with pytest.raises(CallerError):
        engine.approve(row.approval_id, by="user-7")
    assert world.system.count() == 0


def test_tier_and_roles_are_needed(build):
    """Rule 31: who may not answer is told what it takes."""
    _, _, engine, row = asked(build, needs_approval(2, "finance"))
    with pytest.raises(CallerError) as told:
        engine.approve(row.approval_id, by="noor")
    assert "finance" in told.value.hint
    with pytest.raises(UnknownName):
        engine.approve(row.approval_id, by="a stranger")
    engine.approve(row.approval_id, by="maya")


def test_an_answer_to_what_was_not_shown_is_refused(build):
    """Rule 30: the yes is bound to the digest of what the person saw."""
    _, _, engine, row = asked(build)
    with pytest.raises(Conflict):
        engine.approve(row.approval_id, by="noor", digest="a1:of something else")


def test_the_second_answer_loses(build):
    """Rule 31: compare-and-set; the loser learns who decided what."""
    _, _, engine, row = asked(build)
    engine.reject(row.approval_id, by="noor")
    with pytest.raises(Conflict) as told:
        engine.approve(row.approval_id, by="maya")
    assert (told.value.data["status"], told.value.data["by"]) == ("refused", "noor")


def test_an_answer_wakes_the_run_in_whatever_process_drives(build):
    """Rule 31: decisions are unfenced by epoch; another process releases at once, not at the question's expiry."""
    world, _, engine, row = asked(build)
    engine.approve(row.approval_id, by="noor")
    (state,) = world.engine("owner-2").recover()
    assert state.run.status.value == "committed"
    assert world.system.count() == 1


# --- evidence -------------------------------------------------------------------------------------------------


def test_evidence_reopens_a_parked_unknown_and_closes_its_item(build):
    """Rule 22: nobody decides any more what a call-back has settled; the run goes on."""
    world, run, engine, item = parked(build)
    (action,) = engine.state(run.run_id).forward_actions()
    engine.report(run.run_id, action.action_id, happened=True, source="webhook", reference="ref-000001")
    assert engine.escalations() == ()
    with pytest.raises(Conflict):
        engine.resolve(item.escalation_id, "it_did_not_happen", by="maya", evidence="I thought")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.count() == 0


def test_evidence_that_it_did_not_happen_ends_it(build):
    """Rule 22: authoritative either way."""
    world, run, engine, _ = parked(build, "nothing")
    (action,) = engine.state(run.run_id).forward_actions()
    engine.report(run.run_id, action.action_id, happened=False, source="webhook")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert world.system.sent("shop.reserve", "undo") == []


def test_nothing_new_reopens_nothing(build):
    """Rule 22: a run that waits for a person is left alone, and no sweep spins on it."""
    world, _, engine, _ = parked(build)
    before = (world.journal.info().max_seq, len(world.system.requests))
    for _ in range(3):
        assert engine.recover(wait_seconds=5) == []
    assert (world.journal.info().max_seq, len(world.system.requests)) == before


# --- paging ---------------------------------------------------------------------------------------------------


def pages(world):
    return [n for n in world.notifier.notices if n.kind == "escalation"]


def test_people_are_told_what_is_known_in_doubt_proposed_and_until_when(build):
    """Rule 34: the item itself is the message; its delivery is recorded."""
    world, run, _, item = parked(build)
    (page,) = pages(world)
    assert (page.owner, page.until_us) == ("maya", item.deadline_us)
    for word in ("Known:", "In doubt:", "Proposed:"):
        assert word in page.body
    assert "escalation_notified" in [s.event.kind for s in world.journal.events(run.run_id)]


def test_people_are_told_again_until_somebody_acknowledges(build):
    """Rule 34: repeated, at the configured pace, and no longer than needed."""
    world, _, engine, item = parked(build)
    engine.recover()
    assert len(pages(world)) == 1
    world.clock.advance(901)
    engine.recover()
    assert len(pages(world)) == 2
    engine.acknowledge(item.escalation_id, by="maya")
    world.clock.advance(901)
    engine.recover()
    assert len(pages(world)) == 2
    assert engine.escalations()[0].status == "acknowledged"  # it stays open


def test_a_failed_delivery_is_recorded_and_tried_again(build):
    """Rule 34: a notifier that is down loses nothing."""
    world = build(keyed(compensation=(), reversibility="compensatable"))
    world.notifier.failure = "no route to host"
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop")
    engine = world.engines[0]
    (item,) = engine.escalations()
    assert (item.deliveries, item.delivered) == (1, False)
    world.notifier.failure = ""
    world.clock.advance(901)
    engine.recover()
    assert engine.escalations()[0].delivered


def test_the_report_goes_to_the_owner(build):
    """Rule 34: what became of the run, to the person who answers for it."""
    world = build(keyed())
    with world.run(owner="noor") as run:
        run.call("shop.reserve", ARGS)
    (report,) = [n for n in world.notifier.notices if n.kind == "report"]
    assert (report.owner, report.run_id) == ("noor", run.run_id)


def test_a_run_needs_a_named_owner(build):
    """Rule 34: somebody answers for it."""
    world = build(keyed())
    world.engine(default_owner="")
    with pytest.raises(InvalidInput):
        world.run()


def test_a_parked_item_says_who_decides_in_the_report(build):
    """DESIGN section 8: the four questions name the person and the choices."""
    _, run, engine, item = parked(build)
    report = engine.run_report(run.run_id)
    (line,) = report["who_decides"]
    assert (line["owner"], line["choices"]) == ("maya", list(item.choices))
    assert [line["status"] for line in report["might_exist"]] == [ActionStatus.NEEDS_HUMAN.value]
