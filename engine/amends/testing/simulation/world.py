"""One simulated world, from a seed: foul weather, then fair, then the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

from amends.core.rows import RunState
from amends.testing.fakes import SimClock
from amends.testing.simulation import cast
from amends.testing.simulation.checking import violations
from amends.testing.simulation.choosing import Choices, Seeded
from amends.testing.simulation.processes import (
    Stage,
    Step,
    agent,
    last_rescuer,
    person,
    policy_author,
    rescuer,
    somebody_else,
)
from amends.testing.simulation.scheduling import Hazards, Scheduler
from amends.testing.simulation.system import SimSystem, Weather
from amends.testing.worlds import World

_FOUL_SECONDS = 60.0
_FAIR_SECONDS = 40_000.0
_ENDINGS = ("finish", "finish", "finish", "fail", "leave")
_STRENGTHS = (0.15, 0.5, 1.0)
_STEPS: tuple[Step, ...] = (
    (cast.KEYED.capability, {"name": "order"}),
    (cast.PROBEABLE.capability, {"name": "list"}),
    (cast.SET.capability, {"name": "flag", "value": "on"}),
    (cast.SEEN.capability, {"name": "ticket"}),
    (cast.ACCEPTED.capability, {"name": "export"}),
    (cast.OUT.capability, {"name": "mail"}),
    (cast.ASK.capability, {"name": "notice"}),
    (cast.GATE.capability, {"name": "report"}),
)


@dataclass(frozen=True)
class Verdict:
    """What came of a world."""

    seed: int
    violations: tuple[str, ...]
    runs: dict[str, int] = field(default_factory=dict[str, int])
    weather: dict[str, int] = field(default_factory=dict[str, int])
    history: tuple[str, ...] = ()
    digest: str = ""  # of every event there was: two plays of one seed have the same


def simulate(seed: int) -> Verdict:
    """Play the world of a seed. The same seed and the same code always give the same world."""
    choices = Seeded(seed)
    stage = make_stage(choices, Hazards(kill=0.01, freeze=0.005, kills_left=4, freezes_left=2))
    _people_it(stage, choices)
    states = play(stage)
    statuses: dict[str, int] = {}
    for state in states:
        statuses[state.run.status.value] = statuses.get(state.run.status.value, 0) + 1
    return Verdict(
        seed,
        tuple(violations(stage, states)),
        statuses,
        stage.weather.happened,
        tuple(stage.scheduler.history),
        stage.world.journal.events_after(0, limit=1_000_000)[-1].hash if states else "",
    )


def make_stage(choices: Choices, hazards: Hazards) -> Stage:
    """An empty world."""
    world = World()
    clock: SimClock = world.clock
    scheduler = Scheduler(clock, choices, hazards)
    scheduler.on_death = lambda process: world.dead.add(process.name)
    weather = Weather(choices)
    return Stage(world, SimSystem(clock, weather), weather, scheduler, choices)


def _people_it(stage: Stage, choices: Choices) -> None:
    stage.weather.strength = choices.pick("weather", _STRENGTHS)
    start = stage.scheduler.process
    for number in range(choices.pick("agents", (1, 2, 3))):
        steps = tuple(step for step in _STEPS if choices.pick(f"calls {step[0]}", (True, False), _chances(step)))
        marked = tuple((name, {**args, "name": f"{args['name']}-{number}"}) for name, args in steps)
        ending = choices.pick("ends", _ENDINGS)
        threads = choices.pick("threads", (1, 1, 2))
        start(f"agent-{number}", agent(stage, f"run-{number}", marked, ending, threads=threads))
    for number in range(choices.pick("rescuers", (1, 2))):
        start(f"rescuer-{number}", rescuer(stage, rounds=12))
    start("person", person(stage, rounds=40), mortal=False)
    if choices.pick("a policy author", (False, True)):
        start("policy-author", policy_author(stage), mortal=False)
    if choices.pick("somebody else", (False, False, True)):
        start("somebody-else", somebody_else(stage, "flag-0"), mortal=False)


def _chances(step: Step) -> tuple[float, float]:
    """A gate holds a whole run up until somebody answers: it is not called in every second world."""
    chance = 0.1 if step[0] == cast.GATE.capability else 0.5
    return chance, 1.0 - chance


def play(stage: Stage) -> list[RunState]:
    """Foul weather, then fair: in the end every run as recorded. Raises what a process died of, other than a kill."""
    stage.scheduler.run(until_seconds=_FOUL_SECONDS)
    stage.weather.foul = False
    stage.policy.strict = False
    stage.scheduler.hazards = Hazards()
    stage.scheduler.process("last-rescuer", last_rescuer(stage, rounds=400), mortal=False)
    stage.scheduler.run(until_seconds=_FAIR_SECONDS)
    for thread in stage.scheduler.threads:
        if thread.error is not None:
            raise RuntimeError(f"`{thread.name}` ended with {thread.error!r}") from thread.error
    return stage.states()
