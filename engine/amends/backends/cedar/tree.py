"""Policies as trees: parsed file by file, renamed to their `@id`, looked at node by node.

Cedar numbers text policies and ignores `@id`; after the renaming, answers carry the ids that authors wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import cast

from cedarpy import pst

from amends.backends.cedar import native
from amends.backends.cedar.findings import PolicyFinding, error
from amends.backends.cedar.text import guard, statements

ROLE = pst.EntityType("Role", ("Amends",))
HUMAN = pst.EntityType("Human", ("Amends",))
ACTION = "Action"
CONTEXT = "context"
_DURATION = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?(?:(\d{1,6})ms)?")
_UNIT_SECONDS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy under its own id, and where its author wrote it."""

    id: str
    effect: str
    reason: str
    file: str
    line: int
    number: int  # position in its file, from 0
    template: pst.Template

    @property
    def shadow(self) -> bool:
        """True for `@shadow`: asked beside the others, without effect."""
        return "shadow" in self.template.annotations

    @property
    def gate(self) -> str:
        """What the author says to people who are asked because of this policy; permits nothing."""
        return self.template.annotations.get("gate", "")

    @property
    def approver_role(self) -> str:
        """The role that the author suggests to ask first; permits nothing."""
        return self.template.annotations.get("approver_role", "")

    @property
    def ttl_seconds(self) -> float:
        """How long a question may wait that this policy asks; 0: it does not say."""
        return seconds(self.template.annotations.get("ttl", "")) or 0.0

    @property
    def roles(self) -> frozenset[str]:
        """Every Role literal the policy names."""
        return frozenset(uid.id for uid in pst.entity_uids(self.template) if uid.type == ROLE)

    @property
    def reads_approval(self) -> bool:
        """True if a condition looks at `context.approval`, directly or through `context` as a whole."""
        clauses = self.template.clauses
        return any(_names(node, "approval") for node in walk(clauses)) or passes_on(clauses, CONTEXT)

    @property
    def counts_approvers(self) -> bool:
        """True if a condition asks how many people approved."""
        return self.reads_approval and any(_names(node, "count") for node in walk(self.template.clauses))

    @property
    def human_literals(self) -> frozenset[str]:
        """The persons named in conditions (the scope may name one: that is who acts, not who approves)."""
        return frozenset(uid.id for uid in pst.entity_uids(self.template.clauses) if uid.type == HUMAN)

    def action_literals(self) -> tuple[pst.EntityUid, ...]:
        """The actions or groups of the scope; empty if it is unconstrained."""
        match self.template.action:
            case pst.ActionEq(entity=entity):
                return (entity,)
            case pst.ActionIn(entities=entities):
                return entities
            case _:
                return ()

    def may_match(self, action: tuple[str, str], ancestors: frozenset[tuple[str, str]]) -> bool:
        """Exact: False only if the scope cannot match `action` (a scope never errors)."""
        match self.template.action:
            case pst.ActionEq(entity=entity):
                return _pair(entity) == action
            case pst.ActionIn(entities=entities):
                return any(_pair(entity) == action or _pair(entity) in ancestors for entity in entities)
            case _:
                return True


def parse(text: str, file: str) -> tuple[list[Policy], list[PolicyFinding]]:
    """The policies of one file under their `@id`s, or the findings that refuse it. The guards run first."""
    findings = guard(text, file)
    if findings:
        return [], findings
    starts = [statement.line for statement in statements(text)]
    try:
        tree = native.parse_policies(text)
    except native.Malformed as problem:
        return [], [_syntax(text, file, str(problem))]
    policies: list[Policy] = []
    for name in tree.templates:
        line = _line(starts, name)
        findings.append(
            error(
                "template",
                "templates are never linked here, so this policy would do nothing",
                "write it without slots",
                file=file,
                line=line,
            )
        )
    for name, template in tree.static_policies.items():
        number, line = _number(name), _line(starts, name)
        id_ = template.annotations.get("id", "")
        if not id_:
            findings.append(error("no_id", "policy has no `@id`", 'add @id("…")', file=file, line=line))
        reason = template.annotations.get("reason", "")
        if "ttl" in template.annotations and not seconds(template.annotations["ttl"]):
            findings.append(
                error(
                    "bad_ttl",
                    f"`@ttl({json.dumps(template.annotations['ttl'])})` is no time",
                    'write it as Cedar writes durations: @ttl("2h"), @ttl("1d12h")',
                    file=file,
                    line=line,
                    policy_id=id_,
                )
            )
        policies.append(
            Policy(id_, template.effect, reason, file, line, number, replace(template, id=id_ or f"{file}#{number}"))
        )
    return sorted(policies, key=lambda policy: policy.number), findings


def walk(node: object) -> Iterator[object]:
    """Every node under `node`, itself included, at any depth; no recursion."""
    todo: list[object] = [node]
    while todo:
        value = todo.pop()
        if isinstance(value, tuple | list):
            todo.extend(cast("tuple[object, ...]", value))
        elif isinstance(value, dict):
            todo.extend(cast("dict[str, object]", value).values())
        elif is_dataclass(value) and not isinstance(value, type):
            yield value
            todo.extend(getattr(value, field.name) for field in fields(value))


def seconds(text: str) -> float | None:
    """The length of a duration as Cedar writes it (`1d2h3m4s5ms`); None if it is none, or not longer than nothing."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    found = sum(int(number or 0) * unit for number, unit in zip(match.groups(), _UNIT_SECONDS, strict=True))
    return found or None


def passes_on(node: object, name: str) -> bool:
    """True if `context`, or the attribute `name`, is used otherwise than to look at one of its attributes."""
    nodes = list(walk(node))
    opened = sum(isinstance(one, pst.GetAttr | pst.HasAttr) and _is(one.base, name) for one in nodes)
    return sum(_is(one, name) for one in nodes) > opened


def _is(node: object, name: str) -> bool:
    """True for the variable or the attribute `name`."""
    match node:
        case pst.Var(name=variable):
            return variable == name
        case pst.GetAttr(attr=attr):
            return attr == name
        case _:
            return False


def _names(node: object, attribute: str) -> bool:
    match node:
        case pst.GetAttr(attr=attr):
            return attr == attribute
        case pst.HasAttr(attrs=attrs):
            return attribute in attrs
        case _:
            return False


def _syntax(text: str, file: str, message: str) -> PolicyFinding:
    """The parser names no line, so the statements are tried one by one; whole-file errors fall back to line 0."""
    for statement in statements(text):
        try:
            native.parse_policies(statement.text)
        except native.Malformed as problem:
            return error("syntax", str(problem).splitlines()[0], "correct the policy", file=file, line=statement.line)
    return error("syntax", message.splitlines()[0], "correct the file", file=file)


def _number(name: str) -> int:
    digits = name.removeprefix("policy")
    return int(digits) if digits.isdigit() else 0


def _line(starts: list[int], name: str) -> int:
    number = _number(name)
    return starts[number] if number < len(starts) else 0


def _pair(uid: pst.EntityUid) -> tuple[str, str]:
    return str(uid.type), uid.id
