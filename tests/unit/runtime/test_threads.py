"""Threads, time-outs, cancelled callers, interrupts, forks: what a call does is recorded (rules 3 and 9)."""

import asyncio
import multiprocessing
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from amends.core.contract import Limits
from amends.core.errors import CallerError, JournalUnavailable, SystemUnavailable
from amends.core.status import ActionStatus, Outcome
from amends.runtime import invoking, runs
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}
SHORT = Limits(timeout_seconds=0.2)


@pytest.fixture
def impatient(monkeypatch):
    """Callers that wait no longer than the contract's time-out."""
    monkeypatch.setattr(runs, "CALL_SPARE_SECONDS", 0.0)
    monkeypatch.setattr(invoking, "CALL_SPARE_SECONDS", 0.0)


def until(condition, seconds=10.0):
    """Wait for what another thread does."""
    done = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("it never became so")


@pytest.mark.parametrize("fault", [None, "refused", "lost"])
def test_a_call_that_returns_after_its_time_out_is_late_evidence(build, impatient, fault):
    """Rule 3: timed out is `unknown`; the thread goes on, and what it learns folds into the action."""
    world = build(keyed(limits=SHORT))
    if fault:
        world.system.tell("shop.reserve", "do", fault)
    held = world.system.hold("shop.reserve", "do")
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    assert (result.status, result.outcome) == (ActionStatus.UNKNOWN, Outcome.UNKNOWN)
    held.go()
    until(lambda: run._parts.sending.in_flight(result.action_id) is None)
    expected = {None: "succeeded", "refused": "failed", "lost": "unknown"}[fault]
    assert run.state.actions[result.action_id].outcome.value == expected
    assert "evidence.late" in [s.event.kind for s in world.journal.events(run.run_id)]
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_refusal_of_an_earlier_attempt_says_nothing_of_the_later_one(build, impatient):
    """Rules 3 and 5: the first attempt's thread comes back late; the second attempt may have landed all the same."""
    world = build(keyed(limits=SHORT))
    first = world.system.hold("shop.reserve", "do")
    world.system.tell("shop.reserve", "do", "lost", "not_sent")  # in the order in which they go on
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    world.clock.advance(60)
    assert run.call("shop.reserve", ARGS).status is ActionStatus.FAILED  # absent, finally
    assert run.call("shop.reserve", ARGS).status is ActionStatus.UNKNOWN  # sent again, and its answer is lost
    first.go()
    until(lambda: run._parts.sending.in_flight(result.action_id) is None)
    until(lambda: run.state.actions[result.action_id].late)
    assert run.state.actions[result.action_id].outcome is Outcome.UNKNOWN
    assert run.call("shop.reserve", ARGS).ok  # a look finds it
    run.finish()


def test_a_second_caller_that_waits_in_vain_is_told_the_recorded_state(build, impatient):
    """Rule 5: a twin call waits bounded and reports; it never raises a bare time-out."""
    world = build(keyed(limits=SHORT))
    held = world.system.hold("shop.reserve", "do")
    run = world.run()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run.call, "shop.reserve", ARGS)
        assert held.arrived.wait(10)
        again = run.call("shop.reserve", ARGS)
        assert again.status in {ActionStatus.RUNNING, ActionStatus.UNKNOWN}
        held.go()
        first.result(10)
    run.detach()


# --- async callers -------------------------------------------------------------------------------------------


def test_async_callers_share_the_same_path(build):
    """Rule 3: `acall` is the same call; many at once, each once."""
    world = build(keyed())

    async def agent(run):
        calls = (run.acall("shop.reserve", {"name": f"o-{n % 3}"}) for n in range(9))
        return await asyncio.gather(*calls)

    with world.run() as run:
        results = asyncio.run(agent(run))
    assert all(r.ok for r in results if not r.repeated)
    assert len({r.action_id for r in results}) == world.system.count() == 3


