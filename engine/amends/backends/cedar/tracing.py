"""Which conditions of which policies were true for one question: all of them asked of Cedar at once.

Every condition becomes a policy of its own in one synthetic set. Those that determine the answer are true; those that
cannot be evaluated were not reached; the others are false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cedarpy import pst

from amends.backends.cedar import native
from amends.backends.cedar.compile import Slice, Snapshot
from amends.backends.cedar.conditions import Condition, Conditions, Value, because, conditions_of, value_of
from amends.backends.cedar.question import Question
from amends.backends.cedar.tree import Policy

PRINCIPAL, RESOURCE = "principal", "resource"


@dataclass(frozen=True, slots=True)
class PolicyTrace:
    """One policy before one question: does its scope match, and what did its conditions come to?"""

    policy: Policy
    conditions: tuple[Condition, ...]
    values: tuple[Value, ...]
    principal_fits: bool
    resource_fits: bool
    fulfilled: Value  # the conditions together
    decisive: tuple[int, ...]  # the numbers of the conditions for which it came to that

    @property
    def in_scope(self) -> bool:
        """True if the policy speaks of this principal, action and resource."""
        return self.principal_fits and self.resource_fits

    @property
    def applies(self) -> bool:
        """True if the policy has its say."""
        return self.in_scope and self.fulfilled is True


@dataclass(frozen=True, slots=True)
class _Compiled:
    cut: Slice
    conditions: Mapping[str, Conditions]
    handle: native.PolicyHandle


class Tracer:
    """Traces questions under one snapshot. Call it on a thread with enough stack; what it compiles it keeps."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._compiled: dict[tuple[str, str], _Compiled] = {}

    def trace(self, question: Question) -> tuple[PolicyTrace, ...]:
        """Every policy whose scope names the question's action, in order of id; empty if the question does not fit the
        schema.
        """
        if question.action_key not in self._snapshot.actions:
            return ()
        compiled = self._compiled.get(question.action_key)
        if compiled is None:
            compiled = _compile(self._snapshot.slice(question.action_key))
            self._compiled[question.action_key] = compiled
        entities = native.parse_entities(question.entities, self._snapshot.schema)
        if entities is None:
            return ()
        raw = native.evaluate(question.uids, question.context, compiled.handle, entities, self._snapshot.schema)
        if raw.rejected:
            return ()
        true, failed = frozenset(raw.determining), frozenset(raw.errored)
        ordered = sorted(compiled.cut.policies.values(), key=lambda policy: policy.id)
        return tuple(_traced(policy, compiled.conditions[policy.id], true, failed) for policy in ordered)


def _compile(cut: Slice) -> _Compiled:
    conditions = {policy.id: conditions_of(policy) for policy in cut.policies.values()}
    asked: list[pst.Template] = []
    for policy in cut.policies.values():
        scope = policy.template
        asked.append(_permit(f"{policy.id}#{PRINCIPAL}", (), principal=scope.principal))
        asked.append(_permit(f"{policy.id}#{RESOURCE}", (), resource=scope.resource))
        asked += [
            _permit(f"{policy.id}#{item.number}", (pst.When(item.expression),)) for item in conditions[policy.id].items
        ]
    return _Compiled(cut, conditions, native.build(asked))


def _permit(
    id_: str,
    clauses: Sequence[pst.Clause],
    *,
    principal: pst.PrincipalOrResourceConstraint | None = None,
    resource: pst.PrincipalOrResourceConstraint | None = None,
) -> pst.Template:
    anyone = pst.ScopeAny()
    return pst.Template(id_, "permit", principal or anyone, anyone, resource or anyone, tuple(clauses), {})


def _traced(policy: Policy, own: Conditions, true: Iterable[str], failed: Iterable[str]) -> PolicyTrace:
    values = tuple(_value(f"{policy.id}#{item.number}", true, failed) for item in own.items)
    return PolicyTrace(
        policy=policy,
        conditions=own.items,
        values=values,
        principal_fits=f"{policy.id}#{PRINCIPAL}" in true,
        resource_fits=f"{policy.id}#{RESOURCE}" in true,
        fulfilled=value_of(own.formula, values),
        decisive=tuple(dict.fromkeys(because(own.formula, values))),
    )


def _value(id_: str, true: Iterable[str], failed: Iterable[str]) -> Value:
    if id_ in true:
        return True
    return None if id_ in failed else False
