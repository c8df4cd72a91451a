"""Who sees a flag, in flagd's words: constraints become JsonLogic, a cohort one branch of the flag's `targeting`. Pure.

    {"if": [{"and": ["amends:<action id> <cohort>", <condition>]}, <what they get>, <whatever stood there before>]}

A text that is not empty is true, so the label changes nothing in the evaluation and moves along when people rearrange
the rule around it. Whom the branch does not let in goes on to what stood there before, as in Unleash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from amends.spi import Json
from amends_flags.images import listed, mapped

_PAIR = 2
_MEMBER = ("in", "out")
_COMPARED = {
    "NUM_EQ": "==",
    "NUM_GT": ">",
    "NUM_GTE": ">=",
    "NUM_LT": "<",
    "NUM_LTE": "<=",
}
_VERSIONS = {"SEMVER_EQ": "=", "SEMVER_GT": ">", "SEMVER_LT": "<"}
_TEXTS = {"STR_STARTS_WITH": "starts_with", "STR_ENDS_WITH": "ends_with"}


def condition(constraints: list[Json], rollout_percent: int) -> Json:
    """The condition of a cohort: every constraint, and the share of those whom they let in.

    Raises `ValueError` for a constraint that flagd cannot express.
    """
    parts = [_constraint(mapped(constraint)) for constraint in constraints]
    if rollout_percent < 100:  # noqa: PLR2004 - percent
        member, other = _MEMBER
        shares: list[Json] = [[member, rollout_percent], [other, 100 - rollout_percent]]
        parts.append({"==": [{"fractional": shares}, member]})
    if not parts:
        return True
    return parts[0] if len(parts) == 1 else {"and": parts}


def split(weights: list[tuple[str, int]]) -> Json:
    """What a cohort gets, by weight: one variant's name, or flagd's `fractional`."""
    if len(weights) == 1:
        return weights[0][0]
    return {"fractional": [[name, weight] for name, weight in weights]}


def branches(targeting: Json) -> list[tuple[Json, Json]]:
    """Every branch of the `if` chain with its label and condition as they stand, outermost first."""
    found: list[tuple[Json, Json]] = []
    while True:
        steps = listed(mapped(targeting).get("if"))
        found += [(steps[at], steps[at + 1]) for at in range(0, len(steps) - 1, _PAIR)]
        if len(steps) % _PAIR == 0:
            return found
        targeting = steps[-1]


def with_first(targeting: Json, when: Json, then: Json) -> Json:
    """The chain with one branch more, before all others."""
    return {"if": [when, then, targeting] if targeting else [when, then]}


def with_changed(targeting: Json, place: int, when: Json, then: Json) -> Json:
    """The chain with its branch number `place` replaced."""
    return _edited(targeting, place, lambda: [when, then])


def without(targeting: Json, place: int) -> Json:
    """The chain without its branch number `place`; None if nothing else is left."""
    return _edited(targeting, place, list)


def labelled(title: str, when: Json) -> Json:
    """A condition under its label."""
    return {"and": [title, when]} if title else when


def unlabelled(when: Json) -> tuple[str, Json]:
    """Label and condition of a branch; the label is empty if no agent run made it."""
    steps = listed(mapped(when).get("and"))
    if len(steps) == _PAIR and isinstance(steps[0], str) and steps[0].startswith("amends:"):
        return steps[0], steps[1]
    return "", when


def _edited(targeting: Json, place: int, instead: Callable[[], list[Json]]) -> Json:
    steps = list(listed(mapped(targeting).get("if")))
    own = len(steps) // _PAIR
    if place < own:
        steps[place * _PAIR : place * _PAIR + _PAIR] = instead()
    elif len(steps) % _PAIR:
        steps[-1] = _edited(steps[-1], place - own, instead)
    if len(steps) <= 1:
        return steps[0] if steps else None
    return {**mapped(targeting), "if": steps}


def _constraint(constraint: Mapping[str, Json]) -> Json:
    name, operator = constraint.get("contextName"), str(constraint.get("operator"))
    if not isinstance(name, str) or not name:
        raise ValueError("a constraint needs a `contextName`")
    if constraint.get("caseInsensitive"):
        raise ValueError("flagd compares texts case by case: `caseInsensitive` cannot be expressed")
    found = _operation({"var": name}, operator, constraint)
    return {"!": [found]} if bool(constraint.get("inverted")) else found


def _operation(variable: Json, operator: str, constraint: Mapping[str, Json]) -> Json:
    values = listed(constraint.get("values"))
    if operator == "IN":
        return {"in": [variable, values]}
    if operator == "NOT_IN":
        return {"!": [{"in": [variable, values]}]}
    if operator in _TEXTS:
        return _any([{_TEXTS[operator]: [variable, value]} for value in values])
    if operator == "STR_CONTAINS":
        return _any([{"in": [value, variable]} for value in values])
    if operator in _VERSIONS:
        return {"sem_ver": [variable, _VERSIONS[operator], constraint.get("value")]}
    if operator in _COMPARED:
        return {_COMPARED[operator]: [variable, _number(constraint.get("value"))]}
    raise ValueError(f"the operator `{operator}` cannot be expressed in a flagd file")


def _any(conditions: list[Json]) -> Json:
    return conditions[0] if len(conditions) == 1 else {"or": conditions}


def _number(value: Json) -> Json:
    try:
        return int(str(value))
    except ValueError:
        return float(str(value))
