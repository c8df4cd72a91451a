"""`amends audit`: before an agent gets a tool, what is known about taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from amends.core.audit import AuditLine, DrillRecord, audit_line, drill_record
from amends.core.canonical import JsonMap
from amends.core.rows import CertificateRow
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.output import Output, moment

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.core.contract import Contract
    from amends.runtime.kit import Offer

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
    """What each capability changes, how it is undone and verified, and which policies allow it. Blanks are red.

    `drilled` says when its undo was last proven by `amends drill`, how many days ago, and until when that is believed.
    """
    with whole_engine(session) as engine:
        offers = [engine.kit.catalog.get(capability)] if capability else engine.kit.catalog.all()
        certificates = [CertificateRow.model_validate_json(r.body) for r in engine.kit.journal.rows("certificate")]
        drills = [_drill(engine, offer, certificates) for offer in offers]
        lines = [_line(engine, offer.contract, drill) for offer, drill in zip(offers, drills, strict=True)]
        left_out = [problem.name for problem in engine.plugins.problems]
    blank = [line for line in lines if line.blanks]
    if session.output.as_json:
        session.output.document(
            {
                "ready": not blank and not left_out,
                "capabilities": [
                    {**line.as_dict(), "drill": _as_dict(drill)} for line, drill in zip(lines, drills, strict=True)
                ],
                "left_out": left_out,
            }
        )
    else:
        _show(session.output, lines, drills)
        if blank:
            session.output.say(f"{sum(len(line.blanks) for line in blank)} blanks in {len(blank)} capabilities", "red")
    return Exit.FAILED if ready and (blank or left_out) else Exit.OK


def _line(engine: Engine, contract: Contract, drill: DrillRecord) -> AuditLine:
    permits = {name: engine.permits(contract.namespace, name) for name in contract.action_names()}
    return audit_line(contract, permits, "a valid drill certificate" if drill.standing == "valid" else "")


def _drill(engine: Engine, offer: Offer, certificates: Sequence[CertificateRow]) -> DrillRecord:
    from amends.runtime.asking import ENGINE_MAJOR

    return drill_record(
        offer.contract,
        certificates,
        adapter=offer.drill_subject(""),
        engine_major=ENGINE_MAJOR,
        now_us=engine.kit.clock.now_us(),
    )


def _as_dict(drill: DrillRecord) -> JsonMap:
    return {
        "standing": drill.standing,
        "why": drill.why,
        "drilled": None if drill.drilled_us is None else moment(drill.drilled_us),
        "expires": None if drill.expires_us is None else moment(drill.expires_us),
        "age_days": drill.age_days,
        "subjects": drill.subjects,
    }


def _in_words(drill: DrillRecord) -> str:
    if drill.drilled_us is None or drill.expires_us is None:
        return "never" if drill.standing == "never" else f"nothing to drill: {drill.why}"
    when = f"{moment(drill.drilled_us)}, {drill.age_days:g} days ago"
    if drill.standing == "void":
        return f"void, {drill.why}: drilled {when}"
    if drill.standing == "expired":
        return f"expired {moment(drill.expires_us)}: drilled {when}"
    subjects = f", {drill.subjects} subjects" if drill.subjects > 1 else ""
    return f"{when}; valid until {moment(drill.expires_us)}{subjects}"


def _show(output: Output, lines: Sequence[AuditLine], drills: Sequence[DrillRecord]) -> None:
    """One block a capability: twelve answers do not fit beside each other."""
    from rich.table import Table
    from rich.text import Text

    for line, drill in zip(lines, drills, strict=True):
        block = Table(box=None, show_header=False, pad_edge=False)
        for name, title in TITLES.items():
            answer = getattr(line, name)
            block.add_row(Text(f"  {title}"), Text(answer) if answer else Text("— blank —", style="bold red"))
        block.add_row(Text("  drilled"), Text(_in_words(drill)))
        output.heading(line.capability)
        output.show(block)
