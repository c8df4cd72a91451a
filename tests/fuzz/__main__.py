"""`python -m fuzz [--seconds N] [TARGET …]`: what `make fuzz` calls, with the Python of `.fuzz/venv`.

Coverage-guided fuzzing of every reader in `targets.py`, each in a process of its own: what ends a reader's process is
found as well. What was learnt stays in `.fuzz/corpus`, what was found in `.fuzz/found`. `--replay FILE TARGET` reads
one input again. Exits 1 if anything was found.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz.targets import Target

_ROOT = Path(__file__).parents[2]
_CORPUS, _FOUND = _ROOT / ".fuzz" / "corpus", _ROOT / ".fuzz" / "found"
_POLICIES = ("policy", "policy-schema", "policy-test")
_NAMES = ("settings", "contract", "scenario", *_POLICIES, "payload", "line", "json", "answer")
_LARGEST_BYTES = 8192
_HANG_SECONDS = 20
_LONGEST_LINES = 60
_ENDED = re.compile(r"Done (\d+) runs in (\d+) second")
_COVERED = re.compile(r"cov: (\d+)")


def main() -> int:
    """Fuzz the targets one after the other; a line for each."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--replay", type=Path, help="read this input once instead")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(_NAMES))
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in _NAMES]
    if unknown or (given.replay and len(given.targets) != 1):
        parser.error(f"name one of {', '.join(_NAMES)}")
    if given.inside:
        _fuzz(given.targets[0], given.seconds, given.replay)
    return max([_told(name, given.seconds, given.replay) for name in given.targets or _NAMES])


def _told(name: str, seconds: int, replay: Path | None) -> int:
    """Fuzz in a child; 1 if it found something."""
    _FOUND.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz", "--inside", "--seconds", str(seconds), name]
    command += ["--replay", str(replay.resolve())] if replay else []
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


def _fuzz(name: str, seconds: int, replay: Path | None) -> None:
    """In the child: never returns."""
    atheris: Any = import_module("atheris")  # in its own environment only, and it must see our modules being imported
    with atheris.instrument_imports(include=["amends", "amends_http", "tomllib"]):
        from fuzz.targets import TARGETS

    target: Target = TARGETS[name]

    def read(data: bytes) -> None:
        with suppress(*target.refuses):
            target.read(data)

    if replay is None:
        place = _seeded(name, target)
        options = [str(place), f"-max_total_time={seconds}", f"-max_len={_LARGEST_BYTES}", "-rss_limit_mb=2048"]
    else:
        options = [str(replay)]
    atheris.Setup([name, *options, f"-timeout={_HANG_SECONDS}", f"-artifact_prefix={_FOUND}/{name}-"], read)
    atheris.Fuzz()


def _seeded(name: str, target: Target) -> Path:
    place = _CORPUS / name
    place.mkdir(parents=True, exist_ok=True)
    for data in target.beginnings():
        (place / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    return place


if __name__ == "__main__":
    sys.exit(main())
