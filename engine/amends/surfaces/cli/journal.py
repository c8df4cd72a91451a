"""`amends journal`: what is done to the journal itself while nobody uses it."""

from __future__ import annotations

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, settings_of


@click.group()
def journal() -> None:
    """The journal's format."""


@journal.command()
@output_option
def migrate(session: Session) -> None:
    """Bring the journal to this version's ledger format; what it was stays beside it.

    Stop every engine that uses it first.
    """
    from amends import bootstrap

    before, now = bootstrap.migrate(settings_of(session))
    if session.output.as_json:
        session.output.document({"before": before, "now": now})
    elif before == now:
        session.output.line(f"ledger format {now}: nothing to do")
    else:
        session.output.line(f"ledger format {before} became {now}")
