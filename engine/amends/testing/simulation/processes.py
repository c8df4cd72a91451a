"""The processes of a simulated world: agents, rescuers, a person, a policy author, and somebody else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from amends.core.errors import AmendsError, JournalUnavailable
from amends.core.rows import RunState
from amends.core.status import RunStatus
from amends.ports.journal import Commit, CommitAnswer, Journal
from amends.ports.services import Milestone
from amends.runtime.engine import Engine
from amends.runtime.runs import Run
from amends.testing.simulation import cast
from amends.testing.simulation.choosing import Choices
from amends.testing.simulation.scheduling import Process, Scheduler
from amends.testing.simulation.system import SimSystem, Weather
from amends.testing.worlds import World, engine_over

SETTINGS: dict[str, Any] = {"lease_seconds": 20.0, "skew_seconds": 1.0, "check_deadline_seconds": 120.0}
_DISK = ("ok", "full", "unacknowledged")
_DISK_WEIGHTS = (0.985, 0.010, 0.005)
_APPROVAL = ("yes", "no", "no, roll back")


class ProcessClock:
    """The world's clock, for one process: waiting hands the baton on."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._clock = process.scheduler.clock

    def now_us(self) -> int:
        return self._clock.now_us()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._process.sleep(seconds)


class ProcessMilestones:
    """Every milestone is a point at which the process may be interrupted."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Be interruptible here."""
        self._process.at(milestone)


class ProcessThreads:
    """Calls are made at once, on the process's one thread; its heartbeat is the renewal before each step."""

    def call(self, work: Callable[[], None], name: str) -> None:
        work()

    def beat(self, work: Callable[[], None], name: str) -> None:
        """A process without a second thread has no heartbeat."""


class ProcessJournal:
    """The world's journal, for one process: a dead one writes and reads nothing; the disk may be full."""

    def __init__(self, journal: Journal, process: Process, weather: Weather) -> None:
        self._journal = journal
        self._process = process
        self._weather = weather

    def commit(self, command: Commit) -> CommitAnswer:
        self._process.brush("committing")  # the run's lock of this process is held
        disk = self._weather.pick("disk", _DISK, _DISK_WEIGHTS)
        if disk == "full":
            raise JournalUnavailable("the disk is full", hint="make room")
        answer = self._journal.commit(command)
        self._process.brush("committed")
        if disk == "unacknowledged":
            raise JournalUnavailable("the disk does not answer", hint="wait for it")
        return answer

    def close(self) -> None:
        """The journal is the world's, and outlives its processes."""

    def __getattr__(self, name: str) -> Any:
        self._process.check()
        return getattr(self._journal, name)


@dataclass
class Stage:
    """What all processes of a world share."""

    world: World
    system: SimSystem
    weather: Weather
    scheduler: Scheduler
    choices: Choices
    policy: cast.SwitchingPolicy = field(default_factory=cast.SwitchingPolicy)

    def engine(self, process: Process) -> Engine:
        """The engine of one process."""
        return engine_over(
            self.world,
            owner=process.name,
            capabilities=cast.capabilities(self.system, process),
            settings=SETTINGS,
            clock=ProcessClock(process),
            progress=ProcessMilestones(process),
            threads=ProcessThreads(),
            journal=ProcessJournal(self.world.journal, process, self.weather),
            authorizer=self.policy,
        )

    def states(self) -> list[RunState]:
        """Every run as recorded now."""
        reader = engine_over(self.world, owner="reader")
        return [reader.state(run.run_id) for run in reader.runs()]


Step = tuple[str, dict[str, str]]


def agent(stage: Stage, key: str, steps: tuple[Step, ...], ending: str, *, threads: int) -> Callable[[Process], None]:
    """An agent's process: one run, its calls, in one thread or two, and how it ends."""

    def body(process: Process) -> None:
        engine = stage.engine(process)
        try:
            run = engine.run(workflow="sim", run_key=key, agent="coder", initiator="noor")
        except AmendsError:
            return
        mine, beside = (steps[:1], steps[1:]) if threads > 1 else (steps, ())
        if beside:
            stage.scheduler.thread(f"{process.name}-beside", process, lambda _: _call(run, beside))
        _call(run, mine)
        try:
            _end(run, ending)
        except AmendsError:
            return  # what is left is a rescuer's
        if not beside:
            with suppress(AmendsError):
                engine.close()

    return body


def _call(run: Run, steps: tuple[Step, ...]) -> None:
    for capability, args in steps:
        with suppress(AmendsError):
            run.call(capability, args)


def _end(run: Run, ending: str) -> None:
    match ending:
        case "finish":
            run.finish(wait_seconds=10)
        case "fail":
            run.fail("the agent gives up", wait_seconds=10)
        case _:
            run.detach()


def rescuer(stage: Stage, *, rounds: int) -> Callable[[Process], None]:
    """A worker's process: it sweeps over everything, again and again."""

    def body(process: Process) -> None:
        engine = stage.engine(process)
        for _ in range(rounds):
            with suppress(AmendsError):  # the disk; it comes back
                engine.recover(wait_seconds=3)
            process.sleep(4)

    return body


def last_rescuer(stage: Stage, *, rounds: int) -> Callable[[Process], None]:
    """A worker that stays until everything rests, or it has looked often enough."""

    def body(process: Process) -> None:
        engine = stage.engine(process)
        for _ in range(rounds):
            engine.recover(wait_seconds=20)
            process.sleep(30)
            if stage.system.calm and all(run.status in RESTING for run in engine.runs()):
                return

    return body


def person(stage: Stage, *, rounds: int, says: tuple[str, ...] = _APPROVAL) -> Callable[[Process], None]:
    """A person at the inbox: answers questions in their own time, in one of these ways."""

    def body(process: Process) -> None:
        for _ in range(rounds):
            process.sleep(5)
            desk = stage.engine(process)
            for row in desk.approvals():
                try:
                    _answer(stage, desk, row.approval_id, says)
                except AmendsError:
                    continue

    return body


def _answer(stage: Stage, desk: Engine, approval_id: str, says: tuple[str, ...]) -> None:
    answer = stage.choices.pick("the person says", says, (0.7, 0.2, 0.1)[: len(says)])
    if answer == "yes":
        desk.approve(approval_id, by="maya")
    else:
        desk.reject(approval_id, by="maya", roll_back=answer == "no, roll back")


def policy_author(stage: Stage) -> Callable[[Process], None]:
    """Somebody tightens the bundle for a while."""

    def body(process: Process) -> None:
        process.sleep(stage.choices.pick("tightened after", (3.0, 20.0)))
        stage.policy.strict = True
        process.sleep(15)
        stage.policy.strict = False

    return body


def somebody_else(stage: Stage, name: str) -> Callable[[Process], None]:
    """Somebody who knows nothing of us sets a value that an agent may have set."""

    def body(process: Process) -> None:
        process.sleep(stage.choices.pick("somebody comes after", (1.0, 6.0, 15.0)))
        stage.system.set(name, "theirs", "somebody else")

    return body


RESTING = frozenset({RunStatus.COMMITTED, RunStatus.RECOVERED, RunStatus.ABANDONED, RunStatus.NEEDS_HUMAN})
