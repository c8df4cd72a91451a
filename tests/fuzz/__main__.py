"""`python -m fuzz [--seconds N] [TARGET …]`: what `make fuzz` calls, with the Python of `.fuzz/venv`.

Coverage-guided fuzzing of every reader in `targets.py`, each in a process of its own: what ends a reader's process is
found as well. What was learnt stays in `.fuzz/corpus`, what was found in `.fuzz/found`. `--replay FILE TARGET` reads
one input again. Exits 1 if anything was found.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from fuzz.targets import TARGETS

_LONGEST_LINES = 60
_ENDED = re.compile(r"Done (\d+) runs in (\d+) second")
_COVERED = re.compile(r"cov: (\d+)")


def main() -> int:
    """Fuzz the targets one after the other; a line for each."""
    names = ", ".join(TARGETS)
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--replay", type=Path, help="read this input once instead")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=names)
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown or (given.replay and len(given.targets) != 1):
        parser.error(f"name one of {names}")
    return max([_told(name, given.seconds, given.replay) for name in given.targets or TARGETS])


def _told(name: str, seconds: int, replay: Path | None) -> int:
    """Fuzz in a child; 1 if it found something."""
    command = [sys.executable, "-m", "fuzz.inside", name, str(seconds), *([str(replay.resolve())] if replay else [])]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = ended.stdout + ended.stderr
    if ended.returncode:
        told = [line for line in said.splitlines() if not line.startswith(("INFO:", "WARNING:", "#"))]
        print(f"{name:14} found something:", *told[:_LONGEST_LINES], sep="\n  ", flush=True)
        return 1
    done, covered = _ENDED.search(said), _COVERED.findall(said)
    if done is None or not covered:  # a replay
        print(f"{name:14} is read as declared", flush=True)
    else:
        print(f"{name:14} {done[1]:>9} inputs in {done[2]} s, {covered[-1]} edges, nothing found", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
