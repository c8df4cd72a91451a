"""`amends quarantine`: runs that could not be read back, and a person's word that one may be driven again (rule 16)."""

from __future__ import annotations

import click

from amends.core import public
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import CHANNEL, by_option, comment_option, desk, one_of, output_option
from amends.surfaces.cli.output import moment


@click.group()
def quarantine() -> None:
    """Runs that could not be read back, and that nothing drives."""


@quarantine.command("list")
@output_option
def list_quarantines(session: Session) -> None:
    """The runs in quarantine, since when and why."""
    with desk(session) as engine:
        held = engine.quarantines()
    if session.output.as_json:
        session.output.document({"quarantines": [row.model_dump(mode="json") for row in held]})
        return
    columns = ("run", "since", "people were told", "why")
    told = {"open": "not yet", "told": "yes"}
    session.output.table(
        columns, [(row.run_id, moment(row.since_us), told.get(row.status, ""), row.reason) for row in held]
    )
    if not held:
        session.output.say("no run is in quarantine")


@quarantine.command()
@click.argument("run")
@by_option
@comment_option
@output_option
def lift(session: Session, run: str, by: str, comment: str) -> None:
    """Let RUN, an id or the start or end of one, be driven again.

    Refused while it does not read back as its events say. Put its rows right first; `amends ledger verify` says what
    is wrong with them.
    """
    with desk(session) as engine:
        run_id = one_of(run, (row.run_id for row in engine.quarantines()), "quarantined run", "amends quarantine list")
        state = engine.lift_quarantine(run_id, by=by, channel=CHANNEL, comment=comment)
    if session.output.as_json:
        session.output.document({"decided": "lifted", "run_id": run_id, "run_status": state.run.status.value})
        return
    session.output.line(f"lifted: run {run_id} is {state.run.status}")
    session.output.line(public.run_message(public.of_run(state)))
    if not state.run.terminal:
        session.output.say("the next `amends recover` or `amends worker` goes on with it")
