"""Conditions as text again: Cedar with the few brackets a person would write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from cedarpy import pst

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_CEDAR_ESCAPES: Mapping[str, str] = {"\\b": "\\u{8}", "\\f": "\\u{c}"}
_INFIX: Mapping[str, tuple[str, int]] = {
    "or": ("||", 1),
    "and": ("&&", 2),
    "eq": ("==", 3),
    "not_eq": ("!=", 3),
    "less": ("<", 3),
    "less_eq": ("<=", 3),
    "greater": (">", 3),
    "greater_eq": (">=", 3),
    "in": ("in", 3),
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
}
_RELATION, _UNARY, _MEMBER = 3, 6, 7
_METHODS: Mapping[str, str] = {
    "contains": "contains",
    "contains_all": "containsAll",
    "contains_any": "containsAny",
    "get_tag": "getTag",
    "has_tag": "hasTag",
    "is_in_range": "isInRange",
    "offset": "offset",
    "duration_since": "durationSince",
    "decimal_less_than": "lessThan",
    "decimal_less_eq": "lessThanOrEqual",
    "decimal_greater": "greaterThan",
    "decimal_greater_eq": "greaterThanOrEqual",
    "is_empty": "isEmpty",
    "is_ipv4": "isIpv4",
    "is_ipv6": "isIpv6",
    "is_loopback": "isLoopback",
    "is_multicast": "isMulticast",
    "to_date": "toDate",
    "to_time": "toTime",
    "to_milliseconds": "toMilliseconds",
    "to_seconds": "toSeconds",
    "to_minutes": "toMinutes",
    "to_hours": "toHours",
    "to_days": "toDays",
}
_CONSTRUCTORS = frozenset({"datetime", "decimal", "duration", "ip"})


def render(expression: pst.Expr) -> str:
    """`expression` in Cedar, on one line. It parses back to the same tree."""
    return _text(expression)[0]


def uid(entity: pst.EntityUid) -> str:
    """An entity in Cedar: `Type::"id"`."""
    return f"{entity.type}::{_quoted(entity.id)}"


def _text(node: pst.Expr) -> tuple[str, int]:  # noqa: C901, PLR0911, PLR0912 - one case per kind of node
    """The text of `node` and how tightly it binds."""
    match node:
        case pst.Var(name=name):
            return name, _MEMBER
        case pst.Slot(name=slot):
            return f"?{slot}", _MEMBER
        case pst.BoolLit(value=value):
            return ("true" if value else "false"), _MEMBER
        case pst.LongLit(value=number):
            return str(number), _UNARY if number < 0 else _MEMBER
        case pst.StringLit(value=text):
            return _quoted(text), _MEMBER
        case pst.EntityLit(value=entity):
            return uid(entity), _MEMBER
        case pst.GetAttr(base=base, attr=attr):
            plain = _NAME.fullmatch(attr)
            return _within(base, _MEMBER) + (f".{attr}" if plain else f"[{_quoted(attr)}]"), _MEMBER
        case pst.HasAttr(base=base, attrs=attrs):
            named = all(_NAME.fullmatch(attr) for attr in attrs)
            return f"{_within(base, _RELATION + 1)} has {'.'.join(attrs) if named else _quoted(attrs[0])}", _RELATION
        case pst.Like(base=base, pattern=pattern):
            return f"{_within(base, _RELATION + 1)} like {_pattern(pattern)}", _RELATION
        case pst.Is(base=base, entity_type=type_, in_expr=inside):
            tail = f" in {_within(inside, _RELATION + 1)}" if inside is not None else ""
            return f"{_within(base, _RELATION + 1)} is {type_}{tail}", _RELATION
        case pst.Set(elements=elements):
            return f"[{', '.join(render(element) for element in elements)}]", _MEMBER
        case pst.Record(fields=fields):
            return "{" + ", ".join(f"{_quoted(name)}: {render(value)}" for name, value in fields.items()) + "}", _MEMBER
        case pst.IfThenElse(cond=condition, then_expr=yes, else_expr=no):
            return f"if {render(condition)} then {render(yes)} else {render(no)}", 0
        case pst.UnaryOp(op=op, arg=argument):
            return _unary(op, argument)
        case pst.BinaryOp(op=op, left=left, right=right):
            return _binary(op, left, right)


def _unary(op: str, argument: pst.Expr) -> tuple[str, int]:
    if op in _CONSTRUCTORS:
        return f"{op}({render(argument)})", _MEMBER
    if op in _METHODS:
        return f"{_within(argument, _MEMBER)}.{_METHODS[op]}()", _MEMBER
    return f"{'!' if op == 'not' else '-'}{_within(argument, _UNARY)}", _UNARY


def _binary(op: str, left: pst.Expr, right: pst.Expr) -> tuple[str, int]:
    if op in _METHODS:
        return f"{_within(left, _MEMBER)}.{_METHODS[op]}({render(right)})", _MEMBER
    sign, level = _INFIX[op]
    on_the_left = level + 1 if level == _RELATION else level  # comparisons do not chain
    return f"{_within(left, on_the_left)} {sign} {_within(right, level + 1)}", level


def _within(node: pst.Expr, level: int) -> str:
    text, own = _text(node)
    return text if own >= level else f"({text})"


def _pattern(pattern: Sequence[pst.PatternElem]) -> str:
    parts = [
        "*" if isinstance(part, pst.Wildcard) else _quoted(part.value)[1:-1].replace("*", "\\*") for part in pattern
    ]
    return f'"{"".join(parts)}"'


def _quoted(text: str) -> str:
    """JSON's way of writing a string, with the few escapes that Cedar writes otherwise."""
    return _ESCAPE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{{{found[1]}}}" if found[1] else _CEDAR_ESCAPES.get(found[0], found[0])
