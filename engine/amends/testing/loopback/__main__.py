"""Run one loopback system as a process: `python -m amends.testing.loopback SYSTEM --state FILE [--port N]`.

Prints one JSON line `{"system", "url", "control_url", "pid"}` and serves until it is terminated or its time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from amends.testing.loopback.catalog import SYSTEMS, build_system
from amends.testing.loopback.server import LoopbackServer


def main() -> int:
    """Serve until SIGTERM or SIGINT, or until the lifetime is over, so that nothing is left behind for good."""
    parser = argparse.ArgumentParser(prog="amends.testing.loopback", description=__doc__)
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("--state", type=Path, help="SQLite file; without it the state is in memory")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--lifetime-s", type=float, default=3600.0, help="end by itself after this many seconds")
    options = parser.parse_args()

    done = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        done.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    server = LoopbackServer(build_system(options.system), options.state, options.port)
    server.start()
    where = {
        "system": options.system,
        "url": server.url,
        "control_url": server.control_url,
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(where) + "\n")
    sys.stdout.flush()
    done.wait(options.lifetime_s)
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
