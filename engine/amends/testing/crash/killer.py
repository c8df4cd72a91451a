"""The killer: outside every child, it hears where each is, lets it go on, and sends SIGKILL or SIGSTOP where its plan
says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, get_args

from amends.testing.crash.gaps import Gap, GapTracker, KitPoint, Point

_WAIT_SECONDS = 30.0


class Tally:
    """Counts announcements over several children, so that one plan has one victim among them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0

    def add(self) -> int:
        """One more; answers the how manieth it was."""
        with self._lock:
            self._number += 1
            return self._number


@dataclass(frozen=True, slots=True)
class KillPlan:
    """Kill at the `nth` announcement of `milestone` in `gap`, of a run whose name is `run` (empty: any run).

    Alone: the child is killed where it stands. With `delay_seconds`: it goes on, and on, and is killed that much later,
    at whatever it does then, if it still lives. With `in_flight`: it goes on and is killed once that answers True.
    With `freeze`: it is stopped instead, until its `thaw` is set; it goes on for a moment while that is not `clear`
    (another of its threads holds what all need). With `among`: counted over all who share it. `also`: a point of the
    kit's that the child announces too, so that it can be told what it had passed.
    """

    gap: Gap | Literal["any"]
    milestone: Point
    nth: int = 1
    run: str = ""
    delay_seconds: float = 0.0
    in_flight: Callable[[], bool] | None = None
    freeze: bool = False
    clear: Callable[[], bool] = lambda: True
    among: Tally | None = None
    also: KitPoint | Literal[""] = ""

    @property
    def announced(self) -> str:
        """The point of the kit's that the child must announce; empty if the engine's own are enough."""
        return self.also or (self.milestone if self.milestone in get_args(KitPoint) else "")


@dataclass(frozen=True, slots=True)
class Death:
    """A child that was killed or frozen: where it was, told from its own announcements."""

    name: str
    pid: int
    gap: Gap
    milestone: str
    how: str
    run_id: str


@dataclass
class Child:
    """One process on the line. `ended` is set when it is gone, killed or not; `hit` when its plan was carried out."""

    name: str
    plan: KillPlan | None = None
    pid: int = 0
    death: Death | None = None
    frozen: Death | None = None
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    hit: threading.Event = field(default_factory=threading.Event)
    thaw: threading.Event = field(default_factory=threading.Event)
    heard: list[str] = field(default_factory=list[str])  # every milestone, in order
    milestones: Counter[str] = field(default_factory=Counter[str])

    def aim(self, plan: KillPlan | None) -> None:
        """Give a child that runs already another plan."""
        self.milestones.clear()
        self.frozen = None
        self.hit.clear()
        self.thaw.clear()
        self.plan = plan

    def of(self, word: str) -> list[dict[str, Any]]:
        """What the child said with this word."""
        return [said for said in self.said if said["word"] == word]


def end(children: Iterable[Child], patience_seconds: float) -> Iterator[Child]:
    """Let every child go on to its end; yields those that do not come to it in time."""
    children = list(children)
    for child in children:
        child.stop.set()
        child.thaw.set()
    for child in children:
        if not child.ended.wait(patience_seconds):
            yield child


