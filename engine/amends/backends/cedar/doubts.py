"""Conditions that Cedar accepts and that nobody can have meant: always false, always failing, or failing one day.

Cedar's validator knows no names inside strings, keeps its warnings to itself, and holds `has` on an attribute that does
not exist to be false: a `forbid … unless { context has aproval }` would never yield, a permit never permit.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cedarpy import pst

from amends.backends.cedar import native
from amends.backends.cedar.findings import PolicyFinding
from amends.backends.cedar.lint import at
from amends.backends.cedar.rendering import render
from amends.backends.cedar.tree import Policy, walk

SITE = "site/"
_ABSENT = "amends_no_such_attribute"
_ARITHMETIC = frozenset({"add", "sub", "mul"})
_WINDOWS = "context.time.windows"
_MEMBERSHIP = frozenset({"contains", "contains_all", "contains_any"})
# Entities in the context: named there, but nothing else about them is known to the engine when it asks.
_ONLY_NAMED = frozenset(
    {"context.run.agent", "context.run.owner", "context.run.initiator", "context.forward.principal"}
)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that strings in conditions may hold."""

    windows: Collection[str]
    capabilities: Collection[str]


def doubtful(policies: Sequence[Policy], schema: native.SchemaHandle, known: KnownNames) -> list[PolicyFinding]:
    """Errors for conditions that can never do their work, warnings for those that may fail. The policies are valid."""
    offered = {name for policy in policies if not policy.file.startswith(SITE) for name in _windows_of(policy)}
    known = replace(known, windows={*known.windows, *offered})  # a site may define what a shipped policy asks for
    findings = [finding for policy in policies for finding in _of(policy, known)]
    return findings + _undeclared(policies, schema)


def _of(policy: Policy, known: KnownNames) -> Iterator[PolicyFinding]:
    risky: list[str] = []
    for node in walk(policy.template.clauses):
        match node:
            case pst.GetAttr(base=base) | pst.HasAttr(base=base) if _only_named(base):
                yield _unloaded(policy, render(base), "attributes")
            case pst.BinaryOp(op="in", left=left) if _only_named(left):
                yield _unloaded(policy, render(left), "roles")
            case pst.BinaryOp(op=op) if op in _ARITHMETIC and not _constant(node):
                risky.append(render(node))
            case pst.UnaryOp(op="neg") if not _constant(node):
                risky.append(render(node))
            case pst.BinaryOp(op=op, left=left, right=right):
                yield from _unknown_names(policy, op, left, right, known)
            case _:
                pass
    if risky:
        shown = min(risky, key=len)
        message = f"`{shown}` can overflow, and then every request that this policy looks at is denied"
        hint = "compare the numbers as they are, or bound them in a condition before it"
        yield at(policy, "can_fail", message, hint, level="warning")


def _unloaded(policy: Policy, name: str, what: str) -> PolicyFinding:
    message = f"the {what} of `{name}` are not known when policies are asked"
    hint = "only principal and resource are; compare whom the context names with `==`"
    return at(policy, "unloaded_entity", message, hint)


def _unknown_names(
    policy: Policy, op: str, left: pst.Expr, right: pst.Expr, known: KnownNames
) -> Iterator[PolicyFinding]:
    """Strings that must be names, and are none."""
    if op in _MEMBERSHIP and render(left) == _WINDOWS:
        yield from _misspelt(policy, _strings(right), known.windows, "time window", "unknown_window")
    sides = (render(left), render(right)) if op in {"eq", "not_eq", "contains"} else ()
    if "context.forward.caused_by_action" in sides:
        given = [*_strings(left), *_strings(right)]
        yield from _misspelt(policy, given, known.capabilities, "capability", "unknown_capability")


def _windows_of(policy: Policy) -> Iterator[str]:
    for node in walk(policy.template.clauses):
        if isinstance(node, pst.BinaryOp) and node.op in _MEMBERSHIP and render(node.left) == _WINDOWS:
            yield from _strings(node.right)


def _misspelt(
    policy: Policy, given: Iterable[str], known: Collection[str], kind: str, code: str
) -> Iterator[PolicyFinding]:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"
            yield at(policy, code, f"there is no {kind} `{name}`", hint)


def _undeclared(policies: Sequence[Policy], schema: native.SchemaHandle) -> list[PolicyFinding]:
    """`has` on an attribute that no action, principal or resource of the scope declares. The validator is asked by
    reading the attribute: it answers "not found" as often as for a name that surely does not exist.
    """
    asked: dict[tuple[int, str, str], int] = {}
    texts: list[str] = []
    for place, policy in enumerate(policies):
        for node in walk(policy.template.clauses):
            if isinstance(node, pst.HasAttr) and not _only_named(node.base):
                for attribute in (node.attrs[0], _ABSENT):
                    key = place, render(node.base), attribute
                    if key not in asked:
                        asked[key] = len(texts)
                        texts.append(_reading(policy, node.base, attribute))
    if not texts:
        return []
    counts = [0] * len(texts)
    for number, message in native.validate("\n".join(texts), schema):
        counts[number] += message.endswith("not found")
    found: list[PolicyFinding] = []
    for (place, base, attribute), number in asked.items():
        everywhere = counts[asked[place, base, _ABSENT]]
        if attribute != _ABSENT and everywhere and counts[number] >= everywhere:
            message = f"`{base} has {attribute}` is never true: nothing in the policy's scope declares it"
            hint = "see the schema for the attributes that exist"
            found.append(at(policies[place], "undeclared_has", message, hint))
    return found


def _reading(policy: Policy, base: pst.Expr, attribute: str) -> str:
    """A policy of the same scope that reads the attribute without asking whether it is there."""
    read = pst.GetAttr(base, attribute)
    clause = pst.When(pst.BinaryOp("eq", read, read))
    return native.text_of(replace(policy.template, clauses=(clause,), annotations={}))


def _only_named(node: pst.Expr) -> bool:
    return isinstance(node, pst.EntityLit) or (isinstance(node, pst.GetAttr) and render(node) in _ONLY_NAMED)


def _constant(node: object) -> bool:
    return not any(isinstance(inner, pst.Var | pst.GetAttr) for inner in walk(node))


def _strings(node: pst.Expr) -> list[str]:
    """The string literals that `node` is, or is a set of."""
    match node:
        case pst.StringLit(value=text):
            return [text]
        case pst.Set(elements=elements):
            return [element.value for element in elements if isinstance(element, pst.StringLit)]
        case _:
            return []
