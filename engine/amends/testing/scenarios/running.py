"""Running a scenario: world, script, end state, verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.testing.scenarios.agent import play_apart
from amends.testing.scenarios.checking import check
from amends.testing.scenarios.deciding import ScriptError
from amends.testing.scenarios.document import Document, document
from amends.testing.scenarios.loading import list_scenarios, load_scenario
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.playing import Player
from amends.testing.scenarios.script_model import ENDS, Entry, Open, Recover
from amends.testing.scenarios.world import World

_NOTHING: Document = {
    "run_id": "",
    "run_status": "",
    "public_state": "",
    "actions": [],
    "residual_effects": [],
    "corrections": [],
    "escalations": [],
    "ok": False,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a scenario. `problems` says, one sentence each, what does not hold; `ok` if there are none."""

    name: str
    document: Document
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if everything holds."""
        return not self.problems


def run_scenario(
    root: Path, scenario_id: str, variant: str = "", *, look: Callable[[World, RunIds], None] | None = None
) -> Verdict:
    """Run one scenario (one variant) from start to verdict. `look` may look at the world before it is taken down.

    Raises `UnknownName` or `ConfigError` for a scenario that cannot be read; what goes wrong while it runs is in the
    verdict.
    """
    return run(load_scenario(root, scenario_id, variant), look=look)


RunIds = dict[str, str]


def run(scenario: Scenario, *, look: Callable[[World, RunIds], None] | None = None) -> Verdict:
    """Run a scenario that was read already."""
    with tempfile.TemporaryDirectory(prefix="amends-scenario-") as folder, World(scenario, Path(folder)) as world:
        play = Play(scenario, world, Path(folder))
        try:
            for apart, entries in acts(scenario.script):
                play.act(entries, apart=apart)
        except (ScriptError, AmendsError) as error:
            play.problems.append(f"the script stopped: {error}")
        verdict = play.verdict()
        if look is not None:
            look(world, play.runs)
        return verdict


class Play:
    """A scenario that is being played: which runs were opened, and what went wrong so far."""

    def __init__(self, scenario: Scenario, world: World, folder: Path) -> None:
        self.runs: RunIds = {}
        self.problems: list[str] = []
        self._scenario = scenario
        self._world = world
        self._folder = folder

    def act(self, entries: Sequence[Entry], *, apart: bool) -> None:
        """Play one act, in a process of its own if `apart`. Raises `ScriptError` or `AmendsError`."""
        if apart:
            play_apart(self._world.stage, entries, self._hear, self._folder)
        else:
            Player(self._world.stage, self._hear).play(entries)

    def verdict(self) -> Verdict:
        """What came of it, and what does not hold."""
        return _verdict(self._scenario, self._world, self.runs, self.problems)

    def _hear(self, said: dict[str, Any]) -> None:
        if "run" in said:
            self.runs.pop(said["run"], None)
            self.runs[said["run"]] = said["run_id"]
            self._world.stage.known["runs"] = {name: {"id": run_id} for name, run_id in self.runs.items()}
        if "step" in said:
            self._world.stage.known[said["step"]] = said["result"]


def every_form(root: Path) -> list[tuple[str, str]]:
    """Every (scenario, variant) there is; a scenario without variants has the variant ``""``."""
    return [(found.id, variant) for found in list_scenarios(root) for variant in (found.variants or {"": ""})]


def acts(script: Sequence[Entry]) -> Iterator[tuple[bool, list[Entry]]]:
    """The script in acts: (in a process of its own?, entries)."""
    act: list[Entry] = []
    apart = inside = False
    for entry in script:
        starts_apart = isinstance(entry, Open) and entry.open.process == "apart"
        alone = isinstance(entry, Recover) and entry.recover.process == "apart" and not inside
        if (starts_apart or alone) and act:
            yield False, act
            act = []
        act.append(entry)
        if isinstance(entry, Open):
            inside, apart = not entry.open.raises, starts_apart
        if isinstance(entry, ENDS):
            inside = False
        if alone or (apart and not inside):
            yield True, act
            act, apart = [], False
    if act:
        yield False, act


def _verdict(scenario: Scenario, world: World, runs: RunIds, problems: list[str]) -> Verdict:
    wanted = scenario.expect.run or (list(runs)[-1] if runs else "")
    if wanted not in runs:
        problems.append(f"the run `{wanted}` was never opened")
        return Verdict(scenario.name, {"scenario": scenario.name, **_NOTHING}, tuple(problems))
    engine = Engine.desk(world.project)
    try:
        problems += check(scenario, world, engine, runs, runs[wanted])
        made = document(scenario.name, engine, runs[wanted], world.residue(), ok=not problems)
    finally:
        engine.close()
    return Verdict(scenario.name, made, tuple(problems))
