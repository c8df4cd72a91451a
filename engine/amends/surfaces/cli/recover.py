"""`amends recover`: take dead runs over and bring each to rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from amends.core import public
from amends.core.rows import RunState
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import every_run, output_option, run_state, whole_engine
from amends.surfaces.cli.exits import of_runs
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
        states = engine.recover(run_id, to=checkpoint, by=by, wait_seconds=wait_seconds)
        show_recovered(session.output, engine, states)
    return of_runs(states)


def _nothing(engine: Engine) -> str:
    """Why no run was driven: there is none, or nothing is due yet."""
    waiting = [run for run in every_run(engine, _DRIVEN) if run.due_us]
    if not waiting:
        return "no run waits for recovery"
    first = min(run.due_us for run in waiting if run.due_us)
    return f"{len(waiting)} runs wait; the first has something due at {moment(first)}"


def show_recovered(output: Output, engine: Engine, states: Sequence[RunState]) -> None:
    """Runs that were driven, and where they stand."""
    if output.as_json:
        output.document({"runs": [engine.run_report(state.run.run_id) for state in states]})
        return
    if not states:
        output.say(_nothing(engine))
        return
    columns = ("run", "workflow/key", "status", "next due", "people are told")
    output.table(
        columns,
        [
            (
                state.run.run_id,
                f"{state.run.workflow}/{state.run.run_key}",
                state.run.status,
                moment(state.run.due_us),
                public.run_message(public.of_run(state)),
            )
            for state in states
        ],
    )
