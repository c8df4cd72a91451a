"""A run that cannot be read back is told to people once, is driven by nobody, and goes on once a person has lifted its
quarantine (rule 16).
"""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from amends.core.errors import Conflict, CorruptLedger, UnknownName
from amends.core.events import (
    SYSTEM_STREAM,
    QuarantineNotified,
    RunClaimed,
    RunQuarantined,
    RunQuarantineLifted,
    decode,
)
from amends.core.status import RunStatus
from amends.ports.journal import RowKey
from amends.ports.services import Delivery
from amends.runtime import sealing
from amends.testing.fakes import DENY
from amends.testing.worlds import keyed

NONSENSE = '{"nonsense": true}'


@contextmanager
def damaged(world, run_id, kind="action", body=NONSENSE):
    """The first row of a kind of a run, overwritten; whole again afterwards."""
    key = next(row.key for row in world.journal.load(run_id) if row.key.kind == kind)
    whole = world.journal._rows[key]
    world.journal._rows[key] = replace(whole, body=body)
    yield
    world.journal._rows[key] = whole


def found_unreadable(world, engine, run_id, kind="action"):
    with damaged(world, run_id, kind):
        engine.book.forget(run_id)
        with pytest.raises(CorruptLedger):
            engine.state(run_id)


def facts(world, kind, stream=SYSTEM_STREAM):
    bodies = [decode(stored.event.payload, "") for stored in world.journal.events(stream)]
    return [body for body in bodies if isinstance(body, kind)]


def pages(world):
    return [notice for notice in world.notifier.notices if notice.kind == "escalation"]


def dead_run(world, key="1"):
    run = world.run(key)
    run.call("shop.reserve", {"name": f"o-{key}"})
    return run.run_id


@pytest.fixture(params=["run", "action"])
def kind(request):
    return request.param


def test_quarantined_told_put_right_lifted_and_recovered(build, kind):
    """Rule 16, from end to end: other runs go on, a person is told once, and recovery goes on after their word."""
    world = build(keyed())
    world.engine("owner-1")
    broken, sound = dead_run(world, "broken"), dead_run(world, "sound")
    world.die()
    engine = world.engine("owner-2")
    with damaged(world, broken, kind):
        for _ in range(3):
            list(engine.sweep(wait_seconds=60))
            world.clock.advance(90_000)
        (held,) = engine.quarantines()
        assert (held.run_id, held.status) == (broken, "told")
        (notice,) = pages(world)
        assert (notice.run_id, notice.owner, notice.kind) == (broken, "maya", "escalation")
        assert broken in notice.subject
        assert "amends quarantine lift" in notice.body
        with pytest.raises(CorruptLedger, match="still cannot be read back"):
            engine.lift_quarantine(broken, by="maya")
    assert engine.state(sound).run.status is RunStatus.RECOVERED
    claims = len(facts(world, RunClaimed, broken))
    list(engine.sweep(wait_seconds=60))
    assert len(facts(world, RunClaimed, broken)) == claims, "it reads back, and nobody has looked"
    assert world.system.count() == 1
    state = engine.lift_quarantine(broken, by="maya", channel="cli", comment="restored")
    assert state.run.run_id == broken
    assert engine.quarantines() == ()
    list(engine.sweep(wait_seconds=60))
    assert engine.state(broken).run.status is RunStatus.RECOVERED
    assert world.system.count() == 0
    assert facts(world, RunQuarantineLifted) == [
        RunQuarantineLifted(quarantined_run=broken, by="maya", channel="cli", comment="restored")
    ]


def test_only_a_person_lifts_once_and_only_what_is_quarantined(build):
    """The actor is checked as for an approval; the second learns who was first (rule 31)."""
    world = build(keyed())
    engine = world.engine()
    run_id = dead_run(world)
    with pytest.raises(UnknownName, match="not quarantined"):
        engine.lift_quarantine(run_id, by="maya")
    found_unreadable(world, engine, run_id)
    with pytest.raises(UnknownName, match="not a person"):
        engine.lift_quarantine(run_id, by="coder")
    engine.lift_quarantine(run_id, by="maya")
    with pytest.raises(Conflict, match="`maya` has lifted"):
        engine.lift_quarantine(run_id, by="noor")
    assert len(facts(world, RunQuarantineLifted)) == 1


def test_rows_that_read_but_are_not_what_the_events_say_are_no_way_out(build):
    """A row that somebody wrote by hand would let recovery act on a claim that no event made."""
    world = build(keyed())
    engine = world.engine()
    run_id = dead_run(world)
    found_unreadable(world, engine, run_id)
    row = next(row for row in world.journal.load(run_id) if row.key.kind == "action")
    forged = json.dumps({**json.loads(row.body), "reference": "somebody else's"})
    with damaged(world, run_id, body=forged), pytest.raises(CorruptLedger, match="not what its events say"):
        engine.lift_quarantine(run_id, by="maya")
    assert [held.run_id for held in engine.quarantines()] == [run_id]
    engine.lift_quarantine(run_id, by="maya")


