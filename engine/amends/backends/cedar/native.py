"""The one module that calls cedarpy: typed functions over its handles, and answers without its error texts.

cedarpy's error strings can hold a whole context, so none leaves this module raw: evaluation errors become the ids
of the policies that failed, a refused request becomes `rejected`. Parse and validation texts speak about policies,
not about requests, and may be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import cedarpy
from cedarpy import pst

from amends.core.canonical import Json

SchemaHandle: TypeAlias = cedarpy.Schema
PolicyHandle: TypeAlias = cedarpy.PolicySet
EntitiesHandle: TypeAlias = cedarpy.Entities

_POLICY_IN_ERROR = re.compile(r"policy `([^`]+)`")
_PARSE_ERRORS = (ValueError, TypeError)


# cedarpy's own annotations leave `dict` open; these are its calls as used here, always over parsed handles.
_validate = cast("Callable[[str, cedarpy.Schema], cedarpy.ValidationResult]", cedarpy.validate_policies)  # pyright: ignore[reportUnknownMemberType]
_entities = cast("Callable[[str, cedarpy.Schema], cedarpy.Entities]", cedarpy.Entities.from_json_str)  # pyright: ignore[reportUnknownMemberType]
_is_authorized = cast(
    "Callable[[dict[str, object], cedarpy.PolicySet, cedarpy.Entities, cedarpy.Schema], cedarpy.AuthzResult]",
    cedarpy.is_authorized,  # pyright: ignore[reportUnknownMemberType]
)


class Malformed(Exception):
    """cedarpy refuses policy or schema text; the message is cedarpy's, about the text."""


class Crashed(Exception):
    """cedarpy met a defect of its own while it evaluated; its words may hold the whole request and are dropped."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What Cedar said. `rejected`: no decision at all. `errors`: how many evaluations failed."""

    allowed: bool
    rejected: bool
    determining: tuple[str, ...] = ()
    errored: tuple[str, ...] = ()
    errors: int = 0


def parse_schema(text: str) -> SchemaHandle:
    """A schema handle. Raises `Malformed`."""
    try:
        return cedarpy.Schema.from_str(text)
    except _PARSE_ERRORS as problem:
        raise Malformed(str(problem)) from None


def parse_policies(text: str) -> pst.PolicySet:
    """The policy tree of `text`, policies numbered `policy0`, `policy1`, …. Raises `Malformed`."""
    try:
        return cedarpy.policies_to_pst(text)
    except _PARSE_ERRORS as problem:
        raise Malformed(str(problem)) from None


def build(policies: Iterable[pst.Template]) -> PolicyHandle:
    """An evaluable set of static policies under their own ids. Raises `Malformed`."""
    try:
        return cedarpy.PolicySet.from_pst(
            pst.PolicySet(templates={}, static_policies={policy.id: policy for policy in policies}, template_links=())
        )
    except _PARSE_ERRORS as problem:
        raise Malformed(str(problem)) from None


def text_of(policy: pst.Template) -> str:
    """One policy as Cedar text, without its annotations' layout. Raises `Malformed`."""
    return str(build([policy]))


def format_policies(text: str, *, line_width: int) -> str:
    """`text` in the formatter's layout, comments kept. Raises `Malformed`."""
    try:
        return cedarpy.format_policies(text, line_width=line_width)
    except _PARSE_ERRORS as problem:
        raise Malformed(str(problem)) from None


def validate(text: str, schema: SchemaHandle) -> list[tuple[int, str]]:
    """Strict validation: (number of the policy in `text`, what is wrong) for each error."""
    result = _validate(text, schema)
    found: list[tuple[int, str]] = []
    for problem in result.errors:
        number = problem.policy_id.removeprefix("policy")
        message = re.sub(r"^for policy `[^`]*`, ", "", problem.error)
        found.append((int(number) if number.isdigit() else -1, message))
    return found


def action_parents(schema: SchemaHandle) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Every declared action as (type, id) with all its ancestors."""
    listed = cast("list[dict[str, Any]]", json.loads(str(_entities("[]", schema))))
    direct = {_pair(item["uid"]): [_pair(parent) for parent in item["parents"]] for item in listed}
    closure: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
    for action, parents in direct.items():
        seen: set[tuple[str, str]] = set()
        todo = list(parents)
        while todo:
            parent = todo.pop()
            if parent not in seen:
                seen.add(parent)
                todo.extend(direct.get(parent, ()))
        closure[action] = frozenset(seen)
    return closure


def parse_entities(entities: Sequence[Mapping[str, Json]], schema: SchemaHandle) -> EntitiesHandle | None:
    """Entities checked against the schema (without it, action groups would be absent); None if they do not fit. The
    last few are kept: an action is asked about several times in a row, and a handle holds all actions of the schema.
    """
    try:
        return _parsed_entities(json.dumps(entities, allow_nan=False), schema)
    except _PARSE_ERRORS:
        return None


@lru_cache(maxsize=8)
def _parsed_entities(text: str, schema: SchemaHandle) -> EntitiesHandle:
    return _entities(text, schema)


def evaluate(
    uids: Mapping[str, Mapping[str, str]],
    context: Mapping[str, Json],
    policies: PolicyHandle,
    entities: EntitiesHandle,
    schema: SchemaHandle,
) -> RawAnswer:
    """Ask Cedar once. `uids` holds exactly `principal`, `action` and `resource`. Raises `Crashed`."""
    request: dict[str, object] = {
        "principal": dict(uids["principal"]),
        "action": dict(uids["action"]),
        "resource": dict(uids["resource"]),
        "context": dict(context),
    }
    try:
        result = _is_authorized(request, policies, entities, schema)
    except BaseException as problem:
        if type(problem).__name__ == "PanicException":  # a defect in Rust code; derived from `BaseException`
            raise Crashed("the policy engine panicked") from None
        raise
    if result.decision not in {cedarpy.Decision.Allow, cedarpy.Decision.Deny}:
        return RawAnswer(allowed=False, rejected=True)
    errors = result.diagnostics.errors
    named = {match[1] for text in errors if (match := _POLICY_IN_ERROR.search(text))}
    return RawAnswer(
        allowed=result.decision is cedarpy.Decision.Allow,
        rejected=False,
        determining=tuple(sorted(result.diagnostics.reasons)),
        errored=tuple(sorted(named)),
        errors=len(errors),
    )


def _pair(uid: Mapping[str, str]) -> tuple[str, str]:
    return uid["type"], uid["id"]
