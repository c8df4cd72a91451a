"""A world's agent in a process of its own, which gets SIGKILL at one point of one call.

    python -m amends.testing.injection.crash HANDOVER

plays the workflow of the file HANDOVER, and says so when it stands where it is to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from amends.core.errors import AmendsError
from amends.ports.services import Milestone
from amends.testing.injection.agent import Agent
from amends.testing.injection.sandbox import open_sandbox
from amends.testing.injection.workflow import Workflow
from amends.testing.scenarios.playing import KillSwitch

_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Errand:
    """What the process is to do, and where it dies. JSON-able."""

    config: str
    workflow: dict[str, Any]
    world: str
    key: str
    step: str
    point: Milestone


def killed(errand: Errand, folder: Path) -> str:
    """Play in a process of its own and SIGKILL it where the errand says. Answers nothing if it was killed there, else
    what the process said instead.
    """
    handover = folder / f"{errand.world}.json"
    handover.touch(mode=0o600)
    handover.write_text(json.dumps(asdict(errand)), encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, "-m", "amends.testing.injection.crash", str(handover)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(_PATIENCE_SECONDS, child.kill)
    watchdog.start()
    try:
        said = next((fact for line in child.stdout or () if (fact := _fact(line))), dict[str, Any]())
        if said.get("kill"):
            os.killpg(child.pid, signal.SIGKILL)
        trouble = child.communicate()[1][-2000:]
    finally:
        watchdog.cancel()
        handover.unlink()
        if child.poll() is None:  # whoever waits for it has been interrupted
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if said.get("kill") and child.returncode == -signal.SIGKILL:
        return ""
    return str(said.get("problem", f"the process ended with {child.returncode}: {trouble}"))


def _fact(line: str) -> dict[str, Any]:
    """What the process says in a line; nothing for what an adapter prints."""
    try:
        value: object = json.loads(line)
    except ValueError:
        return {}
    fact = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return fact if "kill" in fact or "problem" in fact else {}


@dataclass(frozen=True, slots=True)
class _Aim:
    """Sets the switch for the one call in which the process dies."""

    errand: Errand
    switch: KillSwitch

    def before(self, step: str) -> None:
        self.switch.at = self.errand.point if step == self.errand.step else None

    def after(self, step: str) -> bool:
        del step
        return False


def main(handover: Path) -> int:
    """Play what was handed over; it comes to an end only if nobody killed it."""
    errand = Errand(**cast("dict[str, Any]", json.loads(handover.read_text(encoding="utf-8"))))
    switch = KillSwitch(_say)
    try:
        with open_sandbox(Path(errand.config), progress=switch) as engine:
            agent = Agent(engine, Workflow.model_validate(errand.workflow), errand.world, _Aim(errand, switch))
            stop = agent.play(errand.key, finish=False, wait_seconds=0.0)
    except AmendsError as error:
        _say({"problem": error.message})
        return 1
    _say({"problem": f"`{stop.step}`: {stop.why}" if stop else "every call came back"})
    return 1


def _say(fact: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
