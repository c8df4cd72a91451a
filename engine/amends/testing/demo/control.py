"""The naive control of the demo: its own process, the same death, and a person who cleans up with `git revert`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from amends.backends.clock import SystemClock
from amends.testing import naive
from amends.testing.scenarios.deciding import ScriptError
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.places import GitRemote, git
from amends.testing.scenarios.script_model import Finish, Open
from amends.testing.scenarios.world import World

# The agent of the story looks at CI before it tells the team: without an outbox it has to.
CHECK_BEFORE = "summary"
_POLL_SECONDS = 0.02
_LONGEST_SECONDS = 60.0


class Control:
    """One naive run of a scenario."""

    def __init__(self, scenario: Scenario, world: World, folder: Path) -> None:
        self._scenario = scenario
        self._world = world
        self._folder = folder
        self._clock = SystemClock()

    def run_until_killed(self) -> None:
        """Play the calls in a process of its own; SIGKILL it when the file is there that its end waits for.

        Raises `ScriptError` if it ends before.
        """
        check = next(entry.open.check for entry in self._scenario.script if isinstance(entry, Open))
        file = next(entry.finish.kill_when for entry in self._scenario.script if isinstance(entry, Finish))
        handover = self._folder / "naive.json"
        said = naive.handover(self._world.stage, self._scenario.script, check=check, check_before=CHECK_BEFORE)
        handover.write_text(said, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "amends.testing.naive", str(handover)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            self._await(self._world.project / file, process)
            os.kill(process.pid, signal.SIGKILL)

    def revert(self) -> str:
        """What a person does who finds a half-done branch; which branch it was. Raises `ScriptError`."""
        remote = next(place for place in self._world.places.values() if isinstance(place, GitRemote))
        new = [row for row in remote.residue() if row["resource"].startswith("refs/heads/")]
        if not new:
            raise ScriptError("the naive run pushed no branch")
        branch = str(new[0]["resource"]).removeprefix("refs/heads/")
        clone = self._folder / "cleanup"
        git(self._folder, "clone", "-q", "--branch", branch, str(remote.path), str(clone))
        git(clone, "revert", "--no-edit", "HEAD")
        git(clone, "push", "-q", "origin", branch)
        return branch

    def _await(self, file: Path, process: subprocess.Popen[str]) -> None:
        until = self._clock.monotonic() + _LONGEST_SECONDS
        while not file.exists():
            if process.poll() is not None or self._clock.monotonic() > until:
                process.kill()
                trouble = process.stderr.read()[-1500:] if process.stderr else ""
                raise ScriptError(f"the naive run never came to `{file.name}`: {trouble}")
            self._clock.sleep(_POLL_SECONDS)
