"""Running a scenario: world, script, end state, verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.testing.scenarios.agent import play_apart
from amends.testing.scenarios.checking import check
from amends.testing.scenarios.document import Document, document
from amends.testing.scenarios.loading import list_scenarios, load_scenario
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.playing import Player, ScriptError
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


def run_scenario(root: Path, scenario_id: str, variant: str = "", *, look: Callable[[World, RunIds], None] | None = None) -> Verdict:
    """Run one scenario (one variant) from start to verdict. `look` may look at the world before it is taken down.

    Raises `UnknownName` or `ConfigError` for a scenario that cannot be read; what goes wrong while it runs is in the
    verdict.
    """
    return run(load_scenario(root, scenario_id, variant), look=look)


RunIds = dict[str, str]


def run(scenario: Scenario, *, look: Callable[[World, RunIds], None] | None = None) -> Verdict:
    """Run a scenario that was read already."""
    with tempfile.TemporaryDirectory(prefix="amends-scenario-") as folder, World(scenario, Path(folder)) as world:
        runs: RunIds = {}
        problems: list[str] = []

        def hear(said: dict[str, Any]) -> None:
            if "run" in said:
                runs.pop(said["run"], None)
                runs[said["run"]] = said["run_id"]
                world.stage.known["runs"] = {name: {"id": run_id} for name, run_id in runs.items()}
            if "step" in said:
                world.stage.known[said["step"]] = said["result"]

        try:
            for apart, entries in _acts(scenario.script):
                if apart:
                    play_apart(world.stage, entries, hear, Path(folder))
                else:
                    Player(world.stage, hear).play(entries)
        except (ScriptError, AmendsError) as error:
            problems.append(f"the script stopped: {error}")
        verdict = _verdict(scenario, world, runs, problems)
        if look is not None:
            look(world, runs)
        return verdict


def every_form(root: Path) -> list[tuple[str, str]]:
    """Every (scenario, variant) there is; a scenario without variants has the variant ``""``."""
    return [(found.id, variant) for found in list_scenarios(root) for variant in (found.variants or {"": ""})]


def _acts(script: tuple[Entry, ...]) -> Iterator[tuple[bool, list[Entry]]]:
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
