"""`amends policy check` and `amends policy test`, as functions that return typed findings and results.

A test file is JSON, `*.policytest.json`: an array of tests, or an object with `fixtures`, `policies` (Cedar text that
exists for these tests only) and `tests`. It is a superset of what `cedar run-tests` reads:

    {"name": "…", "request": {principal, action, resource, context}, "entities": […],
     "decision": "deny", "reason": ["policy-id"], "num_errors": 0}

Ours says `given` and `expect` instead. A fixture is a whole request; `overrides` are merged into it, and null takes a
key out. The fixtures `forward`, `probe`, `undo`, `release` and `correct` exist everywhere: an unremarkable request
of that phase, to the self-test action. A recorded decision's `context` is such a request, too.

    {"name": "…", "given": {"fixture": "undo", "overrides": {"evidence": {"complete": false}}},
     "expect": {"outcome": "deny", "code": "forbidden", "determining": ["amends:undo-needs-complete-evidence"]}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from amends.backends.cedar import bundle, lint, selftest, tree
from amends.backends.cedar.answer import Answer, answer
from amends.backends.cedar.authorizer import Collected, collect
from amends.backends.cedar.compile import SITE, Snapshot, compile_sources
from amends.backends.cedar.findings import PolicyFinding, error
from amends.backends.cedar.question import Question, RequestRejected, from_record
from amends.backends.cedar.schema import PHASES
from amends.backends.cedar.worker import Worker
from amends.core.canonical import Json, JsonMap
from amends.core.contract import Contract
from amends.core.errors import AmendsError, ConfigError
from amends.core.evidence import Verdict, as_map
from amends.spi import PolicyContribution

_UID = re.compile(r'((?:[A-Za-z_][A-Za-z0-9_]*::)*[A-Za-z_][A-Za-z0-9_]*)::"((?:[^"\\]|\\.)*)"')


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Given(_Strict):
    """Which request to start from, and what to change in it."""

    fixture: str
    overrides: dict[str, Json] = {}


class Exactly(_Strict):
    """These policies determine the answer, and no others."""

    exact: list[str]


class Expected(_Strict):
    """What must come out; what is left out is not compared. A list under `determining` is a subset."""

    outcome: Verdict
    code: str | None = None
    tier: int | None = None
    approvers: int | None = None
    roles: list[str] | None = None
    determining: list[str] | Exactly | None = None
    errors: int = 0


class PolicyTest(_Strict):
    """One test, in our form or in that of `cedar run-tests`."""

    name: str = ""
    given: Given | None = None
    request: dict[str, Json] | None = None
    entities: list[dict[str, Json]] | None = None
    expect: Expected | None = None
    decision: Literal["allow", "deny"] | None = None
    reason: list[str] = []
    num_errors: int = 0


class PolicyTestFile(_Strict):
    """One `*.policytest.json`."""

    fixtures: dict[str, dict[str, Json]] = {}
    policies: str = ""
    tests: list[PolicyTest] = Field(min_length=1)


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


def check_policies(
    *,
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None = None,
) -> list[PolicyFinding]:
    """Everything `CedarAuthorizer.load` would refuse, as findings: guards, parse, lint, strict validation, version,
    self-test. Empty: it would load.
    """
    try:
        collected = _collected(contracts, contributions, site_bundle, known_labels, owned_prefixes)
        snapshot, findings = _compiled(collected)
        if snapshot is not None:
            Worker().run(lambda: selftest.run(snapshot))
    except AmendsError as problem:
        return [_finding(problem)]
    return findings


def run_policy_tests(
    *,
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None = None,
) -> list[PolicyTestResult]:
    """Run the tests of the baseline, of the contributions and of the site bundle. The first two say what holds without
    a site, so they are run without it: a site may forbid more. Raises `ConfigError` if the policies do not load; an
    unreadable test file is a failed result.
    """
    contracts = list(contracts)
    whole = _collected(contracts, contributions, site_bundle, known_labels, owned_prefixes)
    shipped = _collected(contracts, contributions, None, known_labels, owned_prefixes) if site_bundle else whole
    ours = {file: text for file, text in whole.tests.items() if file.startswith(SITE)}
    return [*_results(shipped, shipped.tests), *_results(whole, ours)]


def _results(collected: Collected, tests: Mapping[str, str]) -> list[PolicyTestResult]:
    snapshot, findings = _compiled(collected)
    if snapshot is None:
        problems = "; ".join(map(str, findings))
        raise ConfigError(f"the policies do not load: {problems}", hint="run `amends policy check`")
    return Worker().run(lambda: run_files(snapshot, tests))


def run_files(snapshot: Snapshot, tests: Mapping[str, str]) -> list[PolicyTestResult]:
    """The results of `tests` (path -> text) under `snapshot`. Call it on a thread with enough stack."""
    return [result for file, text in sorted(tests.items()) for result in run_file(snapshot, file, text)]


def run_file(snapshot: Snapshot, file: str, text: str) -> list[PolicyTestResult]:
    """The results of one test file under `snapshot`. Call it on a thread with enough stack."""
    try:
        content = _parse(text)
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
    fixtures: dict[str, JsonMap] = {phase: selftest.record(phase) for phase in PHASES}
    fixtures |= content.fixtures
    return [_run(snapshot, file, number, test, fixtures) for number, test in enumerate(content.tests, 1)]


def _collected(
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site_bundle: Path | None,
    known_labels: Mapping[str, str],
    owned_prefixes: Mapping[str, Collection[str]] | None,
) -> Collected:
    site = bundle.read(site_bundle) if site_bundle else None
    if site is not None:
        bundle.check_label(site, known_labels)
    return collect(contracts, contributions, site, owned_prefixes or {})


def _compiled(collected: Collected) -> tuple[Snapshot | None, list[PolicyFinding]]:
    return Worker().run(lambda: compile_sources(collected.sources, collected.version, owned=collected.owned))


def _finding(problem: AmendsError) -> PolicyFinding:
    file = problem.data.get("file", "")
    return error(problem.code, problem.message, problem.hint, file=str(file))


def _parse(text: str) -> PolicyTestFile:
    if isinstance(json.loads(text), list):
        return PolicyTestFile(tests=TypeAdapter(list[PolicyTest]).validate_json(text))
    return PolicyTestFile.model_validate_json(text)


def _run(
    snapshot: Snapshot, file: str, number: int, test: PolicyTest, fixtures: Mapping[str, JsonMap]
) -> PolicyTestResult:
    name = test.name or f"#{number}"
    try:
        found = answer(snapshot, _question(test, fixtures))
    except RequestRejected as problem:
        return PolicyTestResult(file, name, str(problem))
    return PolicyTestResult(file, name, "; ".join(_differences(test, found)), found.verdict, found.policy_ids)


def _question(test: PolicyTest, fixtures: Mapping[str, JsonMap]) -> Question:
    record: JsonMap = {}
    if test.given is not None:
        if test.given.fixture not in fixtures:
            raise RequestRejected(f"there is no fixture `{test.given.fixture}`")
        record = _merged(fixtures[test.given.fixture], test.given.overrides)
    record = _merged(record, _flat(test.request or {}))
    question = from_record(record)
    return question if test.entities is None else replace(question, entities=test.entities)


def _flat(request: Mapping[str, Json]) -> JsonMap:
    """A request of `cedar run-tests` in the storable form: uids as objects, context groups beside them."""
    flat: JsonMap = {name: value for name, value in request.items() if name != "context"}
    flat |= as_map(request.get("context"))
    for name in ("principal", "action", "resource"):
        value = flat.get(name)
        if isinstance(value, str):
            match = _UID.fullmatch(value)
            if match is None:
                raise RequestRejected(f'`{name}` is not of the form Type::"id"')
            flat[name] = {"type": match[1], "id": cast("str", json.loads(f'"{match[2]}"'))}
    return flat


def _merged(base: Mapping[str, Json], overrides: Mapping[str, Json]) -> JsonMap:
    merged: JsonMap = dict(base)
    for name, value in overrides.items():
        before = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[name] = _merged(before, value)
        else:
            merged[name] = value
    return merged


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
