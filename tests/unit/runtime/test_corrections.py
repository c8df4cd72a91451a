"""Corrections: who saw a signal is told, once, where they saw it, and no more than is known (rule 32)."""

import pytest

from amends.core.status import ActionKind
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import corrector, keyed, visible

ARGS = {"name": "o-1"}


def notes(world):
    return [(n.name, str(n.state["text"])) for n in world.system.notes]


def failed(world, *names, wait_seconds=200.0):
    run = world.run()
    for name in names:
        run.call("shop.announce", {"name": name})
    run.fail("stop", wait_seconds=wait_seconds)
    return run


def test_a_correction_is_posted_where_it_was_seen(build):
    """Rule 32: fields never empty: what was seen, status, what to do, when it comes back, a named person."""
    world = build(visible(), corrector())
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    ((place, text),) = notes(world)
    assert place == "note:o-1"
    for word in (run.run_id, "o-1 is reserved", "reverted", "nothing", "tomorrow", "maya, not this bot"):
        assert word in text


def test_one_correction_per_place_merges_its_signals(build):
    """Rule 32: two signals at one place, one note; another place, another note."""
    world = build(visible(place="note:board-{value}"), corrector())
    run = world.run()
    for name, board in (("a", "x"), ("b", "x"), ("c", "y")):
        run.call("shop.announce", {"name": name, "value": board})
    run.fail("stop", wait_seconds=60)
    assert sorted(place for place, _ in notes(world)) == ["note:board-x", "note:board-y"]
    merged = dict(notes(world))["note:board-x"]
    assert "a is reserved" in merged
    assert "b is reserved" in merged


def test_nothing_is_posted_for_what_nobody_saw(build):
    """Rule 32: a call that provably never happened needs no correction, nor does a run that went well."""
    world = build(visible(), corrector())
    world.system.tell("shop.announce", "do", "refused")
    failed(world, "o-1")
    with world.run("2") as run:
        run.call("shop.announce", {"name": "fine"})
    assert notes(world) == []


def test_reverted_is_said_only_after_a_verified_undo(build):
    """Rule 32: what waits for a person is called uncertain, and is corrected once it is known."""
    world = build(visible(), corrector())
    world.system.tell("shop.announce", "do", "nothing")
    world.system.tell("shop.announce", "probe", *["inconclusive"] * 9)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    ((_, text),) = notes(world)
    assert "reverted" not in text
    assert "not certain" in text
    engine = world.engines[0]
    world.system.tells.clear()
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "it_did_not_happen", by="maya", evidence="asked them")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert len(notes(world)) == 2  # a later change is a new revision
    assert "update 2" in notes(world)[1][1]


def test_a_lost_posting_is_looked_for_and_never_posted_twice(build):
    """Rule 32: unknown → probed by marker."""
    world = build(visible(), corrector())
    world.system.tell("note.correct", "do", "lost")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert len(notes(world)) == 1
    assert len(world.system.sent("note.correct", "do")) == 1


def test_an_inconclusive_posting_goes_to_a_person_and_is_not_repeated(build):
    """Rule 32: two notes are worse than one that somebody checks."""
    world = build(visible(), corrector())
    world.system.tell("note.correct", "do", "nothing")
    world.system.tell("note.correct", "probe", *["inconclusive"] * 9)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    assert len(world.system.sent("note.correct", "do")) == 1


@pytest.mark.parametrize("fault", ["not_sent", "busy"])
def test_a_posting_that_provably_did_not_leave_is_repeated(build, fault):
    """Rule 32: the same note, later."""
    world = build(visible(), corrector())
    world.system.tell("note.correct", "do", fault)
    run = failed(world, "o-1")
    assert run.outcome.status.value == "recovered"
    assert len(notes(world)) == 1


def test_an_undeliverable_correction_blocks_recovered(build):
    """Rule 32: refused for good → a person tells the people there, and says so."""
    world = build(visible(), corrector())
    world.system.tell("note.correct", "do", "refused")
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    engine = world.engines[0]
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "accept_as_is", by="maya", comment="told them myself")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert len(world.system.sent("note.correct", "do")) == 1


def test_a_place_that_no_adapter_serves_goes_to_a_person(build):
    """Rules 21 and 32: recorded, parked, told; never sent to nobody."""
    world = build(visible())
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    engine = world.engines[0]
    (item,) = engine.escalations()
    assert (item.cause, "note:o-1" in item.in_doubt) == ("adapter_unavailable", True)
    engine.resolve(item.escalation_id, "look_again", by="maya")  # in vain: it is still not served
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "needs_human"
    (item,) = engine.escalations()
    engine.resolve(item.escalation_id, "accept_as_is", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"


def test_a_correction_that_policy_denies_is_parked_and_may_be_tried_again(build):
    """Rules 21, 22 and 32: the Service may post only what a permit names; a person reopens it."""
    world = build(visible(), corrector())
    world.authorizer.rules = {"note.correct.correct": DENY}
    run = failed(world, "o-1")
    assert run.outcome.status.value == "needs_human"
    engine = world.engines[0]
    (item,) = engine.escalations()
    world.authorizer.rules = {}
    engine.resolve(item.escalation_id, "compensate", by="maya")
    (state,) = engine.recover(wait_seconds=60)
    assert state.run.status.value == "recovered"
    assert len(notes(world)) == 1


def test_a_correction_may_need_an_approval(build):
    """Rules 30 and 32: asked for with its text; posted after the yes."""
    world = build(visible(), corrector())
    world.authorizer.rules = {"note.correct.correct": needs_approval(1)}
    run = failed(world, "o-1", wait_seconds=0)
    assert notes(world) == []
    engine = world.engines[0]
    (asked,) = engine.approvals()
    assert (asked.phase, "o-1 is reserved" in asked.shown["args"]["text"]) == ("correct", True)
    engine.approve(asked.approval_id, by="noor")
    (state,) = engine.recover(wait_seconds=60)
    assert (state.run.run_id, state.run.status.value) == (run.run_id, "recovered")
    assert len(notes(world)) == 1


def test_corrections_wait_until_every_signal_of_the_place_is_quiet(build):
    """Rule 32: nobody is told half of it; the note comes when all of that place is settled or parked."""
    world = build(visible(place="note:board"), keyed(), corrector())
    world.system.tell("shop.announce", "undo", "not_sent")
    run = world.run()
    run.call("shop.announce", {"name": "a"}, depends_on=[])
    run.call("shop.announce", {"name": "b"}, depends_on=[])
    run.fail("stop")
    assert notes(world) == []  # one of them is being retried
    world.engines[0].recover(run.run_id, wait_seconds=60)
    assert len(notes(world)) == 1


def test_corrections_are_posted_by_the_service_and_agents_have_no_such_call(build):
    """Rules 21 and 32: a correction is recovery's own action."""
    from amends.core.errors import CallerError

    world = build(visible(), corrector())
    run = failed(world, "o-1")
    posted = [a for a in run.state.actions.values() if a.kind is ActionKind.CORRECT]
    assert [a.revision for a in posted] == [1]
    assert {r.principal.type for r in world.authorizer.requests if r.phase == "correct"} == {"Service"}
    other = world.run("2")
    with pytest.raises(CallerError):
        other.call("note.correct", {"place": "note:o-1", "text": "it was not me"})
    other.finish()
    assert len(notes(world)) == 1
