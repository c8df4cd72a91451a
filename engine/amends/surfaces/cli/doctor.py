"""`amends doctor`: is everything there that a run and its recovery will need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from amends.core.errors import InvalidInput
from amends.spi import DoctorFinding
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.output import Output

_SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}


@click.command()
@click.option("--as-agent", is_flag=True, help="Run it where the agent runs: fail if it could read what it must not.")
@output_option
def doctor(session: Session, *, as_agent: bool) -> int:
    """Examine settings, folder, journal, ledger, plugins, sandboxes, secrets, policies, people and every adapter's
    system.

    Exits 1 if there is a problem; warnings are not problems. Reads only; what it asks outside is bounded.
    """
    from amends.surfaces.cli.examinations import examine_all

    if session.sandbox:
        raise InvalidInput("doctor examines the project with its sandboxes", hint="leave `--sandbox` out")
    findings = list(examine_all(session.config, as_agent=as_agent))
    problems = [finding for finding in findings if finding.level == "problem"]
    if session.output.as_json:
        session.output.document({"ok": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(session.output, findings)
    return Exit.FAILED if problems else Exit.OK


def _show(output: Output, findings: Sequence[DoctorFinding]) -> None:
    from rich.text import Text

    rows: list[Sequence[object]] = []
    for finding in findings:
        sign, style = _SIGNS[finding.level]
        remedy = "" if finding.level == "ok" else finding.remedy
        rows.append((Text(sign, style=style), finding.subject, finding.message, remedy))
    output.table(("", "what", "found", "remedy"), rows)
    counts = {level: sum(finding.level == level for finding in findings) for level in _SIGNS}
    output.say(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['problem']} problems")
