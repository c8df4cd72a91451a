"""The crash matrix: a process is killed or frozen at every point the engine announces, in forward, recovery and
release; others recover, and the real systems are counted. Beside it the same kills without a ledger.

    python -m amends.testing.crash.matrix [--short] [--jobs N]

Exit 1 on any difference, on a point that was not reached, and if the control shows no duplicate.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from amends.testing.crash.audit import audit
from amends.testing.crash.cases import (
    CALLS,
    HOWS,
    MODES,
    POINTS,
    RECOVERERS,
    UNREACHED,
    Case,
    Counts,
    all_cases,
    short_cases,
)
from amends.testing.crash.gaps import Point
from amends.testing.crash.killer import KillPlan
from amends.testing.crash.playing import Late, Played, play
from amends.testing.crash.project import ENVIRONMENT
from amends.testing.crash.stage import Stage

_CONTROL: tuple[Point, ...] = ("after_intent", "before_call", "after_call", "after_outcome")
_LATE: tuple[Late, ...] = get_args(Late)
_TOLD = 40


@dataclass
class Control:
    """The same calls by a loop that writes nothing down, killed and started again."""

    kills: int = 0
    expected: int = 0
    seen: int = 0
    duplicates: list[str] = field(default_factory=list[str])


@dataclass
class Matrix:
    """Everything that was played."""

    played: list[Played]
    control: Control
    differences: list[str]  # of the cases, and what the systems show over all of them

    @property
    def sound(self) -> bool:
        """True if nothing differs, everybody was hit, and the control fails."""
        return not self.differences and all(p.hit for p in self.played) and bool(self.control.duplicates)


def run(folder: Path, cases: Sequence[Case], *, jobs: int, bar: Progress | None = None) -> Matrix:
    """Play these cases, so many at once, and the control. The environment must hold `project.ENVIRONMENT`."""
    task = bar.add_task("crash", total=len(cases)) if bar is not None else None
    with Stage(folder / "amends") as stage:
        with ThreadPoolExecutor(jobs) as pool:
            played: list[Played] = []
            for future in as_completed([pool.submit(play, stage, case) for case in cases]):
                played.append(future.result())
                if bar is not None and task is not None:
                    bar.advance(task)
        differences = [found for p in played for found in p.differences]
        differences += _over_all(stage, played)
        complaints = stage.log.read_text(encoding="utf-8")
        if "Traceback" in complaints:
            differences.append(f"a process broke: {complaints[-2000:]}")
    with Stage(folder / "control") as stage:
        return Matrix(played, _control(stage, range(1, CALLS + 1)), differences)


def _over_all(stage: Stage, played: Sequence[Played]) -> list[str]:
    """What the systems show that no case may have caused; what was sent on waking is counted apart."""
    findings = audit(stage.partner, stage.slack, [e["marker"] for e in stage.partner.present()])
    late = {f"order:{p.case.name}:" for p in played if p.late is not None}
    twice = [found for found in findings.duplicates if not any(order in found for order in late)]
    notes = [found for found in twice if found.startswith("message")]
    if len(notes) == sum(p.late == "second note" for p in played):
        twice = [found for found in twice if found not in notes]
    return [*findings.undone_twice, *twice]


def _control(stage: Stage, calls: Iterable[int]) -> Control:
    control = Control()
    for point in _CONTROL:
        for call in calls:
            order = f"naive-{point}-{call}".replace("_", "-")
            killed = stage.naive([(order, 1, "commit")], KillPlan("any", point, call))
            killed.ended.wait(60)
            control.kills += killed.death is not None
            stage.naive([(order, 2, "commit")]).ended.wait(60)
            control.expected += CALLS
    control.seen = len(stage.partner.present())
    control.duplicates = audit(stage.partner, stage.slack, ()).duplicates
    return control


# --- what is told ---------------------------------------------------------------------------------------------


def table_of(matrix: Matrix) -> Table:
    """Points by modes: how many cases each way, effects expected and seen, differences; at the end the control."""
    table = Table(
        title="crash matrix: cases by way and recoverers (r); effects expected / seen at the systems' own side"
    )
    table.add_column("mode", no_wrap=True)
    table.add_column("stopped at", no_wrap=True)
    for name in (*(f"{how} {n}r" for how in HOWS for n in RECOVERERS), "made", "left", "notes", "differ"):
        table.add_column(name, justify="right", no_wrap=True)
    for mode in MODES:
        for point in POINTS:
            mine = [p for p in matrix.played if p.case.mode == mode and p.case.point == point and not p.case.honest]
            if mine:
                table.add_row(mode, point, *_cells(mine))
        table.add_section()
    ours = [p for p in matrix.played if not p.case.honest]
    table.add_row("all", "", *_cells(ours))
    control = matrix.control
    made = f"{control.expected} / {control.seen}"
    twice = f"{control.seen - control.expected} twice"
    table.add_row("control", "no ledger", str(control.kills), "", "", "", made, made, "", twice, style="red")
    return table


def _cells(mine: Sequence[Played]) -> list[str]:
    ways = [[p for p in mine if (p.case.how, p.case.recoverers) == (how, n)] for how in HOWS for n in RECOVERERS]
    expected = sum((p.case.expected for p in mine), Counts())
    seen = sum((p.seen for p in mine), Counts())
    return [
        *(f"{sum(p.hit for p in way)}/{len(way)}" if way else "" for way in ways),
        f"{expected.made} / {seen.made}",
        f"{expected.left} / {seen.left}",
        f"{expected.notes} / {seen.notes}",
        str(sum(len(p.differences) for p in mine)),
    ]


def late_table_of(matrix: Matrix) -> Table:
    """What no ledger can stop, counted apart: frozen after the last check, taken over, woken."""
    table = Table(title="frozen between the last check and the first byte")
    for name in ("mode", "frozen", "took effect on waking", *_LATE):
        table.add_column(name, justify="right" if name != "mode" else "left")
    for mode in MODES:
        mine = [p for p in matrix.played if p.case.honest and p.case.mode == mode]
        if not mine:
            continue
        late = [p.late for p in mine if p.late is not None]
        table.add_row(mode, str(len(mine)), str(len(late)), *(str(late.count(what)) for what in _LATE))
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Play the matrix, print the tables."""
    parser = argparse.ArgumentParser(prog="amends.testing.crash.matrix", description="The crash matrix.")
    parser.add_argument("--short", action="store_true", help="each kind of point once")
    parser.add_argument("--jobs", type=int, default=4, help="how many cases at once")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    os.environ.update(ENVIRONMENT)
    cases = list(short_cases() if options.short else all_cases())
    bar = Progress(
        *Progress.get_default_columns()[:-1],
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with tempfile.TemporaryDirectory(prefix="amends-crash-") as folder, bar:
        matrix = run(Path(folder), cases, jobs=options.jobs, bar=bar)
    _tell(matrix)
    return 0 if matrix.sound else 1


def _tell(matrix: Matrix) -> None:
    console = Console(width=max(Console().width, 130))
    console.print(table_of(matrix))
    if any(p.case.honest for p in matrix.played):
        console.print(late_table_of(matrix))
    console.print("points a mode does not have:")
    for mode, points in UNREACHED.items():
        for point, reason in points.items():
            console.print(f"  {mode:<9} {point:<18} {reason}", highlight=False)
    for found in matrix.differences[:_TOLD]:
        console.print(found, style="red", highlight=False, markup=False)
    console.print(f"{len(matrix.played)} cases, {len(matrix.differences)} differences", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
