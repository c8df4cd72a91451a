"""Everything is bounded: what is read at once and kept, calls that never return, tries, pages (rules 16 and 34)."""

import gc
import threading
from collections import Counter

import pytest

from amends.core.contract import Limits
from amends.core.rows import RunState
from amends.core.status import ActionStatus, RunStatus
from amends.runtime import checking, flights, preparing, sending, undoing
from amends.runtime.places import HUNG_OF_AN_ACTION, NoPlace, Places, Seat
from amends.runtime.sweeping import PAGE
from amends.spi.capability import NotSent
from amends.spi.hookspecs import Check
from amends.testing.fakes import SimClock
from amends.testing.memory_journal import MemoryJournal
from amends.testing.worlds import blind, keyed, prepared, queued

DAY_SECONDS = 86_400
SPARE = [
    (flights, "SPARE_SECONDS"),
    (preparing, "SPARE_SECONDS"),
    (sending, "CALL_SPARE_SECONDS"),
    (undoing, "CALL_SPARE_SECONDS"),
]
QUICKLY = Limits(timeout_seconds=0.05)


class CountingJournal(MemoryJournal):
    """Keeps how many rows one call has returned at most, and which runs were read whole."""

    def __init__(self):
        super().__init__()
        self.most = 0
        self.loads = Counter()

    def rows(self, kind, **asked):
        found = super().rows(kind, **asked)
        self.most = max(self.most, len(found))
        return found

    def load(self, run_id):
        self.loads[run_id] += 1
        return super().load(run_id)


def dead_runs(world, count, capability="shop.reserve"):
    runs = [world.run(str(n)) for n in range(count)]
    for n, run in enumerate(runs):
        run.call(capability, {"name": f"o-{n}"})
    world.die()
    return [run.run_id for run in runs]


def statuses(engine, ids):
    return {engine.state(run_id).run.status for run_id in ids}


def test_runs_are_swept_a_page_at_a_time_and_none_is_kept(build):
    """More dead runs than a page: no read returns more than a page, and a run that came to rest is forgotten."""
    journal = CountingJournal()
    world = build(keyed(), journal=journal)
    world.engine("owner-1")
    ids = dead_runs(world, PAGE + 20)
    engine = world.engine("owner-2")
    journal.most = 0
    kept = [len(engine.book._cache) for _ in engine.sweep(wait_seconds=60)]
    assert len(kept) >= len(ids)
    assert max(kept) <= 1
    assert journal.most <= PAGE
    assert statuses(engine, ids) == {RunStatus.RECOVERED}


def test_recover_keeps_the_last_states_and_drives_all(build):
    """`recover` without a run: every dead run is recovered, and no more states are held than it returns."""
    world = build(keyed())
    world.engine("owner-1")
    ids = dead_runs(world, 40)
    engine = world.engine("owner-2")
    sweeper, most, before = engine._made.sweeper, 0, states_alive()
    sweep = sweeper.sweep

    def counting(until_us):
        nonlocal most
        for state in sweep(until_us):
            yield state
            most = max(most, states_alive() - before)

    object.__setattr__(sweeper, "sweep", counting)
    states = engine.recover(wait_seconds=60, limit=5)
    assert len({state.run.run_id for state in states}) == 5
    assert most < 12
    del states
    assert statuses(engine, ids) == {RunStatus.RECOVERED}


def states_alive():
    return sum(isinstance(thing, RunState) for thing in gc.get_objects())


def test_runs_of_a_living_driver_are_not_read(build):
    """The row of a run says that it is driven: however many there are, a sweep reads none of them whole."""
    journal = CountingJournal()
    world = build(keyed(), journal=journal)
    world.engine("owner-1")
    for n in range(20):
        world.run(str(n))
    second = world.engine("owner-2")
    journal.loads.clear()
    assert second.recover() == []
    assert journal.loads.total() == 0


