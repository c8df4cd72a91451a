"""The test file of policies, `*.policytest.json`: an array of tests, or an object with `fixtures`, `policies` (Cedar
text that exists for these tests only) and `tests`. It is a superset of what `cedar run-tests` reads:

    {"name": "…", "request": {principal, action, resource, context}, "entities": […],
     "decision": "deny", "reason": ["policy-id"], "num_errors": 0}

Ours says `given` and `expect` instead. A fixture is a whole request, or another fixture with `overrides`; those are
merged into it, and null takes a key out. The fixtures `forward`, `probe`, `undo`, `release` and `correct` exist
everywhere: an unremarkable request of that phase, to the self-test action. A recorded decision's `context` is such a
request, too.

    {"name": "…", "given": {"fixture": "undo", "overrides": {"evidence": {"complete": false}}},
     "expect": {"outcome": "deny", "code": "forbidden", "determining": ["amends:undo-needs-complete-evidence"]}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from amends.backends.cedar import selftest
from amends.backends.cedar.question import Question, RequestRejected, from_record
from amends.backends.cedar.schema import PHASES
from amends.core.canonical import Json, JsonMap
from amends.core.evidence import Verdict, as_map
from amends.core.reading import json_of

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


def parse(text: str) -> PolicyTestFile:
    """The content of a test file. Raises `ValidationError`, or `ValueError` for what is not JSON."""
    if isinstance(json_of(text), list):
        return PolicyTestFile(tests=TypeAdapter(list[PolicyTest]).validate_json(text))
    return PolicyTestFile.model_validate_json(text)


def standard_fixtures() -> dict[str, JsonMap]:
    """The fixtures that exist everywhere, by phase."""
    return {phase: selftest.record(phase) for phase in PHASES}


def question_of(test: PolicyTest, fixtures: Mapping[str, JsonMap]) -> Question:
    """What a test asks. Raises `RequestRejected`."""
    record: JsonMap = {}
    if test.given is not None:
        record = merged(_whole(test.given.fixture, fixtures, ()), test.given.overrides)
    record = merged(record, flat(test.request or {}))
    question = from_record(record)
    return question if test.entities is None else replace(question, entities=test.entities)


def _whole(name: str, fixtures: Mapping[str, JsonMap], above: tuple[str, ...]) -> JsonMap:
    """The request of a fixture, which may begin as another one. Raises `RequestRejected`."""
    if name not in fixtures:
        raise RequestRejected(f"there is no fixture `{name}`")
    if name in above:
        raise RequestRejected(f"the fixture `{name}` begins as itself")
    found = fixtures[name]
    begins = found.get("fixture")
    if not isinstance(begins, str):
        return found
    return merged(_whole(begins, fixtures, (*above, name)), as_map(found.get("overrides")))


def flat(request: Mapping[str, Json]) -> JsonMap:
    """A request of `cedar run-tests` in the storable form: uids as objects, context groups beside them.
    Raises `RequestRejected`.
    """
    found: JsonMap = {name: value for name, value in request.items() if name != "context"}
    found |= as_map(request.get("context"))
    for name in ("principal", "action", "resource"):
        value = found.get(name)
        if isinstance(value, str):
            match = _UID.fullmatch(value)
            if match is None:
                raise RequestRejected(f'`{name}` is not of the form Type::"id"')
            found[name] = {"type": match[1], "id": cast("str", json.loads(f'"{match[2]}"'))}
    return found


def merged(base: Mapping[str, Json], overrides: Mapping[str, Json]) -> JsonMap:
    """`overrides` merged into `base`, record by record; null takes a key out."""
    found: JsonMap = dict(base)
    for name, value in overrides.items():
        before = found.get(name)
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(before, dict):
            found[name] = merged(before, value)
        else:
            found[name] = value
    return found
