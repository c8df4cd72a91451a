"""Simulated worlds from seeds, on every core, with a bar.

    python -m amends.testing.simulation --seeds 2000 [--first 0]
    python -m amends.testing.simulation --seed 128        replays one world and says what befell it
    python -m amends.testing.simulation --model small|whole    every world of a small configuration

Exit 1 if a rule was broken anywhere; the seed and the commit are printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from amends.testing.simulation.exploring import ENDINGS, Budget, Explored, errands, explored
from amends.testing.simulation.world import Verdict, simulate

_TOLD = 20
_ONE_THING = (Budget(), Budget(faults=1), Budget(kills=1), Budget(switches=1))
_MODELS = {
    "small": _ONE_THING,
    "whole": (*_ONE_THING, Budget(kills=1, switches=1), Budget(faults=1, kills=1), Budget(kills=2)),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Play the worlds that were asked for."""
    parser = argparse.ArgumentParser(prog="amends.testing.simulation", description="Simulated worlds from seeds.")
    parser.add_argument("--seeds", type=int, default=200, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay one world")
    parser.add_argument("--model", choices=sorted(_MODELS), help="go through every world of a small configuration")
    options = parser.parse_args(argv)
    console = Console(stderr=True)
    if options.model is not None:
        return _model(console, _MODELS[options.model])
    if options.seed is not None:
        return _replay(console, options.seed)
    seeds = range(options.first, options.first + options.seeds)
    bad: list[Verdict] = []
    runs: Counter[str] = Counter()
    weather: Counter[str] = Counter()
    accidents = 0
    with multiprocessing.get_context("spawn").Pool() as pool, _bar(console) as bar:
        for verdict in bar.track(pool.imap_unordered(simulate, seeds, chunksize=4), total=len(seeds)):
            runs.update(verdict.runs)
            weather.update(verdict.weather)
            accidents += len(verdict.history)
            if verdict.violations:
                bad.append(verdict)
                console.print(_line(verdict), style="red", highlight=False)
    _tell(len(seeds), bad, runs, weather, accidents)
    return 1 if bad else 0


def _model(console: Console, budgets: Sequence[Budget]) -> int:
    """Explore every budget with every ending of the agent; a line for each, and the sum."""
    shares = [errand for budget in budgets for ending in ENDINGS for errand in errands(budget, ending)]
    found: dict[tuple[Budget, str], Explored] = {}
    with multiprocessing.get_context("spawn").Pool() as pool, _bar(console) as bar:
        answers = bar.track(pool.imap(explored, shares), total=len(shares))
        for kind, group in groupby(zip(shares, answers, strict=True), lambda pair: (pair[0].budget, pair[0].ending)):
            seen = found[kind] = _sum(part for _, part in group)
            sys.stdout.write(
                f"the agent's run ends with `{kind[1]}`, {kind[0]}: {seen.worlds} worlds, {len(seen.states)} states, "
                f"{len(seen.broken)} with violations\n"
            )
            for way, broken in list(seen.broken.items())[:_TOLD]:
                sys.stdout.write(f"  {way}: {'; '.join(broken)}\n")
            sys.stdout.flush()
    whole = _sum(found.values())
    sys.stdout.write(
        f"{whole.worlds} worlds, {len(whole.states)} states at commit {_commit()}: {len(whole.broken)} violations\n"
    )
    return 1 if whole.broken else 0


def _sum(parts: Iterable[Explored]) -> Explored:
    whole = Explored()
    for part in parts:
        whole.worlds += part.worlds
        whole.states |= part.states
        whole.broken |= part.broken
    return whole


def _bar(console: Console) -> Progress:
    return Progress(*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn(), console=console)


def _replay(console: Console, seed: int) -> int:
    verdict = simulate(seed)
    for accident in verdict.history:
        console.print(accident, highlight=False)
    sys.stdout.write(f"seed {seed}: {_counted(verdict.runs.items())}; weather: {_counted(verdict.weather.items())}\n")
    for violation in verdict.violations:
        sys.stdout.write(f"  {violation}\n")
    return 1 if verdict.violations else 0


def _tell(worlds: int, bad: Sequence[Verdict], runs: Counter[str], weather: Counter[str], accidents: int) -> None:
    say = sys.stdout.write
    say(f"{worlds} worlds at commit {_commit()}: {len(bad)} with violations\n")
    say(f"runs: {_counted(runs.most_common())}\n")
    say(f"{accidents} kills and freezes; weather: {_counted(weather.most_common())}\n")
    for verdict in bad[:_TOLD]:
        say(f"{_line(verdict)}\n")


def _line(verdict: Verdict) -> str:
    return f"seed {verdict.seed}: {'; '.join(verdict.violations)}"


def _counted(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in pairs)


def _commit() -> str:
    """The commit whose code this is; `unknown` outside a checkout."""
    here = Path(__file__).parent
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