def test_a_cancelled_caller_does_not_cancel_the_call(build):
    """Rule 3: cancelled is not undone; the outcome of the call in flight is recorded all the same."""
    world = build(keyed())
    held = world.system.hold("shop.reserve", "do")

    async def agent(run):
        task = asyncio.create_task(run.acall("shop.reserve", ARGS))
        assert await asyncio.to_thread(held.arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run = world.run()
    asyncio.run(agent(run))
    # The system asks once more, as a real adapter does immediately before the first byte: it is not wanted any more.
    held.go()
    until(lambda: all(a.status is not ActionStatus.RUNNING for a in run.state.actions.values()))
    (action,) = run.state.actions.values()
    assert action.evidence[-1].code == "not_sent"
    assert world.system.count() == 0
    run.finish()


def test_a_failing_sibling_cancels_and_loses_no_outcome(build):
    """Rule 3: in a task group one call fails, its siblings are cancelled; what they did is in the ledger."""
    world = build(keyed(), keyed("shop.pay"))
    held = world.system.hold("shop.pay", "do")

    async def agent(run):
        async def fails():
            assert await asyncio.to_thread(held.arrived.wait, 10)
            raise RuntimeError("the model gave up")

        async with asyncio.TaskGroup() as group:
            group.create_task(run.acall("shop.reserve", ARGS))
            group.create_task(run.acall("shop.pay", ARGS))
            group.create_task(fails())

    run = world.run()
    with pytest.raises(ExceptionGroup):
        asyncio.run(agent(run))
    held.go()
    until(lambda: all(a.status is not ActionStatus.RUNNING for a in run.state.actions.values()))
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def test_a_caller_cancelled_while_the_intent_is_written_leaves_a_proof(build):
    """Rule 1: giving up between commit and call leaves `not_sent`, never an action in flight that nobody makes."""
    world = build(keyed())
    committing, go = threading.Event(), threading.Event()
    commit = world.journal.commit

    def slow(command):
        answer = commit(command)
        if any(event.kind == "intent_recorded" for event in command.events):
            committing.set()
            go.wait(10)
        return answer

    world.journal.commit = slow

    async def agent(run):
        task = asyncio.create_task(run.acall("shop.reserve", ARGS))
        assert await asyncio.to_thread(committing.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    run = world.run()
    asyncio.run(agent(run))
    until(lambda: all(a.status is ActionStatus.FAILED for a in run.state.actions.values()))
    (action,) = run.state.actions.values()
    assert action.evidence[-1].code == "not_sent"
    assert world.system.sent("shop.reserve", "do") == []
    run.finish()


# --- interrupts and forks -------------------------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """Signals of this process go to its main thread, where the test runs."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are delivered to the main thread only")
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


def test_an_interrupt_freezes_and_drains(build, interruptible):
    """Rule 9: the first SIGINT lets no new intent pass and waits for the call in flight; its outcome is kept."""
    world = build(keyed())
    held = world.system.hold("shop.reserve", "do")
    run = world.run()
    frozen, main = [], threading.main_thread().ident

    def interrupt():
        held.arrived.wait(10)
        flight = run._parts.sending.in_flight(next(iter(run.state.actions)))
        until(lambda: flight._condition._waiters)
        threading.Event().wait(0.1)  # a signal on the threshold of a wait is noticed only after it
        signal.pthread_kill(main, signal.SIGINT)
        until(lambda: run.state.run.status.value == "recovering")
        frozen.append(run.state.actions[next(iter(run.state.actions))].status)
        held.go()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run.call("shop.reserve", ARGS)
    thread.join(10)
    assert frozen == [ActionStatus.RUNNING]  # frozen first, then drained
    (action,) = run.state.actions.values()
    assert action.outcome in {Outcome.SUCCEEDED, Outcome.FAILED}
    run.fail("interrupted", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0


def _use_in_child(run, answers):
    try:
        run.call("shop.reserve", ARGS)
    except CallerError as error:
        answers.put(("refused", error.message))
    else:
        answers.put(("sent", ""))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_may_not_use_the_engine(build):
    """Rule 9: a clear error, and nothing is sent."""
    world = build(keyed())
    run = world.run()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_use_in_child, args=(run, answers))
    child.start()
    child.join(20)
    assert answers.get()[0] == "refused"
    assert world.system.requests == []
    run.finish()


@pytest.mark.parametrize("use", ["checkpoint", "finish", "fail", "detach", "gate"])
def test_a_closed_handle_does_nothing_more(build, use):
    """Rule 12: whoever let go of a run drives it no more, whatever method is tried."""
    world = build(keyed(), queued())
    run = world.run()
    run.detach()
    given = {"checkpoint": ("here",), "fail": ("stop",), "gate": ("shop.notify", ARGS)}.get(use, ())
    with pytest.raises(CallerError):
        getattr(run, use)(*given)


# --- outcomes that cannot be written ---------------------------------------------------------------------------


class Breaking:
    """Breaks the journal as soon as a call has been made."""

    def __init__(self, world):
        self.world = world

    def reached(self, milestone, run_id, action_id):
        if milestone == "before_outcome":
            self.world.journal.fails_before = JournalUnavailable("the disk is full")


def test_an_outcome_that_cannot_be_written_is_kept_and_told_as_unknown(build):
    """Rule 9: the caller gets `unknown`, no new intent passes meanwhile, and the outcome is written at last."""
    world = build(keyed())
    world.engine(progress=Breaking(world))
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    assert (result.status, result.outcome) == (ActionStatus.UNKNOWN, Outcome.UNKNOWN)
    assert run._parts.sending.unwritten == 1
    with pytest.raises(SystemUnavailable):
        run.call("shop.reserve", {"name": "o-2"})
    assert world.system.count() == 1
    world.journal.fails_before = None
    again = run.call("shop.reserve", ARGS)
    assert (again.ok, run._parts.sending.unwritten) == (True, 0)
    world.engines[0]._made.kit.progress.reached = lambda *_: None
    run.finish()


def test_a_kept_outcome_is_written_when_the_run_ends(build):
    """Rule 9: nobody has to call again for an outcome to be kept for good."""
    world = build(keyed())
    world.engine(progress=Breaking(world))
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.journal.fails_before = None
    run.finish()
    assert run.outcome.status.value == "committed"
    assert world.system.sent("shop.reserve", "probe") == []  # it was known, so nobody had to look


def test_many_kept_outcomes_are_written_once_each_by_many_threads(build):
    """Rule 9: threads that flush at once lose none and write none twice."""
    world = build(keyed())
    breaking = Breaking(world)
    world.engine(progress=breaking)
    run = world.run()
    holds = [world.system.hold("shop.reserve", "do") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(run.call, "shop.reserve", {"name": f"o-{n}"}) for n in range(4)]
        for held in holds:
            assert held.arrived.wait(10)
        for held in holds:
            held.go()
        results = [call.result(10) for call in calls]
    kept = run._parts.sending.unwritten
    assert kept >= 1
    breaking.reached = lambda *_: None
    world.engines[0]._made.kit.progress.__class__.reached = lambda *_: None
    world.journal.fails_before = None
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run._parts.sending.flush(), range(8)))
    assert run._parts.sending.unwritten == 0
    assert {run.state.actions[r.action_id].outcome for r in results} <= {Outcome.SUCCEEDED, Outcome.FAILED}
    run.finish()


def test_an_outcome_whose_acknowledgement_was_lost_is_not_written_twice(build):
    """Rule 9: it is durable already; keeping it once more would be a second, contradicting fact."""
    world = build(keyed())

    class LosingAcknowledgement:
        def reached(self, milestone, run_id, action_id):
            if milestone == "before_outcome":
                world.journal.fails_after = JournalUnavailable("no answer")

    world.engine(progress=LosingAcknowledgement())
    run = world.run()
    result = run.call("shop.reserve", ARGS)
    world.journal.fails_after = None
    assert result.status is ActionStatus.UNKNOWN
    run.finish()
    kinds = [s.event.kind for s in world.journal.events(run.run_id)]
    assert (kinds.count("outcome_recorded"), kinds.count("evidence.late")) == (1, 0)
