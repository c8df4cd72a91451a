"""A part of a script played by a process of its own, which can really be killed.

    python -m amends.testing.scenarios.agent <handover.json>

It knows the project's folder, the entries it plays and what was known before; it says one JSON line per fact.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from amends.core.errors import AmendsError
from amends.testing.scenarios.deciding import ScriptError
from amends.testing.scenarios.playing import Player, Tell
from amends.testing.scenarios.script_model import Entry
from amends.testing.scenarios.world import Stage

_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


def play_apart(stage: Stage, entries: Sequence[Entry], tell: Tell, folder: Path) -> None:
    """Play entries in a process of its own; SIGKILL it when it says so. `tell` hears what it says.

    Raises `ScriptError` if it ended otherwise than its script says.
    """
    handover = folder / "handover.json"
    told = _ENTRIES.dump_python(tuple(entries), mode="json", by_alias=True, exclude_unset=True)
    data = {"stage": asdict(stage), "entries": told}
    handover.write_text(json.dumps(data), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "amends.testing.scenarios.agent", str(handover)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    killed, problem = False, ""
    if process.stdout is None or process.stderr is None:
        raise ScriptError("the agent's process has no output to read")
    with process, process.stdout as lines:
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if said.get("kill"):
                os.kill(process.pid, signal.SIGKILL)
                killed = True
                break
            if "problem" in said:
                problem = str(said["problem"])
            else:
                tell(said)
        process.wait()
        trouble = process.stderr.read()[-2000:]
    if problem:
        raise ScriptError(problem)
    if process.returncode != (-signal.SIGKILL if killed else 0):
        raise ScriptError(f"the agent's process ended with {process.returncode}: {trouble}")


def main(handover: Path) -> int:
    """Play what was handed over; 0 unless something was wrong."""
    data = json.loads(handover.read_text(encoding="utf-8"))
    player = Player(Stage(**data["stage"]), _say)
    try:
        player.play(_ENTRIES.validate_python(data["entries"]))
    except (ScriptError, AmendsError) as error:
        _say({"problem": f"{type(error).__name__}: {error}"})
        return 1
    return 0


def _say(fact: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fact, default=str) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
