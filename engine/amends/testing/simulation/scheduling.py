"""Simulated processes: one runs at a time, and wherever it may be interrupted the choices say who goes on.

A process is a thread that moves only while it holds the baton. It hands the baton back at every point (`Process.at`)
and whenever it sleeps. There it may be killed, and then never does anything again, or frozen, and then does nothing for a
while and goes on as if nothing had happened, as after SIGSTOP.
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


@dataclass(eq=False)
class Process:
    """One simulated process."""

    name: str
    body: Callable[[Process], None]
    scheduler: Scheduler
    mortal: bool = True
    wakes_at: float = 0.0
    dead: bool = False
    ended: bool = False
    error: BaseException | None = None
    points: list[str] = field(default_factory=list[str])
    _turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def at(self, point: str) -> None:
        """An interruptible point. Raises `Killed` here and at every later point, once the process is dead."""
        self.check()
        self.points.append(point)
        self.scheduler.hand_back(self, point)
        self.check()

    def sleep(self, seconds: float) -> None:
        """Wait in simulated time."""
        self.check()
        self.wakes_at = self.scheduler.clock.monotonic() + seconds
        self.scheduler.hand_back(self, "sleep")
        self.check()

    def check(self) -> None:
        """Raises `Killed` if the process is dead."""
        if self.dead:
            raise Killed(self.name)

    def take_turn(self) -> None:
        """Wait for the baton (called on the process's own thread)."""
        if not self._turn.acquire(timeout=_PATIENCE_SECONDS):
            raise TimeoutError(f"`{self.name}` was never given its turn")

    def give_turn(self) -> None:
        """Hand the baton to this process (called by the scheduler)."""
        self._turn.release()


class Scheduler:
    """Runs processes to their ends, in an order and with the accidents that the choices say."""

    def __init__(self, clock: SimClock, choices: Choices, hazards: Hazards) -> None:
        self.clock = clock
        self.choices = choices
        self.hazards = hazards
        self.processes: list[Process] = []
        self.on_death: Callable[[Process], None] = lambda _: None
        self._back = threading.Semaphore(0)
        self.history: list[str] = []

    def start(self, name: str, body: Callable[[Process], None], *, mortal: bool = True) -> Process:
        """A new process, which runs when its turn comes."""
        process = Process(name, body, self, mortal)
        self.processes.append(process)
        threading.Thread(target=self._live, args=(process,), name=f"sim-{name}", daemon=True).start()
        return process

    def run(self, *, until_seconds: float) -> None:
        """Go on until every process has ended or is dead, or that much simulated time has passed."""
        limit = self.clock.monotonic() + until_seconds
        while living := [p for p in self.processes if not p.ended]:
            now = self.clock.monotonic()
            ready = [p for p in living if p.wakes_at <= now]
            if not ready:
                wakes = min(p.wakes_at for p in living)
                if wakes > limit:
                    return
                self.clock.advance(wakes - now)
                continue
            process = self.choices.pick("whose turn", self._in_order(ready))
            self._last = process
            process.give_turn()
            if not self._back.acquire(timeout=_PATIENCE_SECONDS):
                raise TimeoutError(f"`{process.name}` does not come back; it was at {process.points[-3:]}")

    _last: Process | None = None

    def _in_order(self, ready: list[Process]) -> list[Process]:
        """The ordinary course first: whoever ran last goes on."""
        if self._last in ready:
            return [self._last, *(p for p in ready if p is not self._last)]
        return ready

    def hand_back(self, process: Process, point: str) -> None:
        """A process is at a point: let an accident happen, and wait for its next turn."""
        if process.mortal and point != "sleep":
            self._accident(process, point)
        self._back.release()
        process.take_turn()

    def kill(self, process: Process, point: str = "") -> None:
        """This process does nothing any more."""
        process.dead = True
        self.history.append(f"{process.name} killed at {point}")
        self.on_death(process)

    def _accident(self, process: Process, point: str) -> None:
        hazards = self.hazards
        kill = hazards.kill if hazards.kills_left else 0.0
        freeze = hazards.freeze if hazards.freezes_left else 0.0
        if not kill and not freeze:
            return
        happens = ["nothing", *(["kill"] if kill else []), *(["freeze"] if freeze else [])]
        weights = [1.0 - kill - freeze, *([kill] if kill else []), *([freeze] if freeze else [])]
        match self.choices.pick(f"{process.name} at {point}", happens, weights):
            case "kill":
                hazards.kills_left -= 1
                self.kill(process, point)
            case "freeze":
                hazards.freezes_left -= 1
                seconds = self.choices.pick("frozen for", hazards.freeze_seconds)
                self.history.append(f"{process.name} frozen at {point} for {seconds:g} s")
                process.wakes_at = self.clock.monotonic() + seconds
            case _:
                pass

    def _live(self, process: Process) -> None:
        try:
            process.take_turn()
            process.body(process)
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - told to whoever runs the simulation
            process.error = error
        finally:
            process.ended = True
            self._back.release()
