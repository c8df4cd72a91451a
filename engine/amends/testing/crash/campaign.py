"""A campaign: agents and those who recover, over one journal, stopped again and again at moments a seed chooses.

Every order is taken up again until one run of it commits, so that a second effect of anything stands beside the first.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251 - who runs a campaign names its seed
from typing import Any

from amends import bootstrap
from amends.core.errors import Conflict
from amends.core.status import TERMINAL_RUNS
from amends.testing.crash.gaps import Gap, Point
from amends.testing.crash.killer import Child, Death, KillPlan, end
from amends.testing.crash.stage import Stage
from amends.testing.crash.worker import BOX, FEE, Ending, Errand, calls_of

_PATIENCE_SECONDS = 90.0
_THAW_SECONDS = 4.5  # past the lease and every open call, so that another has taken over
_BACKLOG = 6
_ANSWERS = 4  # so often a person looks into one effect before they leave it as it is
_RESCUERS_TOO, _RESCUERS_ASLEEP = 0.5, 0.25  # how often who recovers is stopped as well
_AT_RANDOM = 0.75  # how many kills are at any moment, not at a point
_TAKEN_UP = 0.7  # how many orders have another run before the frozen one wakes
_ENDINGS: tuple[Ending, ...] = ("fail", "fail", "commit", "release")
_HELD: tuple[tuple[Gap, Point], ...] = (
    ("pre-send", "after_intent"),
    ("pre-send", "before_call"),
    ("pre-outcome", "after_call"),
    ("pre-outcome", "before_outcome"),
    ("freeze", "after_freeze"),
    ("undo", "before_undo"),
    ("undo", "after_undo"),
    ("verify", "before_verify"),
    ("verify", "after_verify"),
    ("correction", "before_correction"),
    ("correction", "after_correction"),
)
CALLS = len(calls_of("any", wide=True))


@dataclass(frozen=True, slots=True)
class Frozen:
    """What came of one frozen agent. `late`: the effects that appeared when it woke up."""

    order: str
    where: Death
    between: int | None  # between the last check of this call, which had passed, and its first byte
    late: tuple[dict[str, Any], ...] = ()


@dataclass
class Campaign:
    """One journal's share. Safe for the threads that stop; `close` when all is looked at."""

    stage: Stage
    name: str
    lease_seconds: float
    short_lease: bool = False  # one that a slow machine may lose: an agent may then be refused
    deaths: list[Death] = field(default_factory=list[Death])
    frozen: list[Frozen] = field(default_factory=list[Frozen])
    slept: list[Death] = field(default_factory=list[Death])  # of those who recover
    wrong: list[str] = field(default_factory=list[str])
    orders: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.project = self.stage.another_project(self.name, lease_seconds=self.lease_seconds)
        self.desk = bootstrap.Engine.desk(self.project)
        self._again: deque[tuple[str, int]] = deque()
        self._answered: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._rescuers: list[Child] = []
        self._lanes = 0

    def close(self) -> None:
        """End those who recover, and the desk."""
        self.wrong += [f"{child.name} hangs" for child in end(self._rescuers, _PATIENCE_SECONDS)]
        self.desk.close()

    # --- killing ------------------------------------------------------------------------------------------

    def kill(self, lane: int, dice: Random) -> None:
        """One run loop, killed at a moment of the dice if it lives so long, and perhaps who recovers it."""
        rescuer = self._rescuer(lane)
        if rescuer.plan is None and dice.random() < _RESCUERS_TOO:
            rescuer.aim(KillPlan("any", "after_plan", delay_seconds=dice.uniform(0.001, 0.4)))
        order, errands = self._next(dice)
        agent = self._agent(errands, self._kill_plan(order, dice))
        self._ended(agent, errands)
        self._count(agent)

    def _kill_plan(self, order: str, dice: Random) -> KillPlan:
        if dice.random() < _AT_RANDOM:
            return KillPlan("any", "before_intent", run=f"{order}#1", delay_seconds=dice.uniform(0.001, 0.7))
        gap, point = dice.choice(_HELD)
        nth = 1 if gap in {"freeze", "correction"} else dice.randint(1, CALLS)
        return KillPlan(gap, point, nth, run=f"{order}#1")

    def _count(self, child: Child) -> None:
        if child.death is not None:
            with self._lock:
                self.deaths.append(child.death)

    # --- freezing -----------------------------------------------------------------------------------------

    def freeze(self, lane: int, dice: Random, between: int | None) -> None:
        """One agent is frozen at a moment of the dice, or between the last check and the send of its `between`th call;
        others take its run over and its order up again; then it wakes.
        """
        self._freeze_rescuer(lane, dice)
        order, errands = self._next(dice, alone=True)
        if between is None:
            delay = dice.uniform(0.001, 0.7)
            plan = KillPlan("any", "before_intent", run=f"{order}#1", delay_seconds=delay, also="after_last_check")
        else:
            plan = KillPlan("any", "after_last_check", between, run=f"{order}#1")
        agent = self._agent(errands, replace(plan, freeze=True, clear=self._unlocked))
        self._wait(lambda: agent.hit.is_set() or agent.ended.is_set(), f"{agent.name} is nowhere")
        if agent.frozen is None:
            self._ended(agent, errands)
            return
        checked = agent.heard.count("after_last_check")
        self._terminal(order)
        again: list[Errand] = [(order, 2, "commit")]
        taken_up = dice.random() < _TAKEN_UP
        if taken_up:
            self._ended(self._agent(again, None), again)
        before = {e["seq"] for e in self._effects(order)}
        agent.thaw.set()
        if not agent.ended.wait(_PATIENCE_SECONDS):
            self.wrong.append(f"{agent.name} hangs after it woke up")
        late = tuple(e for e in self._effects(order) if e["seq"] not in before)
        if late and agent.frozen.milestone == "after_last_check":  # the dice have met that moment, too
            between = between or min(checked, CALLS)
        with self._lock:
            self.frozen.append(Frozen(order, agent.frozen, between, late))
            if not taken_up:
                self._again.append((order, 2))

    def _freeze_rescuer(self, lane: int, dice: Random) -> None:
        rescuer = self._rescuer(lane)
        if rescuer.frozen is not None:
            with self._lock:
                self.slept.append(rescuer.frozen)
            rescuer.stop.set()  # it ends after what it was at: one more who stays would take the time of the others
            threading.Timer(_THAW_SECONDS, rescuer.thaw.set).start()
            self._rescuers[lane] = self.stage.rescuer(None, self.project)
            self._rescuers.append(rescuer)
        elif rescuer.plan is None and dice.random() < _RESCUERS_ASLEEP:
            delay = dice.uniform(0.001, 0.4)
            rescuer.aim(KillPlan("any", "after_plan", delay_seconds=delay, freeze=True, clear=self._unlocked))

    def _unlocked(self) -> bool:
        """True if nobody holds the journal's lock: who is frozen with it stops its host's writing altogether."""
        with (self.project / ".amends" / "journal.lock").open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _terminal(self, order: str) -> None:
        def over() -> bool:
            state = self.desk.find("orders", f"{order}#1")
            return state is not None and state.run.status in TERMINAL_RUNS

        self._wait(over, f"the run of {order} is not taken over and settled")

    def _effects(self, order: str) -> list[dict[str, Any]]:
        mine = {f"order:{order}{suffix}" for suffix in ("", BOX, FEE)}
        return [e for e in self.stage.partner.effects() if e["resource"] in mine]

    # --- those who recover, and people --------------------------------------------------------------------

    def begin(self, lanes: int) -> None:
        """Start one who recovers for each thread that stops, and one whom nobody stops."""
        self._lanes = lanes
        self._rescuers = [self.stage.rescuer(None, self.project) for _ in range(lanes + 1)]

    def _rescuer(self, lane: int) -> Child:
        if self._rescuers[lane].ended.is_set():
            self._count(self._rescuers[lane])
            if self._rescuers[lane].death is None:
                self.wrong.append(f"{self._rescuers[lane].name} ended by itself")
            self._rescuers[lane] = self.stage.rescuer(None, self.project)
        return self._rescuers[lane]

    def answer(self) -> Iterator[str]:
        """Answer every open question as a person who looks at the systems would. Yields each question's cause."""
        for item in self.desk.escalations():
            action = self.desk.state(item.run_id).actions[item.action_id]
            marked = [*self.stage.partner.effects(), *self.stage.slack.effects()]
            origin = action.of or action.action_id
            there = [e for e in marked if e["marker"] == origin and e["state"] == "present"]
            self._answered[origin] += 1
            if action.contract.corrects or self._answered[origin] > _ANSWERS:
                choice = "accept_as_is"
            elif "it_happened" in item.choices and there:
                choice = "it_happened"
            elif "it_did_not_happen" in item.choices and not there:
                choice = "it_did_not_happen"
            elif there:
                choice = "compensate"
            else:
                choice = "already_undone" if "already_undone" in item.choices else "accept_as_is"
            with suppress(Conflict):  # it was settled meanwhile
                self.desk.resolve(
                    item.escalation_id,
                    choice,
                    by="maya",
                    evidence="looked at the system's own list",
                    reference=there[0]["reference"] if choice == "it_happened" else "",
                )
                yield f"{action.capability}: {item.cause}"

    # --- the orders ---------------------------------------------------------------------------------------

    def _next(self, dice: Random, *, alone: bool = False) -> tuple[str, list[Errand]]:
        """A new order, after an earlier one that is taken up again."""
        with self._lock:
            order = f"{self.name}-{len(self.orders) + 1}"
            self.orders.append(order)
            errands: list[Errand] = [(order, 1, dice.choice(_ENDINGS))]
            if len(self._again) > _BACKLOG and not alone:
                errands[:0] = [(*self._again.popleft(), "commit") for _ in range(2)]
        return order, errands

    def _agent(self, errands: list[Errand], plan: KillPlan | None) -> Child:
        return self.stage.agent(errands, plan, self.project, wide=True, may_be_refused=self.short_lease)

    def _ended(self, agent: Child, errands: list[Errand]) -> None:
        if not agent.ended.wait(_PATIENCE_SECONDS):
            self.wrong.append(f"{agent.name} hangs")
        ran = {(said["order"], said["attempt"]): said["status"] for said in agent.of("ran")}
        with self._lock:
            for order, attempt, _ in errands:
                if ran.get((order, attempt)) != "committed":
                    self._again.append((order, attempt + 1))

    def finish(self) -> None:
        """Take up what is left until each order has a run that committed, and all that is open is settled."""
        for lane in range(self._lanes):
            self._rescuer(lane).aim(None)
        until = time.monotonic() + _PATIENCE_SECONDS * 2
        while self._again and time.monotonic() < until:
            errands: list[Errand] = [(*self._again.popleft(), "commit") for _ in range(min(8, len(self._again)))]
            self._ended(self._agent(errands, None), errands)
        for order, attempt in self._again:
            self.wrong.append(f"order {order} is not done after {attempt - 1} runs")
        self._wait(lambda: not self.open_runs(), "runs are open that nobody settles")

    def open_runs(self) -> list[str]:
        """The keys of runs that are not over."""
        return [r.run_key for r in self.desk.runs(limit=100_000) if r.status not in TERMINAL_RUNS]

    def _wait(self, done: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            if time.monotonic() > until:
                self.wrong.append(f"{self.name}: {otherwise}: {self.open_runs()[:5]}")
                return
            time.sleep(0.05)
