"""Model check: every world of a small configuration, one after the other.

One agent with three calls, two rescuers, a person who says yes. Everything that could go another way is gone through in
every way, within a budget: so many faults of the outside, so many kills at any point, so many switches between threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """Decides every way: a depth-first walk over the tree of choices. Call `next_world` after each world."""

    def __init__(self) -> None:
        self._path: list[tuple[int, int]] = []  # (taken, of how many)
        self._place = 0

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        if len(options) == 1:
            return options[0]
        if self._place == len(self._path):
            self._path.append((0, len(options)))
        taken, count = self._path[self._place]
        if count != len(options):
            raise RuntimeError(f"the world is not replayed exactly: `{what}` had {count} ways, and now {len(options)}")
        self._place += 1
        return options[taken]

    def next_world(self) -> bool:
        """Go on to the next combination; False if all were seen."""
        self._place = 0
        while self._path:
            taken, count = self._path.pop()
            if taken + 1 < count:
                self._path.append((taken + 1, count))
                return True
        return False

    @property
    def path(self) -> str:
        """The choices of this world, for a report."""
        return ".".join(str(taken) for taken, _ in self._path)


@dataclass
class Explored:
    """What was seen: worlds, distinct states (of run, actions and world), and what broke a rule, by the way there."""

    worlds: int = 0
    states: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def explore(budget: Budget, ending: str) -> Iterator[Explored]:
    """Go through every world of a budget and an ending; yields what was seen so far after each."""
    explorer, seen = Explorer(), Explored()
    while True:
        stage = _stage(explorer, budget)
        stage.scheduler.process("agent", agent(stage, "run", _CALLS, ending, threads=1))
        for number in (1, 2):
            stage.scheduler.process(f"rescuer-{number}", rescuer(stage, rounds=3))
        stage.scheduler.process("person", person(stage, rounds=3, says=("yes",)), mortal=False)
        stage.scheduler.on_turn = partial(_note, seen, stage)
        states = play(stage)
        broken = violations(stage, states)
        seen.worlds += 1
        if broken:
            seen.broken[f"{ending}, {budget}, way {explorer.path}"] = tuple(broken)
        yield seen
        if not explorer.next_world():
            return


def explored(errand: tuple[Budget, str]) -> Explored:
    """All that is seen of a budget and an ending."""
    return list(explore(*errand))[-1]


def _stage(explorer: Explorer, budget: Budget) -> Stage:
    hazards = Hazards(kill=0.5, kills_left=budget.kills, switches_left=budget.switches)
    stage = make_stage(explorer, hazards)
    stage.weather.faults_left = budget.faults
    return stage


def _note(seen: Explored, stage: Stage) -> None:
    """The state of a world: what the ledger says of run and actions, who drives, and what exists."""
    recorded = tuple(_recorded(state) for state in stage.states())
    seen.states.add((*recorded, *((thing.capability, thing.gone_us is None) for thing in stage.system.things)))


def _recorded(state: RunState) -> tuple[object, ...]:
    run = state.run
    actions = tuple((a.capability, a.kind, a.status, a.outcome, a.attempt) for a in state.actions.values())
    return run.status, run.epoch, run.holder_id, actions
