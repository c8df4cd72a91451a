"""`amends policy`: are the policies sound, and do they decide what their tests say. Other questions: `policy_*.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import InvalidInput
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.policy_ask import evaluate, explain
from amends.surfaces.cli.policy_change import diff, replay
from amends.surfaces.cli.policy_junit import junit
from amends.surfaces.cli.policy_known import history, list_, show
from amends.surfaces.cli.policy_reload import reload
from amends.surfaces.cli.policy_sources import bundle_folder, folder_argument, project_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amends.backends.cedar.coverage import Coverage
    from amends.backends.cedar.findings import PolicyFinding
    from amends.backends.cedar.testing import PolicyTestResult


@click.group()
def policy() -> None:
    """Policies: check, format, test, ask, explain, compare, replay."""


@policy.command()
@folder_argument
@click.option("--strict", is_flag=True, help="Warnings fail, too.")
@output_option
def check(session: Session, folder: Path | None, *, strict: bool) -> int:
    """Guard, parse, lint and validate every policy against the schema that the adapters' contracts make.

    FOLDER holds a bundle to check instead of the project's. Files of people are parsed in a process of their own, so
    that nothing in them can end this one. Exit 1 if anything would keep the bundle from being used.
    """
    from amends.backends.cedar import isolated
    from amends.backends.cedar.findings import findings_of, has_errors
    from amends.core.errors import ConfigError

    project_of(session, folder)  # what is wrong with the project itself is no finding about its policies
    try:
        sources = sources_of(session, folder)
        findings = isolated.check(sources.whole)
        if sources.label_problem is not None:
            findings += [replace(one, file="site/bundle.toml") for one in findings_of(sources.label_problem)]
    except ConfigError as problem:
        findings = findings_of(problem)
    _show_findings(session, findings)
    return Exit.FAILED if has_errors(findings) or (strict and findings) else Exit.OK


@policy.command(name="fmt")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a file is not in the layout.")
@output_option
def format_(session: Session, paths: tuple[Path, ...], *, only_check: bool) -> int:
    """Bring policy files into the one layout, file by file; comments stay.

    PATHS are `.cedar` files or folders; default: the project's bundle. A file that does not parse is left as it is.
    """
    from amends.backends.cedar import isolated
    from amends.backends.cedar.findings import has_errors

    texts, findings = _read(paths or (bundle_folder(session, None),))
    made, found = isolated.format_files(texts)
    findings += found
    changed = sorted(file for file, text in made.items() if text != texts[file])
    if not only_check:
        for file in changed:
            Path(file).write_text(made[file], encoding="utf-8", newline="\n")
    if session.output.as_json:
        session.output.document({"ok": not findings, "files": len(texts), "changed": changed, **_document(findings)})
    else:
        for file in changed:
            session.output.line(f"{'would change' if only_check else 'changed'}: {file}")
        if findings:
            _table(session, findings)
        session.output.say(f"{len(texts)} files, {len(changed)} {'to change' if only_check else 'changed'}")
    return Exit.FAILED if has_errors(findings) or (only_check and changed) else Exit.OK


@policy.command()
@folder_argument
@click.option("--coverage", is_flag=True, help="Which policies and conditions the tests see, true and false.")
@click.option("--threshold", type=click.FloatRange(0, 100), help="Exit 1 if less than so many percent are covered.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML there.")
@click.option("-v", "--verbose", is_flag=True, help="List the tests that passed, too.")
@output_option
def test(
    session: Session,
    folder: Path | None,
    *,
    coverage: bool,
    threshold: float | None,
    junit_file: Path | None,
    verbose: bool,
) -> int:
    """Run every policy test: the baseline's, the adapters' and your own, or those of the bundle in FOLDER.

    Covered is: each policy determined an answer, each of its conditions was true, and was false.
    """
    from amends.backends.cedar.testing import report_policy_tests

    sources = sources_of(session, folder)
    report = report_policy_tests(sources.whole, sources.shipped)
    if junit_file is not None:
        _write(junit_file, junit(report.results))
    failed = [result for result in report.results if not result.passed]
    short = threshold is not None and report.coverage.percent < threshold
    shown = report.coverage if coverage or threshold is not None else None
    if session.output.as_json:
        session.output.document(_test_document(report.results, shown, ok=not failed and not short))
    else:
        _show_tests(session, report.results if verbose else failed)
        total = len(report.results)
        session.output.line(f"{total - len(failed)} passed, {len(failed)} failed", "red" if failed else "green")
        if shown is not None:
            _show_coverage(session, shown, short=short, verbose=verbose)
    return Exit.FAILED if failed or short else Exit.OK


for command in (evaluate, explain, diff, replay, reload, list_, show, history):
    policy.add_command(command)


def _read(paths: Sequence[Path]) -> tuple[dict[str, str], list[PolicyFinding]]:
    """The policy files at `paths`, and what cannot be read."""
    from amends.backends.cedar.bundle import POLICY
    from amends.backends.cedar.findings import PolicyFinding
    from amends.backends.cedar.text import normalise

    files = [file for path in paths for file in (sorted(path.rglob(f"*{POLICY}")) if path.is_dir() else [path])]
    texts: dict[str, str] = {}
    findings: list[PolicyFinding] = []
    for file in files:
        try:
            text = normalise(file.read_bytes(), str(file))
        except OSError as problem:
            raise InvalidInput(f"`{file}` cannot be read: {problem.strerror}", hint="name files you may read") from None
        if isinstance(text, PolicyFinding):
            findings.append(text)
        else:
            texts[str(file)] = text
    return texts, findings


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"`{file}` cannot be written: {problem.strerror}", hint="name another file") from None


def _show_findings(session: Session, findings: Sequence[PolicyFinding]) -> None:
    if session.output.as_json:
        session.output.document({"ok": not findings, **_document(findings)})
    elif findings:
        _table(session, findings)
    else:
        session.output.line("the policies are sound", "green")


def _table(session: Session, findings: Sequence[PolicyFinding]) -> None:
    rows = [
        (f"{f.file}:{f.line}" if f.line else f.file, f.level, f.policy_id, f.message, f.hint)
        for f in sorted(findings, key=lambda f: (f.level, f.file, f.line))
    ]
    session.output.table(("where", "", "policy", "what", "remedy"), rows)


def _document(findings: Sequence[PolicyFinding]) -> dict[str, object]:
    from dataclasses import asdict

    return {"findings": [asdict(finding) for finding in findings]}


def _show_tests(session: Session, results: Sequence[PolicyTestResult]) -> None:
    if results:
        rows = [("passed" if r.passed else "FAILED", r.file, r.name, r.problem or r.outcome) for r in results]
        session.output.table(("", "file", "test", "what"), rows)


def _show_coverage(session: Session, coverage: Coverage, *, short: bool, verbose: bool) -> None:
    from amends.backends.cedar.coverage import gaps

    rows = [
        (
            policy_.policy_id,
            policy_.determined,
            f"{sum(not c.missing for c in policy_.conditions)} of {len(policy_.conditions)}",
            f"{policy_.file}:{policy_.line}",
        )
        for policy_ in coverage.policies
        if verbose or not policy_.complete
    ]
    if rows:
        session.output.table(("policy", "determined", "conditions seen both ways", "where"), rows)
    for gap in gaps(coverage):
        session.output.line(f"not seen: {gap}")
    total = f"{coverage.percent:.1f} % covered: {len(coverage.policies)} policies, {coverage.seen} of {coverage.goals}"
    session.output.line(total, "red" if short else "green" if coverage.seen == coverage.goals else "yellow")


def _test_document(results: Sequence[PolicyTestResult], coverage: Coverage | None, *, ok: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "ok": ok,
        "tests": [
            {
                "file": r.file,
                "name": r.name,
                "passed": r.passed,
                "problem": r.problem,
                "outcome": r.outcome,
                "policy_ids": list(r.policy_ids),
            }
            for r in results
        ],
    }
    if coverage is not None:
        from dataclasses import asdict

        document["coverage"] = {"percent": round(coverage.percent, 2), **asdict(coverage)}
    return document
