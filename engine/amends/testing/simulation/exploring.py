"""Model check: every world of a small configuration, one after the other.

One agent with three calls, two rescuers, a person who says yes. Everything that could go another way is gone through in
every way, within a budget: so many faults of the outside, so many kills at any point, so many switches between threads.

One reduction: of the points of a process between which nothing was written, sent, told or waited for, a kill is tried
at the first only. What a killed process knew dies with it, so that the others would go on from the same world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from amends.core.rows import RunState
from amends.testing.simulation import cast
from amends.testing.simulation.checking import violations
from amends.testing.simulation.processes import Stage, Step, agent, person, rescuer
from amends.testing.simulation.scheduling import Hazards
from amends.testing.simulation.world import make_stage, play

T = TypeVar("T")

_CALLS: tuple[Step, ...] = (
    (cast.KEYED.capability, {"name": "order"}),
    (cast.PROBEABLE.capability, {"name": "list"}),
    (cast.ASK.capability, {"name": "notice"}),
)
ENDINGS = ("finish", "fail", "leave")  # how the agent ends its run


@dataclass(frozen=True, slots=True)
class Budget:
    """How much goes wrong in one world, at the most."""

    faults: int = 0
    kills: int = 0
    switches: int = 0

    def __str__(self) -> str:
        return f"{self.faults} faults, {self.kills} kills, {self.switches} switches"


class Explorer:
    """Decides every way that begins with `fixed` choices: a depth-first walk over the tree of all. Call `next_world`
    after each world.
    """

    def __init__(self, fixed: tuple[int, ...] = ()) -> None:
        self._path = [(taken, 0) for taken in fixed]  # (taken, of how many: 0 until it is known)
        self._fixed = len(fixed)
        self._place = 0

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        if len(options) == 1:
            return options[0]
        if self._place == len(self._path):
            self._path.append((0, len(options)))
        taken, count = self._path[self._place]
        if count not in {0, len(options)}:
            raise RuntimeError(f"the world is not replayed exactly: `{what}` had {count} ways, and now {len(options)}")
        self._path[self._place] = (taken, len(options))
        self._place += 1
        return options[taken]

    def next_world(self) -> bool:
        """Go on to the next combination; False if all were seen."""
        self._place = 0
        while len(self._path) > self._fixed:
            taken, count = self._path.pop()
            if taken + 1 < count:
                self._path.append((taken + 1, count))
                return True
        return False

    @property
    def path(self) -> tuple[int, ...]:
        """The choices of this world."""
        return tuple(taken for taken, _ in self._path)

    @property
    def turnings(self) -> list[tuple[int, ...]]:
        """Beginnings that share out all other worlds: each goes another way than this world at one more choice."""
        return [
            (*self.path[:place], other)
            for place, (taken, count) in enumerate(self._path)
            for other in range(count)
            if other != taken
        ]


@dataclass
class Explored:
    """What was seen: worlds, distinct states (of run, actions and world), and what broke a rule, by the way there."""

    worlds: int = 0
    states: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class Errand:
    """Worlds to go through: those of a budget and an ending of the agent's run that begin with some choices."""

    budget: Budget
    ending: str
    fixed: tuple[int, ...] = ()
    alone: bool = False  # only the first of them


def errands(budget: Budget, ending: str) -> list[Errand]:
    """Every world of a budget and an ending, shared out."""
    explorer = Explorer()
    _play(explorer, budget, ending, Explored())
    others = [Errand(budget, ending, fixed) for fixed in explorer.turnings]
    return [Errand(budget, ending, explorer.path, alone=True), *others]


def explored(errand: Errand) -> Explored:
    """All that is seen in the worlds of an errand."""
    explorer, seen = Explorer(errand.fixed), Explored()
    while True:
        broken = _play(explorer, errand.budget, errand.ending, seen)
        if broken:
            way = ".".join(map(str, explorer.path))
            seen.broken[f"{errand.ending}, {errand.budget}, way {way}"] = broken
        if errand.alone or not explorer.next_world():
            return seen


def _play(explorer: Explorer, budget: Budget, ending: str, seen: Explored) -> tuple[str, ...]:
    stage = _stage(explorer, budget)
    stage.scheduler.process("agent", agent(stage, "run", _CALLS, ending, threads=1))
    for number in (1, 2):
        stage.scheduler.process(f"rescuer-{number}", rescuer(stage, rounds=3))
    stage.scheduler.process("person", person(stage, rounds=3, says=("yes",)), mortal=False)
    stage.scheduler.on_turn = partial(_note, seen, stage)
    states = play(stage)
    seen.worlds += 1
    return tuple(violations(stage, states))


def _stage(explorer: Explorer, budget: Budget) -> Stage:
    hazards = Hazards(kill=0.5, kills_left=budget.kills, switches_left=budget.switches)
    stage = make_stage(explorer, hazards)
    stage.weather.faults_left = budget.faults
    stage.scheduler.footprint = partial(_footprint, stage)
    return stage


def _footprint(stage: Stage) -> object:
    """All that somebody else could ever tell a process by: the ledger, the world, what people were told, the time."""
    world, system = stage.world, stage.system
    written, told = world.journal.info().max_seq, len(world.notifier.notices)
    return world.clock.now_us(), written, told, stage.weather.faults_left, system.footprint


def _note(seen: Explored, stage: Stage) -> None:
    """The state of a world: what the ledger says of run and actions, who drives, and what exists."""
    recorded = tuple(_recorded(state) for state in stage.states())
    seen.states.add((*recorded, *((thing.capability, thing.gone_us is None) for thing in stage.system.things)))


def _recorded(state: RunState) -> tuple[object, ...]:
    run = state.run
    actions = tuple((a.capability, a.kind, a.status, a.outcome, a.attempt) for a in state.actions.values())
    return run.status, run.epoch, run.holder_id, actions
