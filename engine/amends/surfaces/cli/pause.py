"""`amends pause`: no new effects in a scope; recovery goes on (rule 15)."""

from __future__ import annotations

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import by_option, desk, output_option


@click.group()
def pause() -> None:
    """Stop new effects of a tenant, a workflow or all."""


@pause.command("set")
@click.argument("scope")
@by_option
@click.option("--reason", required=True, help="Why; agents and people are told.")
@output_option
def set_pause(session: Session, scope: str, by: str, reason: str) -> None:
    """Pause SCOPE: `all`, `tenant:NAME` or `workflow:NAME`. Recovery of dead runs goes on."""
    with desk(session) as engine:
        engine.pause(scope, reason=reason, by=by)
    _said(session, f"paused: {scope}", scope, active=True)


@pause.command()
@click.argument("scope")
@by_option
@output_option
def lift(session: Session, scope: str, by: str) -> None:
    """Let new effects pass again."""
    with desk(session) as engine:
        engine.lift_pause(scope, by=by)
    _said(session, f"lifted: {scope}", scope, active=False)


@pause.command("list")
@output_option
def list_pauses(session: Session) -> None:
    """The pauses in force."""
    with desk(session) as engine:
        pauses = engine.pauses()
    if session.output.as_json:
        session.output.document({"pauses": [row.model_dump(mode="json") for row in pauses]})
        return
    session.output.table(("scope", "reason", "by"), [(row.scope, row.reason, row.by) for row in pauses])
    if not pauses:
        session.output.say("nothing is paused")


def _said(session: Session, text: str, scope: str, *, active: bool) -> None:
    if session.output.as_json:
        session.output.document({"scope": scope, "active": active})
    else:
        session.output.line(text)
