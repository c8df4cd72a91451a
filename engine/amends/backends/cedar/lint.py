"""Lint over policy trees: what Cedar accepts and Amends does not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from cedarpy import pst

from amends.backends.cedar import native
from amends.backends.cedar.findings import PolicyFinding, error
from amends.backends.cedar.tree import ACTION, Policy

_ID = re.compile(r"[a-z0-9][a-z0-9_:-]{0,127}")
CORE_PREFIX = "amends:"
BASELINE = "baseline/"
_PLACE = re.compile(r" (?:in context for|on entity type) \S+")
_ENUM = re.compile(r"Amends::(?:Outcome|Reversibility|Audience|ReleaseMode)\b")


def lint(policies: Sequence[Policy], reserved_prefixes: Mapping[str, str]) -> list[PolicyFinding]:
    """What single policies and their ids break. `reserved_prefixes`: id prefix -> folder that alone may use it."""
    findings: list[PolicyFinding] = []
    first: dict[str, Policy] = {}
    for policy in policies:
        findings += _own(policy)
        if not policy.id:
            continue
        other = first.setdefault(policy.id, policy)
        if other is not policy:
            where = f"{other.file}:{other.line}"
            findings.append(at(policy, "duplicate_id", f"`@id` is taken by {where}", "choose another id"))
        for prefix, folder in reserved_prefixes.items():
            if policy.id.startswith(prefix) and not policy.file.startswith(folder):
                hint = "choose another prefix"
                findings.append(at(policy, "reserved_id", f"ids that begin with `{prefix}` belong to {folder}", hint))
    return findings


def foreign(policies: Iterable[Policy], adapter: str, namespaces: Collection[str]) -> list[PolicyFinding]:
    """Where a plugin's policies leave its own namespaces or its id prefix: each scope must name its own actions."""
    findings: list[PolicyFinding] = []
    for policy in policies:
        if policy.id and not policy.id.startswith(f"{adapter}:"):
            findings.append(
                at(policy, "foreign_id", f"a policy of `{adapter}` needs the id prefix `{adapter}:`", "rename it")
            )
        literals = policy.action_literals()
        own = [uid for uid in literals if uid.type.basename == ACTION and "::".join(uid.type.namespace) in namespaces]
        if not literals or len(own) != len(literals):
            names = ", ".join(f"{name}::Action" for name in sorted(namespaces))
            findings.append(
                at(
                    policy,
                    "foreign_action",
                    f"a policy of `{adapter}` must name actions of its own ({names})",
                    "narrow the scope",
                )
            )
    return findings


def at(
    policy: Policy, code: str, message: str, hint: str, level: Literal["error", "warning"] = "error"
) -> PolicyFinding:
    """A finding about one policy, where its author wrote it."""
    return PolicyFinding(level, code, policy.file, policy.line, policy.id, message, hint)


def validate(text: str, policies: Sequence[Policy], schema: native.SchemaHandle) -> list[PolicyFinding]:
    """Strict validation of one file's text, with the ids and lines of its policies."""
    by_number = {policy.number: policy for policy in policies}
    findings: list[PolicyFinding] = []
    told: set[tuple[int, str]] = set()
    for number, message in sorted(native.validate(text, schema)):
        alike = number, _PLACE.sub("", message)  # the same for every action of a scope: told once
        if alike in told:
            continue
        told.add(alike)
        policy = by_number.get(number)
        hint = _hint(message)
        if policy is None:
            findings.append(error("invalid", message, hint, file=policies[0].file if policies else ""))
        else:
            findings.append(at(policy, "invalid", message, hint))
    return findings


def _hint(message: str) -> str:
    """What to do about an error of the validator."""
    enum = _ENUM.search(message)
    if enum is not None:
        return f'write it as an entity: {enum[0]}::"…"; the schema lists its values'
    if "optional attribute" in message:
        return "ask first whether it is there: `… has … && …`"
    return "see the schema for the actions, attributes and types that exist"


def _own(policy: Policy) -> list[PolicyFinding]:
    findings: list[PolicyFinding] = []
    if policy.id and not _ID.fullmatch(policy.id):
        findings.append(at(policy, "bad_id", "`@id` must match [a-z0-9][a-z0-9_:-]*", "rename it"))
    if not policy.reason.strip():
        findings.append(at(policy, "no_reason", "policy has no `@reason`", 'add @reason("…") in words for people'))
    if policy.reads_approval and policy.human_literals:
        names = ", ".join(f"`{name}`" for name in sorted(policy.human_literals))
        findings.append(
            at(
                policy,
                "human_literal",
                f"an approval condition names persons: {names}",
                "ask for an Amends::Role instead",
            )
        )
    if policy.effect == "permit" and not policy.action_literals():
        findings.append(at(policy, "permit_all", "a permit over all actions", "name actions or a phase group"))
    scope = policy.template.action
    if isinstance(scope, pst.ActionEq) and scope.entity.id.startswith("phase."):
        message = f"`action ==` the group `{scope.entity.id}` matches nothing"
        findings.append(at(policy, "group_equality", message, "write `action in`"))
    return findings