def test_nobody_takes_a_quarantined_run_over(build):
    """Neither an ordered recovery nor a resume, until a person has lifted it; forward calls stop as well."""
    world = build(keyed())
    world.engine("owner-1")
    run_id = dead_run(world)
    world.die()
    engine = world.engine("owner-2")
    with damaged(world, run_id, "run"), pytest.raises(CorruptLedger):
        engine.state(run_id)
    head = engine.state(run_id).run.head
    with pytest.raises(Conflict, match="quarantined"):
        engine.recover(run_id, by="maya")
    with pytest.raises(Conflict, match="quarantined"):
        world.run("1", engine=engine, resume=True)
    assert engine.state(run_id).run.head == head
    engine.lift_quarantine(run_id, by="maya")
    with world.run("1", engine=engine, resume=True) as run:
        assert run.call("shop.reserve", {"name": "again"}).ok


def test_nothing_wakes_a_quarantined_run(build):
    """A denial would reopen under the new policies (rule 22): not before a person has looked."""
    world = build(keyed())
    world.authorizer.rules = {"*.undo": DENY}
    engine = world.engine()
    run = world.run()
    run.call("shop.reserve", {"name": "o-1"})
    run.fail("told to")
    found_unreadable(world, engine, run.run_id)
    head = engine.state(run.run_id).run.head
    world.authorizer.rules, world.authorizer.version = {}, "fake@sha256:2"
    list(engine.sweep(wait_seconds=60))
    with pytest.raises(Conflict, match="quarantined"):
        engine.recover(run.run_id, by="maya")
    assert engine.state(run.run_id).run.head == head
    engine.lift_quarantine(run.run_id, by="maya")
    list(engine.sweep(wait_seconds=60))
    assert engine.state(run.run_id).run.status is RunStatus.RECOVERED


def test_a_run_that_is_damaged_again_is_told_again(build):
    """Lifting is about one quarantine, not about the run for ever."""
    world = build(keyed())
    world.engine("owner-1")
    run_id = dead_run(world)
    world.die()
    engine = world.engine("owner-2")
    for _ in range(2):
        with damaged(world, run_id):
            list(engine.sweep())
        engine.lift_quarantine(run_id, by="maya")
    assert len(facts(world, RunQuarantined)) == len(facts(world, QuarantineNotified)) == len(pages(world)) == 2


def test_a_notice_that_did_not_leave_is_tried_again(build):
    """Until one has left; each try is recorded, and the tries of a failing notifier are few."""
    world = build(keyed())
    world.engine("owner-1")
    run_id = dead_run(world)
    world.die()
    deliver = world.notifier.deliver
    world.notifier.deliver = lambda _: Delivery(delivered=False, detail="no line")
    engine = world.engine("owner-2")
    with damaged(world, run_id):
        for _ in range(24 * 6):
            list(engine.sweep())
            world.clock.advance(600)
        assert [held.status for held in engine.quarantines()] == ["open"]
        assert 10 < len(facts(world, QuarantineNotified)) < 40
        world.notifier.deliver = deliver
        world.clock.advance(7200)
        list(engine.sweep())
    assert [held.status for held in engine.quarantines()] == ["told"]
    assert len(pages(world)) == 1


@pytest.mark.parametrize("default", ["maya", ""])
def test_somebody_is_named_even_if_nothing_of_the_run_can_be_read(build, default):
    """The owner by the run's first event; else the project's; else whoever operates it."""
    world = build(keyed())
    engine = world.engine(default_owner=default)
    run_id = world.run(owner="noor").run_id
    found_unreadable(world, engine, run_id, "run")
    list(engine.sweep())
    engine.book.record_system([RunQuarantined(quarantined_run="nothing-of-it-is-left", reason="gone")])
    list(engine.sweep())
    assert [notice.owner for notice in pages(world)] == ["noor", default or "whoever operates Amends here"]


def test_a_lifted_run_may_be_sealed(build):
    """A quarantine that is over keeps nothing out of the archive."""
    world = build(keyed())
    engine = world.engine()
    with world.run() as run:
        run.call("shop.reserve", {"name": "o-1"})
    found_unreadable(world, engine, run.run_id)
    left = {}
    assert sealing._folded(world.journal, run.run_id, left) is None
    assert left == {run.run_id: "it is quarantined"}
    engine.lift_quarantine(run.run_id, by="maya")
    assert sealing._folded(world.journal, run.run_id, left) is not None
    assert not world.journal.row(RowKey("quarantine", run.run_id)).active
