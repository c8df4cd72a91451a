"""Conditions in words, for people who read a decision: what was the case, and what it would have had to be.

Known facts of the context have names ("the evidence is complete"); anything else is shown as it is written, in
backticks, with the value it had. Values come from the recorded question, which holds no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cedarpy import pst

from amends.backends.cedar.conditions import Condition, Value
from amends.backends.cedar.question import Question
from amends.backends.cedar.rendering import render
from amends.core.canonical import Json

# The yes-or-no facts of the core: what is said if they are true, and if they are false.
_FACTS: Mapping[str, tuple[str, str]] = {
    "context.evidence.complete": (
        "the evidence about the effect is complete",
        "the evidence about the effect is not complete",
    ),
    "context.contract.safe": (
        "the inverse is declared safe for this outcome of the call",
        "the inverse is not declared safe for this outcome of the call",
    ),
    "context.contract.in_time": ("the inverse may still be used", "the time in which the inverse may be used is over"),
    "context.contract.reference_owned": (
        "the provider's reference belongs to this tenant and run",
        "the provider's reference is not proven to belong to this tenant and run",
    ),
    "context.contract.writes": ("the call changes something", "the call only reads"),
    "context.contract.proven": ("the undo is proven, or needs no drill", "the undo was never drilled"),
    "context.contract.drilled": (
        "this very call and its undo have a valid drill certificate",
        "this very call and its undo have no valid drill certificate",
    ),
    "context.run.success_verified": ("the run's success check has passed", "the run's success check has not passed"),
    "context.run.policy_changed": (
        "the policies changed since the effect was made",
        "the policies are those under which the effect was made",
    ),
    "context.run.requires_human": ("the action waits for a person", "the action waits for nobody"),
    "context.forward.residue": ("parts of a failed call were seen", "no part of a failed call was seen"),
    "context has approval": ("there is an approval", "there is no approval"),
    "context has forward": ("the call it is about is known", "there is no call it is about"),
    "context.run has owner": ("a person answers for the run", "nobody answers for the run"),
    "context.run has initiator": ("a person started the run", "no person started the run"),
    "context.run has forward_policy_version": (
        "it is known under which policies the effect was made",
        "it is not known under which policies the effect was made",
    ),
}
# What other facts are called.
_NAMES: Mapping[str, str] = {
    "principal": "who asks",
    "principal.tenant": "the tenant of who asks",
    "resource": "the resource",
    "resource.tenant": "the resource's tenant",
    "resource.environment": "the environment",
    "action": "the action",
    "context.approval.approvers": "the people who approved",
    "context.approval.count": "the number of people who approved",
    "context.approval.roles": "the approvers' roles",
    "context.approval.tier": "the approval's tier",
    "context.contract.audience": "the audience",
    "context.contract.release_mode": "the release mode",
    "context.contract.reversibility": "the reversibility",
    "context.evidence.missing": "the missing evidence",
    "context.forward.caused_by_action": "the call it is about",
    "context.forward.status": "the outcome of the call",
    "context.run.agent": "the agent",
    "context.run.attempt": "the number of the attempt",
    "context.run.initiator": "the person who started the run",
    "context.run.owner": "the owner of the run",
    "context.run.workflow": "the workflow",
    "context.time.age": "the age of the effect",
    "context.time.now": "the time",
    "context.time.windows": "the time windows open then",
}
# sign -> (holds, does not hold)
_RELATIONS: Mapping[str, tuple[str, str]] = {
    "eq": ("is", "is not"),
    "not_eq": ("is not", "is"),
    "less": ("is less than", "is not less than"),
    "less_eq": ("is at most", "is more than"),
    "greater": ("is more than", "is not more than"),
    "greater_eq": ("is at least", "is less than"),
    "in": ("is in", "is not in"),
    "contains": ("include", "do not include"),
    "contains_all": ("include all of", "do not include all of"),
    "contains_any": ("include one of", "include none of"),
}
_MILLISECONDS = re.compile(r"(-?\d+)ms")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))
_SHOWN = 6  # elements of a set


def in_words(condition: Condition, value: Value, question: Question) -> str:
    """What was the case, as a sentence without its end: `the age of the effect is more than 1h: it was 3h`."""
    if value is None:
        return f"`{condition.text}` was not reached"
    expression = condition.expression
    fact = _FACTS.get(condition.text)
    if fact is not None:
        return fact[0 if value else 1]
    if isinstance(expression, pst.BinaryOp) and expression.op in _RELATIONS:
        return _related(expression, question, holds=value)
    if isinstance(expression, pst.HasAttr):
        there = "is there" if value else "is not there"
        return f"`{render(expression.base)}.{'.'.join(expression.attrs)}` {there}"
    if isinstance(expression, pst.Is):
        kind = expression.entity_type.basename
        return f"{_name(expression.base)} {'is' if value else 'is not'} of type {kind}"
    if isinstance(expression, pst.Like):
        pattern = render(expression).partition(" like ")[2]
        return f"{_name(expression.base)} is {'' if value else 'not '}like {pattern}{_shown(expression.base, question)}"
    return f"`{condition.text}` is {'true' if value else 'false'}"


def _related(expression: pst.BinaryOp, question: Question, *, holds: bool) -> str:
    words = _RELATIONS[expression.op][0 if holds else 1]
    left, right = expression.left, expression.right
    said = f"{_name(left)} {words} {_name(right)}"
    both = [shown for side in (left, right) if (shown := _value(side, question))]
    if not both or (holds and expression.op == "eq"):
        return said
    return f"{said}: it was {both[0]}" if len(both) == 1 else f"{said}: {both[0]} against {both[1]}"


def _name(node: pst.Expr) -> str:
    match node:
        case pst.EntityLit(value=entity):
            return entity.id
        case pst.UnaryOp(op="duration" | "datetime" | "decimal" | "ip", arg=pst.StringLit(value=text)):
            return text
        case pst.StringLit(value=text):
            return f"`{text}`"
        case pst.Set(elements=elements):
            return ", ".join(_name(element) for element in elements)
        case _:
            path = render(node)
            field = path.removeprefix("context.input.")
            return _NAMES.get(path) or (f"the input `{field}`" if field != path else f"`{path}`")


def _shown(node: pst.Expr, question: Question) -> str:
    value = _value(node, question)
    return f": it was {value}" if value else ""


def _value(node: pst.Expr, question: Question) -> str:
    """The value that a path had, for people; empty if it is no path, or was absent."""
    path: list[str] = []
    while isinstance(node, pst.GetAttr):
        path.append(node.attr)
        node = node.base
    if not isinstance(node, pst.Var):
        return ""
    value: Json = dict(question.context) if node.name == "context" else dict(question.record).get(node.name)
    for name in reversed(path):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else _text(value)


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        more = ", …" if len(value) > _SHOWN else ""
        return (", ".join(_text(one) for one in value[:_SHOWN]) + more) or "none"
    if isinstance(value, dict):
        return str(value.get("id", "a record"))
    match = _MILLISECONDS.fullmatch(value) if isinstance(value, str) else None
    return _duration(int(match[1])) if match else str(value)


def _duration(milliseconds: int) -> str:
    """`10800000` as `3h`, as Cedar would write it."""
    rest = abs(milliseconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if milliseconds < 0 else "") + ("".join(parts) or "0ms")
