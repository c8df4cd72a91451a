"""How recovery grows with the number of dead runs: memory of one sweep over 1,000 and over 10,000 of them.

    .venv/bin/python benchmarks/recovery.py [RUNS ...]

Each number gets a process of its own: runs are opened and make one call each in a real SQLite journal, their driver is
gone, and one engine sweeps until all are recovered. Told are the time for one run, the greatest memory that Python held
during the sweep beyond what it held before, and the events written.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from amends.backends.sqlite_journal import SqliteJournal
from amends.core.status import RunStatus
from amends.testing.fakes import SequentialIds, SimClock
from amends.testing.worlds import World, keyed

_USUAL = (1_000, 10_000)


class _Silent:
    """Progress that nobody keeps."""

    def reached(self, milestone: str, run_id: str, action_id: str) -> None:
        """Nothing."""


def main(numbers: list[int]) -> None:
    """One line for each number, and the ratio of the last to the first."""
    held = [_in_a_process(runs) for runs in numbers]
    if len(held) > 1:
        print(f"memory of {numbers[-1]} runs / of {numbers[0]}: {held[-1] / held[0]:.2f}")


def _in_a_process(runs: int) -> float:
    ended = subprocess.run([sys.executable, __file__, "--one", str(runs)], check=True, capture_output=True, text=True)
    line, megabytes = ended.stdout.rsplit("\n", 2)[:2]
    print(line, flush=True)
    return float(megabytes)


def one(runs: int) -> None:
    """Make and recover this many; the last line is the memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal.open(Path(folder), clock=SimClock(), ids=SequentialIds(node=9))
        world = World(keyed(), journal=journal)
        world.engine("owner-1")
        for n in range(runs):
            world.run(str(n)).call("shop.reserve", {"name": f"o-{n}"})
        world.die()
        world.engines[0]._made.claims._sessions.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - it is dead
        world.system.requests.clear()
        engine = world.engine("owner-2", notifiers=(), progress=_Silent())
        before = journal.info().max_seq
        tracemalloc.start()
        began, ended = time.perf_counter(), 0
        for state in engine.sweep(wait_seconds=600):
            ended += state.run.status is RunStatus.RECOVERED
            world.system.requests.clear()
            world.authorizer.requests.clear()
        seconds = time.perf_counter() - began
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        events = journal.info().max_seq - before
        world.close()
    each = f"{1000 * seconds / runs:.1f} ms (traced) and {events / runs:.1f} events each"
    print(f"{runs} runs: {ended} recovered, {each}, {most / 1e6:.1f} MB at most")
    print(most / 1e6)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]))
    else:
        main([int(number) for number in sys.argv[1:]] or list(_USUAL))