def test_waiting_runs_are_read_once(build):
    """Runs that wait for people are looked into once by a process, and again when something was written to them."""
    journal = CountingJournal()
    world = build(blind(), journal=journal)
    world.engine("owner-1")
    for _ in range(5):
        world.system.tell("shop.shout", "do", "lost")
        world.system.tell("shop.shout", "probe", *["inconclusive"] * 9)
    ids = dead_runs(world, 5, "shop.shout")
    engine = world.engine("owner-2")
    engine.recover(wait_seconds=600)
    assert statuses(engine, ids) == {RunStatus.NEEDS_HUMAN}
    engine.recover()
    journal.loads.clear()
    engine.recover()
    assert journal.loads.total() == 0


@pytest.mark.parametrize("error", [ValueError("deep inside"), SystemExit(3), KeyError()])
def test_an_adapter_that_raises_whatever_among_healthy_runs(build, error):
    """The poison one ends with a human, the healthy ones recover."""
    world = build(keyed())
    world.engine("owner-1")
    ids = dead_runs(world, 3)
    capability = world.capabilities[0]
    probe = capability.probe

    def poison(question):
        if question.run_id == ids[0]:
            raise error
        return probe(question)

    capability.probe = poison
    engine = world.engine("owner-2")
    engine.recover(wait_seconds=3600)
    assert statuses(engine, ids[1:]) == {RunStatus.RECOVERED}
    assert engine.state(ids[0]).run.status is RunStatus.NEEDS_HUMAN
    assert [item.run_id for item in engine.escalations()] == [ids[0]]
    assert engine.state(ids[0]).run.head < 60


@pytest.mark.parametrize("answer", [None, "yes", 7, {"seen": "applied"}])
def test_an_adapter_that_answers_garbage_among_healthy_runs(build, answer):
    """What is no observation tells nothing: a person looks, and nothing is undone on it."""
    world = build(keyed())
    world.engine("owner-1")
    ids = dead_runs(world, 2)
    capability = world.capabilities[0]
    probe = capability.probe
    capability.probe = lambda question: answer if question.run_id == ids[0] else probe(question)
    engine = world.engine("owner-2")
    engine.recover(wait_seconds=3600)
    assert engine.state(ids[1]).run.status is RunStatus.RECOVERED
    assert engine.state(ids[0]).run.status is RunStatus.NEEDS_HUMAN
    assert world.system.count() == 1


def test_a_run_that_cannot_be_driven_comes_last_less_often_and_with_a_person(build):
    """Thirty days of a defect in one run: the others recover first, tries and events stay few, one item is open."""
    world = build(keyed())
    world.engine("owner-1")
    ids = dead_runs(world, 3)
    engine = world.engine("owner-2")
    driver = engine._made.sweeper.driver
    drive, order = driver.drive, []

    def broken(session, until_us=0):
        order.append(session.run_id)
        if session.run_id == ids[0]:
            raise ValueError("a defect")
        return drive(session, until_us)

    object.__setattr__(driver, "drive", broken)
    for _ in range(30 * 24 * 6):
        engine.recover()
        world.clock.advance(600)
    assert statuses(engine, ids[1:]) == {RunStatus.RECOVERED}
    assert order.count(ids[0]) < 150
    (item,) = engine.escalations()
    assert (item.run_id, item.cause) == (ids[0], "cannot_be_driven")
    assert "a defect" in item.in_doubt
    assert engine.state(ids[0]).run.head < 600
    object.__setattr__(driver, "drive", drive)
    engine.resolve(item.escalation_id, "look_again", by="maya")
    engine.recover(wait_seconds=60)
    assert engine.state(ids[0]).run.status is RunStatus.RECOVERED


def test_a_dead_system_for_thirty_days_fills_no_ledger(build):
    """Nothing can be read or undone: a person is asked, and then only pages are written, fewer and fewer."""
    world = build(keyed())
    world.engine("owner-1")
    (run_id,) = dead_runs(world, 1)
    world.system.tell("shop.reserve", "probe", *["broken"] * 500)
    engine = world.engine("owner-2")
    for _ in range(30 * 24 * 6):
        engine.recover()
        world.clock.advance(600)
    assert engine.state(run_id).run.status is RunStatus.NEEDS_HUMAN
    assert len(world.system.sent("shop.reserve", "probe")) < 20
    assert world.journal.info().max_seq < 150
    assert 30 <= len(world.notifier.notices) < 60


