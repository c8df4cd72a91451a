"""Simulated processes: one runs at a time, and wherever it may be interrupted the choices say who goes on.

A process has one thread or more, which move only while they hold the baton. A thread hands it back at every point
(`Process.at`) and whenever it sleeps. There its process may be killed, and then never does anything again; or frozen,
and then does nothing for a while and goes on as if nothing had happened, as after SIGSTOP.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from amends.testing.fakes import SimClock
from amends.testing.simulation.choosing import Choices

_PATIENCE_SECONDS = 60.0


class Killed(BaseException):
    """The process is dead: nothing in it may go on."""


@dataclass
class Hazards:
    """What may befall processes: the chances at each point, and how often in all."""

    kill: float = 0.0
    freeze: float = 0.0
    kills_left: int = 0
    freezes_left: int = 0
    freeze_seconds: tuple[float, ...] = (1.0, 45.0)
    switches_left: int | None = None  # None: whoever runs may be interrupted for another at any point


@dataclass(eq=False)
class Thread:
    """One thread of a simulated process."""

    name: str
    process: Process
    body: Callable[[Process], None]
    wakes_at: float = 0.0
    ended: bool = False
    error: BaseException | None = None
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@dataclass(eq=False)
class Process:
    """One simulated process. Its methods are called on its own threads only."""

    name: str
    scheduler: Scheduler
    mortal: bool = True
    dead: bool = False
    left: object = None  # the footprint of all at its last point

    def at(self, point: str) -> None:
        """A point at which an accident may happen, and another thread go on. Raises `Killed` here and at every later
        point, once the process is dead.
        """
        self.check()
        self.scheduler.accident(self, point)
        self.scheduler.hand_back()
        self.check()

    def brush(self, point: str) -> None:
        """A point at which an accident may happen, and nobody else goes on: the thread holds a lock of its process."""
        self.check()
        self.scheduler.accident(self, point)
        self.check()

    def sleep(self, seconds: float) -> None:
        """Wait in simulated time."""
        self.check()
        self.scheduler.put_off(seconds)
        self.scheduler.hand_back()
        self.check()

    def check(self) -> None:
        """Raises `Killed` if the process is dead."""
        if self.dead:
            raise Killed(self.name)


class Scheduler:
    """Runs threads to their ends, in an order and with the accidents that the choices say."""

    def __init__(self, clock: SimClock, choices: Choices, hazards: Hazards) -> None:
        self.clock = clock
        self.choices = choices
        self.hazards = hazards
        self.threads: list[Thread] = []
        self.history: list[str] = []
        self.on_death: Callable[[Process], None] = lambda _: None
        self.on_turn: Callable[[], object] = lambda: None
        self.footprint: Callable[[], object] | None = (
            None  # where it is the same as at a process's last point, no kill is tried
        )
        self._back = threading.Semaphore(0)
        self._running: Thread | None = None

    def process(self, name: str, body: Callable[[Process], None], *, mortal: bool = True) -> Process:
        """A new process with one thread, which runs when its turn comes."""
        process = Process(name, self, mortal)
        self.thread(name, process, body)
        return process

    def thread(self, name: str, process: Process, body: Callable[[Process], None]) -> None:
        """One more thread of a process."""
        thread = Thread(name, process, body, wakes_at=self.clock.monotonic())
        self.threads.append(thread)
        threading.Thread(target=self._live, args=(thread,), name=f"sim-{name}", daemon=True).start()

    def run(self, *, until_seconds: float) -> None:
        """Go on until every thread has ended, or that much simulated time has passed."""
        limit = self.clock.monotonic() + until_seconds
        while living := [thread for thread in self.threads if not thread.ended]:
            now = self.clock.monotonic()
            ready = [thread for thread in living if thread.wakes_at <= now]
            if not ready:
                wakes = min(thread.wakes_at for thread in living)
                if wakes > limit:
                    return
                self.clock.advance(wakes - now)
                continue
            self.on_turn()
            self._running = self._next(ready)
            self._running.turn.release()
            if not self._back.acquire(timeout=_PATIENCE_SECONDS):
                raise TimeoutError(f"`{self._running.name}` does not come back")

    def _next(self, ready: list[Thread]) -> Thread:
        """The ordinary course first: whoever ran last goes on, unless it is somebody else's turn."""
        if self._running in ready:
            ready.remove(self._running)
            ready.insert(0, self._running)
        if self.hazards.switches_left == 0:
            return ready[0]
        chosen = self.choices.pick("whose turn", ready)
        if self.hazards.switches_left is not None and chosen is not ready[0]:
            self.hazards.switches_left -= 1
        return chosen

    def hand_back(self) -> None:
        """The running thread lets go of the baton, and waits for its next turn."""
        thread = self._current()
        self._back.release()
        if not thread.turn.acquire(timeout=_PATIENCE_SECONDS):
            raise TimeoutError(f"`{thread.name}` was never given its turn")

    def put_off(self, seconds: float) -> None:
        """The running thread has nothing to do for a while."""
        self._current().wakes_at = self.clock.monotonic() + seconds

    def _current(self) -> Thread:
        if self._running is None:
            raise RuntimeError("no simulated thread is running")
        return self._running

    def accident(self, process: Process, point: str) -> None:
        """What may befall a process at a point."""
        hazards = self.hazards
        kill = hazards.kill if hazards.kills_left and process.mortal and self._is_new(process) else 0.0
        freeze = hazards.freeze if hazards.freezes_left and process.mortal else 0.0
        if not kill and not freeze:
            return
        happens = ["nothing", *(["kill"] if kill else []), *(["freeze"] if freeze else [])]
        weights = [1.0 - kill - freeze, *([kill] if kill else []), *([freeze] if freeze else [])]
        match self.choices.pick(f"{process.name} at {point}", happens, weights):
            case "kill":
                hazards.kills_left -= 1
                process.dead = True
                self.history.append(f"{process.name} killed at {point}")
                self.on_death(process)
            case "freeze":
                hazards.freezes_left -= 1
                self._freeze(process, point, self.choices.pick("frozen for", hazards.freeze_seconds))
            case _:
                pass

    def _is_new(self, process: Process) -> bool:
        if self.footprint is None:
            return True
        before, process.left = process.left, self.footprint()
        return before != process.left

    def _freeze(self, process: Process, point: str, seconds: float) -> None:
        self.history.append(f"{process.name} frozen at {point} for {seconds:g} s")
        until = self.clock.monotonic() + seconds
        for thread in self.threads:
            if thread.process is process:
                thread.wakes_at = max(thread.wakes_at, until)

    def _live(self, thread: Thread) -> None:
        try:
            thread.turn.acquire()
            thread.body(thread.process)
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - told to whoever runs the simulation
            thread.error = error
        finally:
            thread.ended = True
            self._back.release()
