"""A process that is killed between the durable intent and the recorded outcome of one call.

    python -m amends.testing.conformance.gap PROJECT ERRAND

makes one call in PROJECT (`ERRAND` is JSON: capability, args, at), says so when it has reached the milestone `at`, and
waits there to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from amends.bootstrap import Engine
from amends.ports.services import Milestone
from amends.testing.conformance.performing import open_run, perform
from amends.testing.conformance.subject import Args

_PATIENCE_SECONDS = 60.0


def killed_in_the_gap(project: Path, capability: str, args: Args, at: str, environment: Mapping[str, str]) -> None:
    """Run one call in a process of its own and SIGKILL it at the milestone `at`.

    Raises `AssertionError` with what the process said, if it never got there.
    """
    errand = json.dumps({"capability": capability, "args": dict(args), "at": at})
    child = subprocess.Popen(
        [sys.executable, "-m", "amends.testing.conformance.gap", str(project), errand],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    watchdog = threading.Timer(_PATIENCE_SECONDS, child.kill)
    watchdog.start()
    try:
        reached = child.stdout.readline() if child.stdout else b""
        os.killpg(child.pid, signal.SIGKILL)
    finally:
        watchdog.cancel()
        said = child.communicate()[1].decode(errors="replace")
    if reached.strip() != at.encode():
        raise AssertionError(f"the process never reached `{at}`: {reached!r} {said[-2000:]}")


class _StopAt:
    """Progress that announces one milestone and goes no further."""

    def __init__(self, at: str) -> None:
        self._at = at

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Say where we are, if it is where we are to be killed."""
        if milestone == self._at:
            sys.stdout.write(f"{milestone}\n")
            sys.stdout.flush()
            threading.Event().wait()


def main(argv: Sequence[str]) -> int:
    """Make the call of the errand."""
    project, errand = Path(argv[0]), json.loads(argv[1])
    with Engine.open(project, progress=_StopAt(errand["at"]), mirror=False) as engine:
        run = open_run(engine, "killed")
        result = perform(engine, run, errand["capability"], errand["args"], wait_seconds=5.0)
        sys.stderr.write(f"the call came back: {result}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