@pytest.mark.parametrize("breaks", ["raises", "exits", "garbage"])
def test_a_notifier_that_breaks_its_port_stops_nobody(build, breaks):
    """Runs recover, items stay due and are delivered once it works; it is not asked for each of them meanwhile."""
    world = build(blind())
    world.engine("owner-1")
    for _ in range(4):
        world.system.tell("shop.shout", "do", "lost")
        world.system.tell("shop.shout", "probe", *["inconclusive"] * 9)
    ids = dead_runs(world, 4, "shop.shout")
    deliver, asked = world.notifier.deliver, []

    def broken(notice):
        asked.append(notice)
        if breaks == "garbage":
            return
        raise SystemExit(1) if breaks == "exits" else RuntimeError("no")

    world.notifier.deliver = broken
    engine = world.engine("owner-2")
    engine.recover(wait_seconds=600)
    assert statuses(engine, ids) == {RunStatus.NEEDS_HUMAN}
    assert engine._made.sweeper.stuck == {}
    assert len(asked) < 12
    world.notifier.deliver = deliver
    world.clock.advance(DAY_SECONDS)
    engine.recover()
    told = {notice.run_id for notice in world.notifier.notices if notice.kind == "escalation"}
    assert told == set(ids)


def test_hung_calls_stop_no_other_run(build):
    """Every place is taken by calls that never return: other runs recover all the same, and the hung ones are asked
    about no further.
    """
    world = build(keyed(limits=Limits(timeout_seconds=0.05)))
    world.engine("owner-1")
    ids = dead_runs(world, 5)
    capability = world.capabilities[0]
    probe, gone, asked = capability.probe, threading.Event(), Counter()

    def hang(question):
        if question.run_id not in ids[:2]:
            return probe(question)
        asked[question.run_id] += 1
        world.clock.advance(10)  # its time passes
        gone.wait(60)
        return probe(question)

    capability.probe = hang
    engine = world.engine("owner-2", settings={"max_parallel_calls": 2})
    engine.recover(wait_seconds=3600)
    assert statuses(engine, ids[2:]) == {RunStatus.RECOVERED}
    assert statuses(engine, ids[:2]) == {RunStatus.NEEDS_HUMAN}
    assert set(asked.values()) == {HUNG_OF_AN_ACTION}
    assert {item.run_id for item in engine.escalations()} == set(ids[:2])
    gone.set()


def test_a_check_that_never_returns_stops_no_other_run(build, monkeypatch):
    """A plugin's check hangs: it is asked twice, by whichever runs, others recover and commit, and nothing is released
    on it; once it has returned, it is asked again.
    """
    monkeypatch.setattr(checking, "LONGEST_CHECK_SECONDS", 1.0)
    monkeypatch.setattr(checking, "CALL_SPARE_SECONDS", 0.0)
    gone, asked = threading.Event(), []

    def hang(run_id):
        asked.append(run_id)
        world.clock.advance(1)  # its time passes on the engine's clock, too
        gone.wait(60)
        return "passed", ""

    world = build(keyed(), queued())
    world.checks |= {"hangs": Check("hangs", hang), "fine": Check("fine", lambda _: ("passed", ""))}
    world.engine("owner-1", settings={"max_parallel_calls": 1})
    dead = dead_runs(world, 3)
    engine = world.engine("owner-2", settings={"max_parallel_calls": 1})
    ends = {}
    for n, check in enumerate(["hangs"] * 5 + ["fine"] * 2):
        run = world.run(f"ends-{n}", engine=engine, check=check)
        run.call("shop.notify", {"name": f"n-{n}"})
        run.finish()
        ends.setdefault(check, []).append(run.run_id)
    for _ in range(3):
        world.clock.advance(60)
        list(engine.sweep())
    assert statuses(engine, dead) == {RunStatus.RECOVERED}
    assert statuses(engine, ends["fine"]) == {RunStatus.COMMITTED}
    assert statuses(engine, ends["hangs"]) == {RunStatus.COMMITTING}
    assert len(asked) == HUNG_OF_AN_ACTION
    assert world.system.count("shop.notify") == 2
    gone.set()
    world.clock.advance(60)
    list(engine.sweep(wait_seconds=120))
    assert statuses(engine, ends["hangs"]) == {RunStatus.COMMITTED}


