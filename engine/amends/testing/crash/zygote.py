"""A process that has imported everything and opened nothing: its forks start in milliseconds, before any engine exists.

Reads one JSON errand per line from standard input, forks, and answers with the child's process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from amends.testing.crash import worker
from amends.testing.crash.line import Line


def main() -> int:
    """Fork per line until standard input ends."""
    _warm()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    for text in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _child(json.loads(text))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    return 0


def _warm() -> None:
    """Import what an engine imports late, adapters included, without constructing anything."""
    names = ("backends.cedar", "backends.plugin_host")
    for module in (*(f"amends.{name}" for name in names), "amends_http.plugin", "amends_slack.plugin"):
        import_module(module)


def _child(errand: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = 0
    try:
        do(errand)
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it was
        traceback.print_exc()
        status = 1
    finally:
        sys.stderr.flush()
        os._exit(status)


def do(errand: dict[str, Any]) -> None:
    """Carry out one errand: `role`, `name`, `port`, and what the role needs."""
    line = Line(errand["port"], errand["name"])
    project = Path(errand["project"])
    match errand["role"]:
        case "agent":
            told = {name: errand[name] for name in ("may_be_refused", "announced", "wide")}
            worker.agent(project, errand["errands"], line, **told)
        case "rescuer":
            worker.rescuer(project, line, announced=errand["announced"])
        case "approver":
            worker.approver(project, line, announced=errand["announced"])
        case "rescue_once":
            worker.rescue_once(project, line, errand["wait_seconds"])
        case _:
            worker.naive(errand["base_url"], errand["errands"], line)


if __name__ == "__main__":
    sys.exit(main())
