"""`amends audit`: before an agent gets a tool, what is known about taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from amends.core.audit import AuditLine, audit_line
from amends.core.rows import CertificateRow
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.output import Output, moment

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.core.contract import Contract

TITLES = {
    "effect": "effect",
    "lives": "where it lives",
    "readers": "who reads it",
    "undo": "undo",
    "undo_cost": "undo cost",
    "verify": "verify",
    "keying": "keying",
    "permitted_outcomes": "permitted outcomes",
    "authorized_by": "authorized by",
    "queue": "queue",
    "proof": "proof",
}


@click.command()
@click.argument("capability", required=False)
@click.option("--ready", is_flag=True, help="Exit 1 if anything is blank: not every question is answered.")
@output_option
def audit(session: Session, capability: str | None, *, ready: bool) -> int:
    """What each capability changes, how it is undone and verified, and which policies allow it. Blanks are red."""
    with whole_engine(session) as engine:
        offers = [engine.kit.catalog.get(capability)] if capability else engine.kit.catalog.all()
        lines = [_line(engine, offer.contract) for offer in offers]
        left_out = [problem.name for problem in engine.plugins.problems]
    blank = [line for line in lines if line.blanks]
    if session.output.as_json:
        session.output.document(
            {
                "ready": not blank and not left_out,
                "capabilities": [line.as_dict() for line in lines],
                "left_out": left_out,
            }
        )
    else:
        _show(session.output, lines)
        if blank:
            session.output.say(f"{sum(len(line.blanks) for line in blank)} blanks in {len(blank)} capabilities", "red")
    return Exit.FAILED if ready and (blank or left_out) else Exit.OK


def _line(engine: Engine, contract: Contract) -> AuditLine:
    permits = {name: engine.permits(contract.namespace, name) for name in contract.action_names()}
    return audit_line(contract, permits, _certificate(engine, contract))


def _certificate(engine: Engine, contract: Contract) -> str:
    """The newest drill certificate of this very contract, if it is still valid."""
    now = engine.kit.clock.now_us()
    valid = [
        row
        for row in _certificates(engine)
        if row.capability == contract.capability and row.contract_digest == contract.digest and row.expires_us > now
    ]
    if not valid:
        return ""
    newest = max(valid, key=lambda row: row.certified_us)
    return f"drilled {moment(newest.certified_us)}, valid until {moment(newest.expires_us)} ({len(valid)} subjects)"


def _certificates(engine: Engine) -> list[CertificateRow]:
    return [CertificateRow.model_validate_json(row.body) for row in engine.kit.journal.rows("certificate")]


def _show(output: Output, lines: Sequence[AuditLine]) -> None:
    """One block a capability: eleven answers do not fit beside each other."""
    from rich.table import Table
    from rich.text import Text

    for line in lines:
        block = Table(box=None, show_header=False, pad_edge=False)
        for name, title in TITLES.items():
            answer = getattr(line, name)
            block.add_row(Text(f"  {title}"), Text(answer) if answer else Text("— blank —", style="bold red"))
        output.heading(line.capability)
        output.show(block)