@pytest.mark.parametrize("hook", ["probe", "undo", "verify_undone", "do", "prepare"])
def test_whichever_hook_hangs_other_runs_are_recovered(build, monkeypatch, hook):
    """Every call that recovery makes on a plugin is bounded in the one place where all pass."""
    for module, spare in SPARE:
        monkeypatch.setattr(module, spare, 0.5)
    world = build(keyed(limits=QUICKLY), prepared(mode="on_success", limits=QUICKLY))
    engine = world.engine()
    of, hung, gone = world.capabilities[1 if hook in {"do", "prepare"} else 0], [], threading.Event()
    ids = []
    for n in range(3):
        run = world.run(str(n))
        run.call("shop.reserve", {"name": f"o-{n}"})
        if of is world.capabilities[1]:
            run.call("shop.publish", {"name": f"o-{n}"})
        ids.append(run)
    real = getattr(of, hook)

    def hang(question):
        if question.run_id != ids[0].run_id:
            return real(question)
        hung.append(question)
        world.clock.advance(10)  # its time passes on the engine's clock, too
        gone.wait(60)
        raise NotSent("much too late")

    setattr(of, hook, hang)
    for run in ids:
        run.finish() if of is world.capabilities[1] else run.fail("told to")
    engine.recover(wait_seconds=3600)
    assert hung
    assert engine.state(ids[0].run_id).run.status is RunStatus.NEEDS_HUMAN
    assert len(statuses(engine, [run.run_id for run in ids[1:]]) & {RunStatus.RECOVERED, RunStatus.COMMITTED}) == 1
    gone.set()


def test_calls_that_never_return_give_their_place_back():
    """Past its time a call frees its place; an action with too many of them is called no more."""
    clock = SimClock()
    places = Places(clock, 2)
    gone = threading.Event()
    entered = threading.Semaphore(0)

    def hang(about):
        with places.held(Seat("shop", about, 5.0)):
            entered.release()
            gone.wait(20)

    threads = [threading.Thread(target=hang, args=(about,)) for about in ("a", "a")]
    for thread in threads:
        thread.start()
        assert entered.acquire(timeout=20)
    clock.advance(5.0)
    assert places.hung() == HUNG_OF_AN_ACTION
    with places.held(Seat("shop", "b", 1.0)):
        assert places.hung() == HUNG_OF_AN_ACTION
    with (
        pytest.raises(NoPlace, match="2 earlier calls about this have not returned"),
        places.held(Seat("shop", "a", 1.0)),
    ):
        raise AssertionError("it was called")
    gone.set()
    for thread in threads:
        thread.join(20)
    with places.held(Seat("shop", "a", 1.0)):
        assert places.hung() == 0


def test_a_send_that_finds_no_place_is_proven_not_sent(build):
    """With every place taken by a call within its time: the next is not made, and the ledger says so."""
    world = build(keyed(), keyed("shop.other", limits={"timeout_seconds": 30.0, "max_attempts": 1}))
    engine = world.engine(settings={"max_parallel_calls": 1})
    places = engine._made.sending._flights._places
    run = world.run()
    with places.held(Seat("else", "x", 10_000.0)):
        places._changed.wait = lambda _: world.clock.advance(10.0)
        result = run.call("shop.reserve", {"name": "o-1"})
    assert result.status is ActionStatus.FAILED
    assert world.system.sent("shop.reserve", "do") == []
    action = run.state.actions[result.action_id]
    assert action.error.code == "no_place"
    run.fail("nothing was made", wait_seconds=60)
