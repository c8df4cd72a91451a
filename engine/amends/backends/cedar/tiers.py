"""At which approval tiers an answer can change: read from policies, so that fewer hypothetical approvals are asked."""

from __future__ import annotations

from collections.abc import Iterable

from cedarpy import pst

from amends.backends.cedar.tree import CONTEXT, Policy, passes_on, walk

EVERY_TIER = frozenset({1, 2, 3})

_AT, _ABOVE = frozenset({"greater_eq", "less"}), frozenset({"greater", "less_eq"})
_MIRRORED = {"greater_eq": "less_eq", "less_eq": "greater_eq", "greater": "less", "less": "greater"}


def tier_steps(policies: Iterable[Policy]) -> frozenset[int]:
    """For each `n` here an answer of `policies` can differ between tier `n - 1` and `n`; for no other. Every tier, if a
    policy does anything with a tier but compare it with a number.
    """
    return frozenset(step for policy in policies for step in _steps(policy))


def _steps(policy: Policy) -> frozenset[int]:
    clauses = policy.template.clauses
    nodes = list(walk(clauses))
    compared = [steps for node in nodes if (steps := _compared(node)) is not None]
    read = sum(isinstance(node, pst.GetAttr) and node.attr == "tier" for node in nodes)
    if read > len(compared) or passes_on(clauses, "approval") or passes_on(clauses, CONTEXT):
        return EVERY_TIER
    return frozenset(step for steps in compared for step in steps)


def _compared(node: object) -> frozenset[int] | None:
    """Where a comparison of a tier with a number changes; None for anything else."""
    match node:
        case pst.BinaryOp(op=op, left=pst.GetAttr(attr="tier"), right=pst.LongLit(value=number)):
            return _changes(op, number)
        case pst.BinaryOp(op=op, left=pst.LongLit(value=number), right=pst.GetAttr(attr="tier")):
            return _changes(_MIRRORED.get(op, op), number)
        case _:
            return None


def _changes(op: str, number: int) -> frozenset[int] | None:
    if op in _AT:
        return frozenset({number})
    if op in _ABOVE:
        return frozenset({number + 1})
    return frozenset({number, number + 1}) if op in {"eq", "not_eq"} else None