class Killer:
    """Listens on a loopback port and serves each child's line in a thread of its own."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._known = threading.Condition()
        self.children: dict[str, Child] = {}
        threading.Thread(target=self._accept, name="killer", daemon=True).start()

    def expect(self, name: str, plan: KillPlan | None) -> Child:
        """Announce a child before it starts: its plan holds from its first word. One nobody expected may live."""
        with self._known:
            self.children[name] = Child(name, plan)
            return self.children[name]

    def met(self, child: Child) -> Child:
        """Wait until an expected child has said hello. Raises `TimeoutError`."""
        with self._known:
            if not self._known.wait_for(lambda: child.pid, _WAIT_SECONDS):
                raise TimeoutError(f"`{child.name}` never said hello")
        return child

    @property
    def deaths(self) -> list[Death]:
        """Everybody killed so far."""
        with self._known:
            return [child.death for child in self.children.values() if child.death is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(line,), name="killer-line", daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as lines:
            hello = json.loads(lines.readline())
            with self._known:
                child = self.children.setdefault(hello["name"], Child(hello["name"]))
                child.pid = hello["pid"]
                self._known.notify_all()
            try:
                _Watch(child, line, lines).serve()
            finally:
                child.ended.set()


class _Watch:
    """One child's line, from hello to its end."""

    def __init__(self, child: Child, line: socket.socket, lines: Any) -> None:
        self._child = child
        self._line = line
        self._lines = lines
        self._tracker = GapTracker()
        self._run = ""
        self._run_id = ""
        self._milestone = ""
        self._timer: threading.Timer | None = None
        self._end = threading.Lock()
        self._over = False  # nobody is shot after the end: the process id may be another's by then
        self._shot = False

    def serve(self) -> None:
        self._answer("g")
        for said in self._heard():
            if said["word"] == "milestone":
                self._hear(said)
                if self._due(said["milestone"]) and not self._timed():
                    plan = self._child.plan
                    if plan is None or not plan.freeze:
                        return self._kill()
                    self._freeze(plan, "frozen")
            else:
                self._note(said)
            if not self._answer("q" if said["word"] == "idle" and self._child.stop.is_set() else "g"):
                break
        return self._ended()

    def _heard(self) -> Iterator[dict[str, Any]]:
        """What is said, until the line ends or breaks; half a word of a dying child is none."""
        with contextlib.suppress(OSError):
            for text in self._lines:
                if text.endswith(b"\n"):
                    yield json.loads(text)

    def _note(self, said: dict[str, Any]) -> None:
        self._child.said.append(said)
        if said["word"] == "run":
            self._run = said["name"]
            self._child.milestones.clear()

    def _timed(self) -> bool:
        """True if the plan is for later: the clock runs, the child goes on."""
        plan = self._child.plan
        if plan is None or not plan.delay_seconds:
            return False
        self._timer = threading.Timer(plan.delay_seconds, self._shoot, (plan,))
        self._timer.start()
        return True

    def _shoot(self, plan: KillPlan) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            if plan.freeze:
                return self._freeze(plan, "frozen at random")
            with self._end:
                self._shot = not self._over
                if self._shot:
                    os.kill(self._child.pid, signal.SIGKILL)
        return None

    def _signal(self, number: int) -> None:
        """Raises `ProcessLookupError` after the end: the process id may be another's by then."""
        with self._end:
            if self._over:
                raise ProcessLookupError
            os.kill(self._child.pid, number)

    def _ended(self) -> None:
        """The line is closed: by its end, or by the shot."""
        with self._end:
            self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._shot:
            self._buried("at random")

    def _hear(self, said: dict[str, Any]) -> None:
        self._milestone, self._run_id = said["milestone"], said["run_id"]
        self._child.heard.append(self._milestone)
        self._tracker.hear(said["milestone"])

    def _due(self, milestone: str) -> bool:
        plan = self._child.plan
        if plan is None or milestone != plan.milestone or plan.gap not in {"any", self._tracker.gap}:
            return False
        if plan.run and self._run != plan.run:
            return False
        if plan.among is not None:
            return plan.among.add() == plan.nth
        self._child.milestones[milestone] += 1
        return self._child.milestones[milestone] == plan.nth

    def _kill(self) -> None:
        plan = self._child.plan
        if plan is not None and plan.in_flight is not None:
            self._answer("g")
            until = time.monotonic() + _WAIT_SECONDS
            while not plan.in_flight():
                if time.monotonic() > until:
                    raise TimeoutError("the request that was to be in flight never reached the system")
        os.kill(self._child.pid, signal.SIGKILL)
        for said in self._heard():  # what it announced before it died, unanswered
            if said["word"] == "milestone":
                self._hear(said)
        self._buried("held" if plan is None or plan.in_flight is None else "in flight")

    def _freeze(self, plan: KillPlan, how: str) -> None:
        """Stop the child, see that it stands, and let it go on once somebody thaws it."""
        until = time.monotonic() + _WAIT_SECONDS
        self._signal(signal.SIGSTOP)
        while not (_stopped(self._child.pid) and plan.clear()):
            if time.monotonic() > until:
                self._signal(signal.SIGCONT)
                raise TimeoutError(f"`{self._child.name}` was sent SIGSTOP and did not stop where it holds nothing")
            self._signal(signal.SIGCONT)
            time.sleep(0.02)
            self._signal(signal.SIGSTOP)
        self._child.frozen = self._where(how)
        self._child.hit.set()
        self._child.thaw.wait()
        self._signal(signal.SIGCONT)

    def _buried(self, how: str) -> None:
        self._child.death = self._where(how)
        self._child.hit.set()

    def _where(self, how: str) -> Death:
        child = self._child
        return Death(child.name, child.pid, self._tracker.gap, self._milestone, how, self._run_id)

    def _answer(self, word: str) -> bool:
        self._tracker.release()
        try:
            self._line.sendall(word.encode())
        except OSError:
            return False
        return True


def _stopped(pid: int) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip().startswith("T")
