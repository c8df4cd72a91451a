"""How recovery grows with the number of dead runs: time and memory of one sweep over 1,000 and over 10,000 of them.

    .venv/bin/python benchmarks/recovery.py [RUNS ...]

For each number one process opens that many runs, which make one call each and are left when the process ends; another
one sweeps until all are recovered. Everything is real: SQLite, Cedar, the plugin host and an adapter whose effects are
files, which are counted at the end. Told are the time for one run and how much more memory the sweeping process held at
the most than before its sweep.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from amends import Engine
from amends.core.status import RunStatus
from amends.testing.distributions import MadeDistributions
from amends.testing.projects import make_project

_USUAL = (1_000, 10_000)


def main(numbers: list[int]) -> None:
    """One line for each number, and the ratios of the last to the first."""
    told = [_measured(runs) for runs in numbers]
    if len(told) > 1:
        (first_ms, first_mb), (last_ms, last_mb) = told[0], told[-1]
        times, memory = last_ms / first_ms, last_mb / first_mb
        print(f"{numbers[-1]} runs / {numbers[0]}: {times:.2f} of the time each, {memory:.2f} of the memory")


def _measured(runs: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as place:
        made = MadeDistributions(Path(place) / "site")
        made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
        project = make_project(Path(place) / "project")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(made.folder), os.environ.get("PYTHONPATH", "")])}

        def child(errand: str) -> str:
            command = [sys.executable, __file__, errand, str(runs), str(project)]
            return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

        child("--open")
        made_effects = _effects(project)
        seconds, megabytes, recovered = (float(part) for part in child("--sweep").split())
        left = _effects(project)
    each = 1000 * seconds / runs
    print(
        f"{runs} runs, {made_effects} effects: {recovered:.0f} recovered, {left} effects left, {each:.1f} ms each, "
        f"{megabytes:.1f} MB more at the most",
        flush=True,
    )
    return each, megabytes


def _effects(project: Path) -> int:
    return len(list((project.parent / "shop").glob("reservation-*")))


def open_runs(runs: int, project: Path) -> None:
    """Leave so many runs behind, as a process that ends does."""
    engine = Engine.open(project, mirror=False)
    for n in range(runs):
        engine.run(workflow="order", run_key=str(n), agent="coder").call("shop.reserve", {"name": f"lamp-{n}"})
    os._exit(0)  # nobody closes anything


def sweep(project: Path) -> None:
    """Recover them all; prints seconds, megabytes and how many."""
    with Engine.open(project, mirror=False) as engine:
        before, began, recovered = _most_kilobytes(), time.perf_counter(), 0
        for state in engine.sweep(wait_seconds=3600):
            recovered += state.run.status is RunStatus.RECOVERED
        print(time.perf_counter() - began, (_most_kilobytes() - before) / 1024, recovered)


def _most_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--open", number, path]:
            open_runs(int(number), Path(path))
        case ["--sweep", _, path]:
            sweep(Path(path))
        case numbers:
            main([int(number) for number in numbers] or list(_USUAL))
