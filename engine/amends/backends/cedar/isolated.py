"""Policies of people are looked at in a process of their own: whatever a parser does to it, the command lives on.

The guards of `text` keep out what is known to end a process; this keeps out what is not known. A child that dies is
told as a finding that names the file, found by looking at one file after the other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from amends.backends.cedar import selftest, tree
from amends.backends.cedar.authorizer import Collected
from amends.backends.cedar.bundle import POLICY, SCHEMA
from amends.backends.cedar.compile import GENERATED, compile_sources
from amends.backends.cedar.findings import PolicyFinding, error, findings_of
from amends.backends.cedar.formatting import formatted
from amends.backends.cedar.native import Malformed, parse_schema
from amends.backends.cedar.text import guard
from amends.backends.cedar.worker import Worker
from amends.core.errors import AmendsError

TIMEOUT_SECONDS = 120.0
PROGRAM = (sys.executable, "-m", "amends.backends.cedar.isolated")


class Job(BaseModel):
    """What a child is asked. `parse` and `format` look at each source alone."""

    model_config = ConfigDict(extra="forbid")

    task: Literal["check", "parse", "format"]
    sources: dict[str, str]
    version: str = ""
    owned: dict[str, tuple[str, ...]] = {}


class Report(BaseModel):
    """What a child says. `texts`: the formatted sources."""

    findings: list[PolicyFinding] = []
    texts: dict[str, str] = {}


def check(collected: Collected, *, program: tuple[str, ...] = PROGRAM) -> list[PolicyFinding]:
    """Guard, parse, lint and validate, and put the self-test's questions: what `CedarAuthorizer.load` would refuse and
    what lint warns of. `program` is the child's command.
    """
    owned = {adapter: tuple(sorted(names)) for adapter, names in collected.owned.items()}
    job = Job(task="check", sources=dict(collected.sources), version=collected.version, owned=owned)
    report = _asked(job, program)
    return report.findings if isinstance(report, Report) else _culprits(collected.sources, report, program)


def format_files(
    texts: Mapping[str, str], *, program: tuple[str, ...] = PROGRAM
) -> tuple[dict[str, str], list[PolicyFinding]]:
    """`texts` (path -> policies) in the one layout, and what could not be brought into it and is as it was."""
    report = _asked(Job(task="format", sources=dict(texts)), program)
    if isinstance(report, Report):
        return report.texts, report.findings
    return dict(texts), _culprits(texts, report, program)


def answer(job: Job) -> Report:
    """What the child does."""
    if job.task == "format":
        made = Worker().run(lambda: {file: formatted(text, file) for file, text in job.sources.items()})
        return Report(
            findings=[finding for one in made.values() for finding in one.findings],
            texts={file: one.text for file, one in made.items()},
        )
    if job.task == "parse":
        return Report(findings=[f for file, text in job.sources.items() for f in _parsed(file, text)])
    try:
        return Report(findings=Worker().run(lambda: _checked(job)))
    except AmendsError as problem:
        return Report(findings=findings_of(problem))


def _checked(job: Job) -> list[PolicyFinding]:
    snapshot, findings = compile_sources(job.sources, job.version, owned=job.owned)
    if snapshot is not None:
        selftest.run(snapshot)
    return findings


def _parsed(file: str, text: str) -> list[PolicyFinding]:
    if not file.endswith(SCHEMA):
        return tree.parse(text, file)[1]
    findings = guard(text, file, schema=True)
    if not findings:
        try:
            parse_schema(text)
        except Malformed:
            return []  # one file of several may well not stand alone
    return findings


def _asked(job: Job, program: tuple[str, ...]) -> Report | str:
    """The child's report, or how it ended without one."""
    try:
        child = subprocess.run(
            program, input=job.model_dump_json(), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {TIMEOUT_SECONDS:g} s"
    if child.returncode == 0:
        return Report.model_validate_json(child.stdout)
    return f"ended by signal {-child.returncode}" if child.returncode < 0 else f"ended with {child.returncode}"


def _culprits(sources: Mapping[str, str], ending: str, program: tuple[str, ...]) -> list[PolicyFinding]:
    """The files that end a child by themselves; if none does, all together do."""
    people = [file for file in sources if file.endswith((POLICY, SCHEMA)) and not file.startswith(GENERATED)]
    found = [
        _crashed(file, report)
        for file in sorted(people)
        if isinstance(report := _asked(Job(task="parse", sources={file: sources[file]}), program), str)
    ]
    return found or [_crashed("", ending)]


def _crashed(file: str, ending: str) -> PolicyFinding:
    message = f"the parser did not survive this: the process that looked at it {ending}"
    return error("crash", message, "simplify the file: shorter conditions, fewer brackets", file=file)


def main() -> None:
    """One job on standard input, its report on standard output."""
    report = answer(Job.model_validate_json(sys.stdin.read()))
    sys.stdout.write(report.model_dump_json())


if __name__ == "__main__":
    main()
