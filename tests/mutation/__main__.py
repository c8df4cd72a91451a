"""`python -m mutation [--seconds N] MODULE…`: what `make mutation` calls, with the Python of `.mutation/venv`.

Each mutant is one small change of one function of a core module. The core's own tests must fail on it, or
`survivors.toml` must say why it changes nothing that anybody relies on. Prints a line for each module and every
survivor without a reason; exits 1 if there is one, or if a reason explains nothing any more.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mutation.reasons import Reason, reasons
from mutation.workspace import Mutant, Workspace

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Mutate, judge, report; 0 if every survivor is explained."""
    parser = argparse.ArgumentParser(prog="make mutation")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop then; what was not tried is said")
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="a module of amends.core, such as `planner`")
    given = parser.parse_args()
    unknown = [name for name in given.modules if not (_ROOT / f"engine/amends/core/{name}.py").is_file()]
    if unknown:
        parser.error(f"no module of amends.core: {', '.join(f'`{name}`' for name in unknown)}")
    workspace = Workspace(_ROOT, tuple(dict.fromkeys(given.modules)))
    workspace.build()
    ended = workspace.run(given.seconds)
    if ended:
        why = "the unchanged core did not pass, or the time was over before the first mutant"
        print(f"mutation: mutmut ended with {ended}: {why}", file=sys.stderr)
        return 1
    return _report(workspace.mutants(), reasons())


def _report(mutants: list[Mutant], known: tuple[Reason, ...]) -> int:
    bad = 0
    print(f"{'module':12} {'mutants':>8} {'killed':>8} {'explained':>10} {'open':>6} {'untried':>8} {'score':>7}")
    for module in dict.fromkeys(mutant.module for mutant in mutants):
        of_module = [mutant for mutant in mutants if mutant.module == module]
        alive = [mutant for mutant in of_module if mutant.survived]
        untried = sum(not mutant.tried for mutant in of_module)
        open_ones = [mutant for mutant in alive if not any(reason.explains(mutant) for reason in known)]
        killed = len(of_module) - untried - len(alive)
        score = 100 * killed / max(1, killed + len(alive))
        counts = f"{len(of_module):8} {killed:8} {len(alive) - len(open_ones):10} {len(open_ones):6} {untried:8}"
        print(f"{module:12} {counts} {score:6.1f}%")
        stale = [r for r in known if r.module == module and not untried and not any(map(r.explains, alive))]
        for mutant in open_ones:
            print(f"  survived: {mutant.name}\n{mutant.change}")
        for reason in stale:
            print(f"  explains nothing any more, take it out: {reason.mutant}")
        bad += len(open_ones) + len(stale)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
