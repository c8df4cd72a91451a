"""What importing a plugin costs, as a ratio to what every plugin needs anyway: machines differ, ratios hold.

    python benchmarks/plugin_import.py [--rounds N]

Each round starts a fresh interpreter for each plugin, imports `amends` and `amends.spi`, and then the plugin's entry
module, in processor time. The ratio is that of the plugin's own part to the first part; medians of the rounds count.
Modules are compiled before the first round that counts, as they are on every start but the first of an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import entry_points

LIMIT_MILLISECONDS = 100.0
CHILD = """
import json, sys, time
begin = time.process_time()
import amends, amends.spi
between = time.process_time()
__import__(sys.argv[1])
end = time.process_time()
print(json.dumps([between - begin, end - between, len(sys.modules)]))
"""


def measured(module: str, compiled: str) -> tuple[float, float, int]:
    """Seconds of `amends` with its SPI, further seconds of the module, and how many modules are loaded then. Compiled
    modules are kept in the folder `compiled`, whatever the environment says of them.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    argv = [sys.executable, "-c", CHILD, module]
    told = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment).stdout
    base, own, count = json.loads(told)
    return base, own, count


def row(plugin: str, rounds: Sequence[tuple[float, float, int]]) -> bool:
    """One line of the result."""
    ratio = statistics.median(own / base for base, own, _ in rounds)
    milliseconds = statistics.median(own for _, own, _ in rounds) * 1_000
    holds = milliseconds <= LIMIT_MILLISECONDS
    state = "ok  " if holds else "OVER"
    words = f"{ratio:5.2f}x {milliseconds:6.1f} ms {rounds[0][2]:5} modules"
    print(f"{state}  {plugin:<20} {words}   at most {LIMIT_MILLISECONDS:.0f} ms")
    return holds


def main(arguments: Sequence[str]) -> int:
    """Print every plugin's ratio and time beside the limit; exit 1 if one is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="interpreters for each plugin")
    count = parser.parse_args(arguments).rounds
    plugins = sorted(entry_points(group="amends"), key=lambda point: point.name)
    if not plugins:
        raise SystemExit("no plugin is installed")
    seen: dict[str, list[tuple[float, float, int]]] = {point.name: [] for point in plugins}
    with tempfile.TemporaryDirectory() as compiled:
        for point in plugins:
            measured(point.module, compiled)
        for _ in range(count):
            for point in plugins:
                seen[point.name].append(measured(point.module, compiled))
    base = statistics.median(one for rounds in seen.values() for one, _, _ in rounds)
    print(f"      {'amends, amends.spi':<20}  1.00x {base * 1_000:6.1f} ms")
    held = [row(name, rounds) for name, rounds in seen.items()]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
