"""`python -m amends.testing.demo`: the whole story, for real, in a temporary folder on loopback.

Exit status 0 only if the systems themselves say that everything is back as it was, and that the same run without
Amends leaves something behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from amends import _resources
from amends.backends.clock import SystemClock
from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.testing.demo import telling
from amends.testing.demo.control import Control
from amends.testing.scenarios.deciding import ScriptError
from amends.testing.scenarios.loading import load_scenario
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.running import Play, Verdict, acts
from amends.testing.scenarios.script_model import Recover
from amends.testing.scenarios.world import World

SCENARIO = "billing-field"
_PIPE_WIDTH = 140
_RECOVERY_WAITS_SECONDS = "30"
_METRICS = {
    "compensation_success: started undos whose effect was seen to be gone": (
        "SELECT sum(started) AS started, sum(verified) AS verified, sum(verified) / sum(started) AS rate"
        " FROM compensation_success"
    ),
    "compensation_rate: effects that came to exist and were taken back": (
        "SELECT capability, sum(effects) AS effects, sum(compensated) AS compensated"
        " FROM compensation_rate GROUP BY capability ORDER BY capability"
    ),
    "unknown_rate: calls of which it was ever unknown whether they had landed": (
        "SELECT sum(intents) AS calls, sum(ever_unknown) AS ever_unknown, sum(ever_unknown) / sum(intents) AS rate"
        " FROM unknown_rate"
    ),
}


def main() -> int:
    """Play, tell, count."""
    wide = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPE_WIDTH
    console = Console(highlight=False, width=wide)
    scenario = load_scenario(_resources.scenarios_path(), SCENARIO)
    telling.opening(console, scenario)
    try:
        with tempfile.TemporaryDirectory(prefix="amends-demo-") as folder, World(scenario, Path(folder)) as world:
            verdict, seconds = _with_amends(console, scenario, world, Path(folder))
        with tempfile.TemporaryDirectory(prefix="amends-demo-") as folder, World(scenario, Path(folder)) as world:
            left = _without(console, scenario, world, Path(folder))
    except (ScriptError, AmendsError) as error:
        console.print(f"the demo stopped: {error}", style="bold red", markup=False)
        return 1
    problems = list(verdict.problems)
    if all(row["system"] == "repo" for row in left):
        problems.append("the run without Amends left nothing outside the repository: the control proves nothing")
    telling.closing(console, verdict, left, seconds, problems)
    return 1 if problems else 0


def _with_amends(console: Console, scenario: Scenario, world: World, folder: Path) -> tuple[Verdict, float]:
    """The run, its death, its recovery, and everything that can be asked about them."""
    clock, play = SystemClock(), Play(scenario, world, folder)
    began = clock.monotonic()
    for apart, entries in acts(scenario.script):
        if all(isinstance(entry, Recover) for entry in entries):
            continue  # recovery is typed below, as a reader would
        if apart:
            began = clock.monotonic()
            telling.heading(console, "1", "The agent works, and is killed from outside while CI runs (SIGKILL)")
        play.act(entries, apart=apart)
    killed_us, died = clock.now_us(), clock.monotonic() - began
    run_id = next(iter(play.runs.values()))
    _amends(console, world, "runs", "show", run_id)
    telling.systems(console, world.residue())

    telling.heading(console, "2", "Recovery in another process: journal and configuration, no transcript")
    began = clock.monotonic()
    _amends(console, world, "recover", "--wait", _RECOVERY_WAITS_SECONDS)
    seconds = died + clock.monotonic() - began
    verdict = play.verdict()
    telling.systems(console, world.residue())
    telling.corrections(console, verdict)
    _questions(console, world, run_id, killed_us)
    return verdict, seconds


def _questions(console: Console, world: World, run_id: str, killed_us: int) -> None:
    desk = Engine.desk(world.project)
    try:
        state = desk.state(run_id)
        events = [stored.event for stored in desk.kit.journal.events(run_id)]
    finally:
        desk.close()
    telling.heading(console, "3", "What happened when")
    telling.timeline(console, state, events, killed_us)
    telling.heading(console, "4", "What each step changed, who read it, how it went back")
    telling.audit(console, state)
    telling.heading(console, "5", "The four questions, now; and the report that the run's owner gets")
    _amends(console, world, "runs", "show", run_id)
    _amends(console, world, "runs", "report", run_id)
    telling.heading(console, "6", "Three numbers from the ledger, in SQL")
    for meaning, query in _METRICS.items():
        console.print(f"\n{meaning}", style="italic")
        _amends(console, world, "sql", query)


def _without(console: Console, scenario: Scenario, world: World, folder: Path) -> list[dict[str, str]]:
    """The same calls, made directly; killed at the same point; cleaned up with `git revert`."""
    telling.heading(console, "7", "The same run without Amends: the same calls, the same death, then `git revert`")
    control = Control(scenario, world, folder)
    control.run_until_killed()
    telling.reverted(console, control.revert())
    left = world.residue()
    telling.systems(console, left)
    return left


def _amends(console: Console, world: World, *words: str) -> None:
    """What the reader would type, and what it prints."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    console.print(f"\n$ amends {shown}", style="bold cyan", markup=False, soft_wrap=True)
    sys.stdout.flush()
    _run([sys.executable, "-m", "amends", *words], world, console.width)


def _run(argv: Sequence[str], world: World, width: int) -> None:
    done = subprocess.run(argv, cwd=world.project, env={**os.environ, "COLUMNS": str(width)}, check=False)
    if done.returncode:
        raise ScriptError(f"`{' '.join(argv[2:])}` ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
