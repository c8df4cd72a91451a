"""`amends recover`: take dead runs over and bring each to rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from amends.core import public
from amends.core.canonical import Json
from amends.core.rows import RunState
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import every_run, output_option, run_state, whole_engine
from amends.surfaces.cli.exits import Exit, of_run_state, worst
from amends.surfaces.cli.output import Output, moment
from amends.surfaces.cli.progress import Watching

if TYPE_CHECKING:
    from amends.bootstrap import Engine

_DRIVEN = ("recovering", "committing")


@click.command()
@click.argument("run", required=False)
@click.option("--to", "checkpoint", default="", help="Undo only what came after this checkpoint, then reopen the run.")
@click.option("--by", default="", envvar="AMENDS_PERSON", help="Who orders it.  [env: AMENDS_PERSON]")
@click.option("--wait", "wait_seconds", default=0.0, type=click.FloatRange(0), help="Seconds to wait for what is due.")
@output_option
def recover(session: Session, run: str | None, checkpoint: str, by: str, wait_seconds: float) -> int:
    """Recover one run, or every run whose driver is gone.

    RUN is an id, the start or end of one, a run key, or WORKFLOW/KEY. A run that a living process drives is left
    alone. The exit
    code is 6 if a person has to decide about one of them, 7 if an outcome is still in doubt.
    """
    if checkpoint and not run:
        raise click.UsageError("--to needs a RUN")
    with Watching(session.output) as progress, whole_engine(session, progress=progress) as engine:
        run_id = run_state(engine, run).run.run_id if run else None
        if run_id:
            states: Iterable[RunState] = engine.recover(run_id, to=checkpoint, by=by, wait_seconds=wait_seconds)
        else:
            states = engine.sweep(wait_seconds=wait_seconds)
        return show_recovered(session.output, engine, states)


def _nothing(engine: Engine) -> str:
    """Why no run was driven: there is none, or nothing is due yet."""
    waiting = [run for run in every_run(engine, _DRIVEN) if run.due_us]
    if not waiting:
        return "no run waits for recovery"
    first = min(run.due_us for run in waiting if run.due_us)
    return f"{len(waiting)} runs wait; the first has something due at {moment(first)}"


def show_recovered(output: Output, engine: Engine, states: Iterable[RunState]) -> Exit:
    """Runs that were driven, and where they stand at last; their exit code. Of each a line is kept, or with `--json`
    its report: there may be thousands.
    """
    from amends.runtime.reporting import run_report

    codes: dict[str, Exit] = {}
    lines: dict[str, Sequence[object]] = {}
    reports: dict[str, dict[str, Json]] = {}
    for state in states:
        run_id = state.run.run_id
        codes[run_id] = of_run_state(state)
        if output.as_json:
            reports[run_id] = run_report(state)
        else:
            lines[run_id] = _line(state)
    if output.as_json:
        output.document({"runs": list(reports.values())})
    elif lines:
        output.table(("run", "workflow/key", "status", "next due", "people are told"), lines.values())
    else:
        output.say(_nothing(engine))
    return worst(codes.values())


def _line(state: RunState) -> Sequence[object]:
    run = state.run
    told = public.run_message(public.of_run(state))
    return run.run_id, f"{run.workflow}/{run.run_key}", run.status, moment(run.due_us), told
