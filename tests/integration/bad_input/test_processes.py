"""Processes that do what they should not: two drivers, a fork, a clock that jumps, a person at the keyboard."""

import os
import signal
import time

import pytest

from amends.backends.clock import SystemClock
from amends.bootstrap import wiring
from amends.core.errors import CallerError, Conflict

DRIVER = """
run = open_run("1")
reserve(run)
print("driving", flush=True)
sys.stdin.readline()
print(reserve(run).status.value, run.finish().status.value, flush=True)
engine.close()
"""

INTERRUPTED = """
class Here:
    def reached(self, milestone, run_id, action_id):
        if milestone == "before_call":
            print("calling", flush=True)
engine = Engine.open(sys.argv[1], mirror=False, progress=Here())
run = open_run("1")
try:
    reserve(run)
except KeyboardInterrupt:
    print("interrupted", flush=True)
state = engine.state(run.run_id)
print(state.run.status.value, [a.status.value for a in state.actions.values()], flush=True)
try:
    reserve(run, "o2")
except PolicyError as error:
    print(error.code, flush=True)
run.fail("interrupted", wait_seconds=5)
print(engine.state(run.run_id).run.status.value, flush=True)
engine.close()
"""


class MovableClock(SystemClock):
    """The real clock, plus an offset that a test sets for all of them."""

    offset_us = 0

    def now_us(self):
        return super().now_us() + MovableClock.offset_us


def test_a_second_process_learns_who_drives_a_run(child, open_engine, sent):
    """Neither opening, resuming nor recovering takes a live run away; holder and end are named, nothing is sent."""
    driver = child(DRIVER)
    assert driver.stdout.readline() == "driving\n"
    engine = open_engine()
    (run,) = engine.runs()
    attempts = (
        lambda: engine.run(workflow="orders", run_key="1", agent="bot"),
        lambda: engine.run(workflow="orders", run_key="1", agent="bot", resume=True),
        lambda: engine.recover(run.run_id),
    )
    for attempt in attempts:
        with pytest.raises(Conflict) as refused:
            attempt()
        assert refused.value.data["holder"] == run.holder_id
        assert refused.value.data["until_us"] > run.opened_us
    assert engine.recover() == []
    assert sent() == [("POST", "/v1/reservations")]
    out, _ = driver.communicate("go\n", timeout=60)
    assert out.split() == ["succeeded", "committed"]
    assert len(sent()) == 1


def test_a_forked_child_may_not_call(engine, sent, reserve):
    """A clear error in the child, nothing sent; the parent's run goes on."""
    run = engine.run(workflow="orders", run_key="1", agent="bot")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = []
        for use in (lambda: reserve(run), lambda: engine.run(workflow="w", run_key="2", agent="bot"), engine.recover):
            try:
                use()
                said.append("used")
            except CallerError as error:
                said.append("forked" if "fork" in str(error) else str(error))
        os.write(write, " ".join(said).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 1000).decode() == "forked forked forked"
    assert sent() == []
    assert reserve(run).ok
    assert run.finish().status.value == "committed"


def test_a_clock_that_goes_backwards_moves_no_ledger_time(open_engine, sent, monkeypatch, reserve):
    """Events keep their order in time, and the run ends as it would have."""
    monkeypatch.setattr(wiring, "SystemClock", MovableClock)
    engine = open_engine()
    run = engine.run(workflow="orders", run_key="1", agent="bot")
    assert reserve(run, "o1").ok
    monkeypatch.setattr(MovableClock, "offset_us", -3_600 * 1_000_000)
    result = reserve(run, "o2")
    assert result.ok
    outcome = run.fail("the clock went back", wait_seconds=5)
    times = [stored.event.ts_us for stored in engine.kit.journal.events(run.run_id)]
    assert times == sorted(times)
    assert outcome.status.value == "recovered"
    assert sorted(path.rsplit("/", 1)[-1] for _, path in sent()) == [
        "release",
        "release",
        "reservations",
        "reservations",
    ]
    assert engine.kit.journal.verify() == ()


def test_an_interrupt_in_mid_call_drains_and_freezes(child, partner):
    """The call in flight is recorded, no further one is sent, and what happened is taken back."""
    delay = partner.arm("delay_after_commit", method="POST", path="/v1/reservations", seconds=0.5)
    process = child(INTERRUPTED, opened=False)
    assert process.stdout.readline() == "calling\n"
    while not partner.fired(delay):
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines() == ["interrupted", "recovering ['succeeded']", "run_frozen", "recovered"]
    assert [r["path"] for r in partner.requests("POST", "/v1/reservations")] == ["/v1/reservations"]
    assert partner.count("reservation") == 0


TWICE = """
class Here:
    def reached(self, milestone, run_id, action_id):
        if milestone == "before_call":
            print("calling", flush=True)
engine = Engine.open(sys.argv[1], mirror=False, progress=Here())
with open_run("1") as run:
    reserve(run)
"""


def test_a_second_interrupt_leaves_the_call_to_recovery(child, open_engine, partner):
    """Nobody waits for the call any more; it lands, and another process finds it and takes it back."""
    delay = partner.arm("delay_before_commit", method="POST", path="/v1/reservations", seconds=0.4)
    process = child(TWICE, opened=False)
    assert process.stdout.readline() == "calling\n"
    while not partner.fired(delay):
        pass
    process.send_signal(signal.SIGINT)
    until = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0
    engine = open_engine()
    engine.recover(wait_seconds=20)
    (run,) = engine.runs()
    assert run.status.value == "recovered"
    assert partner.count("reservation") == 0
    assert partner.count("reservation", "removed") == 1
