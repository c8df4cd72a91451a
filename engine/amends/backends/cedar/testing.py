"""`amends policy check` and `amends policy test`, as functions that return typed findings and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from amends.backends.cedar import bundle, lint, selftest, testfile, tree
from amends.backends.cedar.answer import Answer, answer
from amends.backends.cedar.authorizer import Collected, collect
from amends.backends.cedar.compile import SITE, Snapshot, compile_sources
from amends.backends.cedar.coverage import Coverage, CoverageRecorder
from amends.backends.cedar.findings import PolicyFinding, findings_of
from amends.backends.cedar.question import Question, RequestRejected
from amends.backends.cedar.testfile import Exactly, PolicyTest
from amends.backends.cedar.worker import Worker
from amends.core.canonical import JsonMap
from amends.core.contract import Contract
from amends.core.errors import AmendsError, ConfigError
from amends.spi import PolicyContribution


@dataclass(frozen=True, slots=True)
class PolicyTestResult:
    """One line of `amends policy test`. `problem` is empty if the test passed."""

    file: str
    name: str
    problem: str
    outcome: str = ""
    policy_ids: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if everything expected came out."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class PolicyTestReport:
    """All results, and what they covered of the policies that are in force."""

    results: tuple[PolicyTestResult, ...]
    coverage: Coverage


class Watcher(Protocol):
    """Is told every question a test asked, and its answer."""

    def watch(self, snapshot: Snapshot, question: Question, found: Answer) -> None:
        """One answered question."""
        ...


def check_policies(
    *,
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None = None,
) -> list[PolicyFinding]:
    """Everything `CedarAuthorizer.load` would refuse, and what lint warns of, as findings: guards, parse, lint, strict
    validation, version, self-test. No error among them: it would load.
    """
    try:
        collected = gathered(contracts, contributions, site_bundle, known_labels, owned_prefixes)
        snapshot, findings = _compiled(collected)
        if snapshot is not None:
            Worker().run(lambda: selftest.run(snapshot))
    except AmendsError as problem:
        return findings_of(problem)
    return findings


def run_policy_tests(
    *,
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None = None,
) -> list[PolicyTestResult]:
    """The results of `report_policy_tests`."""
    contracts = list(contracts)
    whole = gathered(contracts, contributions, site_bundle, known_labels, owned_prefixes)
    shipped = gathered(contracts, contributions, None, known_labels, owned_prefixes) if site_bundle else whole
    return list(report_policy_tests(whole, shipped).results)


def report_policy_tests(whole: Collected, shipped: Collected) -> PolicyTestReport:
    """Run the tests of the baseline, of the contributions and of the site bundle. The first two say what holds without
    a site, so they are run under `shipped`, the same without the site: a site may forbid more. Raises `ConfigError` if
    the policies do not load; an unreadable test file is a failed result.
    """
    recorder = CoverageRecorder()
    ours = {file: text for file, text in whole.tests.items() if file.startswith(SITE)}
    snapshot = loaded(whole)
    before = snapshot if shipped is whole else loaded(shipped)
    results = Worker().run(
        lambda: (*run_files(before, shipped_tests(shipped), recorder), *run_files(snapshot, ours, recorder))
    )
    return PolicyTestReport(results, recorder.coverage(snapshot.policies))


def shipped_tests(collected: Collected) -> dict[str, str]:
    """The tests of the baseline and of the adapters."""
    return {file: text for file, text in collected.tests.items() if not file.startswith(SITE)}


def gathered(
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None = None,
) -> Collected:
    """All sources, read and not yet parsed. Raises `ConfigError`."""
    site = bundle.read(site_bundle) if site_bundle else None
    if site is not None:
        bundle.check_label(site, known_labels)
    return collect(contracts, contributions, site, owned_prefixes or {})


def loaded(collected: Collected) -> Snapshot:
    """What `collected` compiles to. Raises `ConfigError` naming every error."""
    snapshot, findings = _compiled(collected)
    if snapshot is None:
        problems = "; ".join(str(finding) for finding in findings if finding.level == "error")
        raise ConfigError(f"the policies do not load: {problems}", hint="run `amends policy check`")
    return snapshot


def run_files(
    snapshot: Snapshot, tests: Mapping[str, str], watcher: Watcher | None = None
) -> tuple[PolicyTestResult, ...]:
    """The results of `tests` (path -> text) under `snapshot`. Call it on a thread with enough stack."""
    return tuple(result for file, text in sorted(tests.items()) for result in run_file(snapshot, file, text, watcher))


def run_file(snapshot: Snapshot, file: str, text: str, watcher: Watcher | None = None) -> list[PolicyTestResult]:
    """The results of one test file under `snapshot`. Call it on a thread with enough stack."""
    try:
        content = testfile.parse(text)
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        return [PolicyTestResult(file, "(file)", f"key `{key}`: {first['msg']}")]
    except ValueError as problem:
        return [PolicyTestResult(file, "(file)", f"not JSON: {problem}")]
    if content.policies:
        own, findings = tree.parse(content.policies, file)
        findings += lint.validate(content.policies, own, snapshot.schema) if own else []
        if findings:
            return [PolicyTestResult(file, "(file)", str(finding)) for finding in findings]
        snapshot = replace(snapshot, policies=(*snapshot.policies, *own), _slices={})
    fixtures = testfile.standard_fixtures() | content.fixtures
    return [_run(snapshot, file, number, test, fixtures, watcher) for number, test in enumerate(content.tests, 1)]


def _compiled(collected: Collected) -> tuple[Snapshot | None, list[PolicyFinding]]:
    return Worker().run(lambda: compile_sources(collected.sources, collected.version, owned=collected.owned))


def _run(
    snapshot: Snapshot,
    file: str,
    number: int,
    test: PolicyTest,
    fixtures: Mapping[str, JsonMap],
    watcher: Watcher | None,
) -> PolicyTestResult:
    name = test.name or f"#{number}"
    try:
        question = testfile.question_of(test, fixtures)
    except RequestRejected as problem:
        return PolicyTestResult(file, name, str(problem))
    found = answer(snapshot, question)
    if watcher is not None:
        watcher.watch(snapshot, question, found)
    return PolicyTestResult(file, name, "; ".join(_differences(test, found)), found.verdict, found.policy_ids)


def _differences(test: PolicyTest, found: Answer) -> list[str]:
    if test.expect is None:
        return _stock_differences(test, found)
    expect = test.expect
    pairs: Sequence[tuple[str, object, object]] = (
        ("outcome", expect.outcome, found.verdict),
        ("code", expect.code, found.code),
        ("tier", expect.tier, found.tier),
        ("approvers", expect.approvers, found.approvers),
        ("roles", expect.roles, list(found.roles)),
        ("errors", expect.errors, found.errors),
    )
    problems = [f"{name} is `{is_}`, not `{want}`" for name, want, is_ in pairs if want is not None and want != is_]
    return problems + _determining(expect.determining, found)


def _determining(expected: list[str] | Exactly | None, found: Answer) -> list[str]:
    got = ", ".join(found.policy_ids) or "none"
    if isinstance(expected, Exactly):
        return [] if sorted(expected.exact) == sorted(found.policy_ids) else [f"determined by {got}"]
    missing = [id_ for id_ in expected or () if id_ not in found.policy_ids]
    return [f"not determined by `{id_}` but by {got}" for id_ in missing]


def _stock_differences(test: PolicyTest, found: Answer) -> list[str]:
    """As `cedar run-tests` compares: two decisions (an approval not given is a deny), `reason` a subset."""
    if test.decision is None:
        return ["the test expects nothing: give it `expect` or `decision`"]
    decision = "allow" if found.verdict == "allow" else "deny"
    problems = [] if decision == test.decision else [f"decision is `{decision}`, not `{test.decision}`"]
    if found.errors != test.num_errors:
        problems.append(f"errors is `{found.errors}`, not `{test.num_errors}`")
    return problems + _determining(test.reason, found)
