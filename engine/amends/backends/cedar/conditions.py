"""A policy's conditions taken apart: the smallest yes-or-no questions it asks, and how they are put together.

`when { a && (b || !c) } unless { d }` asks four conditions. Each can be evaluated alone; what cannot be evaluated alone
(an optional attribute that is absent) was guarded by one before it, and is not reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cedarpy import pst

from amends.backends.cedar.rendering import render
from amends.backends.cedar.tree import Policy

Value: TypeAlias = bool | None  # None: not reached, or it could not be evaluated


@dataclass(frozen=True, slots=True)
class Condition:
    """One smallest question. `number` counts from 1 through the policy's clauses, as written."""

    number: int
    clause: Literal["when", "unless"]
    text: str
    expression: pst.Expr


@dataclass(frozen=True, slots=True)
class Leaf:
    """The condition of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Every:
    """True if each is, looked at from the left."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """True if one is, looked at from the left."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """True if the part is false."""

    part: Formula


Formula: TypeAlias = Leaf | Every | Some | Negated


@dataclass(frozen=True, slots=True)
class Conditions:
    """All conditions of one policy; `formula` is true exactly when they are fulfilled."""

    items: tuple[Condition, ...]
    formula: Every


def conditions_of(policy: Policy) -> Conditions:
    """The conditions of `policy`, without its scope."""
    items: list[Condition] = []
    clauses: list[Formula] = []
    for clause in policy.template.clauses:
        kind: Literal["when", "unless"] = "when" if isinstance(clause, pst.When) else "unless"
        formula = _taken_apart(clause.expr, kind, items)
        clauses.append(formula if kind == "when" else Negated(formula))
    return Conditions(tuple(items), Every(tuple(clauses)))


def value_of(formula: Formula, values: Sequence[Value]) -> Value:
    """What `formula` comes to; `values[n - 1]` is what condition n came to."""
    match formula:
        case Leaf(number=number):
            return values[number - 1]
        case Negated(part=part):
            inner = value_of(part, values)
            return None if inner is None else not inner
        case Every(parts=parts):
            return _first(parts, values, decisive=False)
        case Some(parts=parts):
            return _first(parts, values, decisive=True)


def because(formula: Formula, values: Sequence[Value]) -> Iterator[int]:
    """The numbers of the conditions that make `formula` come to what it comes to: while they stay, it stays."""
    match formula:
        case Leaf(number=number):
            yield number
        case Negated(part=part):
            yield from because(part, values)
        case Every(parts=parts) | Some(parts=parts):
            decisive = isinstance(formula, Some)
            came_to = value_of(formula, values)
            if came_to is not decisive:
                for part in parts:
                    yield from because(part, values)
                return
            for part in parts:
                if value_of(part, values) is decisive:
                    yield from because(part, values)


def _first(parts: Sequence[Formula], values: Sequence[Value], *, decisive: bool) -> Value:
    for part in parts:
        found = value_of(part, values)
        if found is None or found is decisive:
            return found
    return not decisive


def _taken_apart(expression: pst.Expr, clause: Literal["when", "unless"], items: list[Condition]) -> Formula:
    match expression:
        case pst.BinaryOp(op="and" | "or" as op):
            parts = tuple(_taken_apart(part, clause, items) for part in _chain(expression, op))
            return Every(parts) if op == "and" else Some(parts)
        case pst.UnaryOp(op="not", arg=argument):
            return Negated(_taken_apart(argument, clause, items))
        case _:
            items.append(Condition(len(items) + 1, clause, render(expression), expression))
            return Leaf(len(items))


def _chain(expression: pst.Expr, op: str) -> list[pst.Expr]:
    """`a && b && c` from left to right; a loop, because a chain may be long."""
    found: list[pst.Expr] = []
    todo = [expression]
    while todo:
        node = todo.pop()
        if isinstance(node, pst.BinaryOp) and node.op == op:
            todo += (node.right, node.left)
        else:
            found.append(node)
    return found
