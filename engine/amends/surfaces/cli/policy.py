"""`amends policy`: are the policies sound, and do they decide what their tests say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, settings_of
from amends.surfaces.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from amends.core.contract import Contract
    from amends.spi import PolicyContribution


class _Sources(TypedDict):
    contracts: Sequence[Contract]
    contributions: Mapping[str, PolicyContribution]
    owned_prefixes: Mapping[str, Collection[str]]
    site_bundle: Path | None
    known_labels: Mapping[str, str]


@click.group()
def policy() -> None:
    """Check and test policies."""


@policy.command()
@output_option
def check(session: Session) -> int:
    """Guard, parse, lint and validate every policy against the schema that the adapters' contracts make."""
    from amends.backends.cedar.testing import check_policies

    with _sources(session) as sources:
        findings = check_policies(**sources)
    if session.output.as_json:
        from dataclasses import asdict

        session.output.document({"ok": not findings, "findings": [asdict(finding) for finding in findings]})
    elif findings:
        columns = ("where", "policy", "what", "remedy")
        rows = [(f"{f.file}:{f.line}" if f.line else f.file, f.policy_id, f.message, f.hint) for f in findings]
        session.output.table(columns, rows)
    else:
        session.output.line("the policies are sound", "green")
    return Exit.FAILED if any(finding.level == "error" for finding in findings) else Exit.OK


@policy.command()
@click.option("-v", "--verbose", is_flag=True, help="List the tests that passed, too.")
@output_option
def test(session: Session, *, verbose: bool) -> int:
    """Run every policy test: the baseline's, the adapters' and your own."""
    from amends.backends.cedar.testing import run_policy_tests

    with _sources(session) as sources:
        results = run_policy_tests(**sources)
    failed = [result for result in results if not result.passed]
    if session.output.as_json:
        session.output.document(
            {
                "ok": not failed,
                "tests": [
                    {"file": r.file, "name": r.name, "passed": r.passed, "problem": r.problem, "outcome": r.outcome}
                    for r in results
                ],
            }
        )
    else:
        shown = results if verbose else failed
        if shown:
            rows = [("passed" if r.passed else "FAILED", r.file, r.name, r.problem or r.outcome) for r in shown]
            session.output.table(("", "file", "test", "what"), rows)
        session.output.line(f"{len(results) - len(failed)} passed, {len(failed)} failed", "red" if failed else "green")
    return Exit.FAILED if failed else Exit.OK


@contextmanager
def _sources(session: Session) -> Generator[_Sources]:
    """What policies are made of, with the adapters that load."""
    from amends import bootstrap

    settings = settings_of(session)
    loaded = bootstrap.adapters_of(settings, bootstrap.secrets_of(settings))
    for problem in loaded.problems:
        session.output.say(f"left out: {problem}; {problem.remedy}", "yellow")
    journal = bootstrap.journal_of(settings)
    try:
        sources = bootstrap.policy_sources(settings, journal, loaded)
        yield {
            "contracts": [offer.contract for offer in loaded.offers],
            "contributions": loaded.contributions,
            "owned_prefixes": loaded.owned_prefixes,
            "site_bundle": sources.site_bundle,
            "known_labels": sources.known_labels,
        }
    finally:
        journal.close()
