"""Why a question was answered as it was: the policies that decided, and the condition that made the difference.

A policy says one thing or another because of few of its conditions; only those are told, in words, with the values the
question had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cedarpy import pst

from amends.backends.cedar.answer import Answer, answer
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import Question
from amends.backends.cedar.rendering import uid
from amends.backends.cedar.tracing import PolicyTrace, Tracer
from amends.backends.cedar.words import in_words
from amends.core.evidence import Verdict, as_map

Say = Literal["forbids", "permits", "would permit", "does not permit"]


@dataclass(frozen=True, slots=True)
class ConditionSaid:
    """One condition that made the difference: as written, what it came to, and that in words."""

    clause: str
    text: str
    value: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class PolicySaid:
    """One policy's part in the answer. `would permit`: a person's approval is all that it lacks."""

    policy_id: str
    say: Say
    reason: str
    file: str
    line: int
    conditions: tuple[ConditionSaid, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer and its grounds. `policies` are those that decided; for a deny without any, every permit that speaks of
    the action and why it did not permit.
    """

    verdict: Verdict
    code: str
    reasons: tuple[str, ...]
    tier: int
    approvers: int
    roles: tuple[str, ...]
    roles_together: bool  # it takes all of `roles`; else any one of them
    policies: tuple[PolicySaid, ...]
    policy_version: str
    forward_policy_version: str  # of the effect that the action is about; empty: none, or the same run of policies

    @property
    def policy_changed(self) -> bool:
        """True if the effect was made under other policies than those asked now."""
        return self.forward_policy_version not in {"", self.policy_version}


def explain(snapshot: Snapshot, question: Question, tracer: Tracer | None = None) -> Explanation:
    """Ask `question` again under `snapshot` and say why. Call it on a thread with enough stack."""
    found = answer(snapshot, question)
    traces = (tracer or Tracer(snapshot)).trace(question)
    run = as_map(question.context.get("run"))
    return Explanation(
        verdict=found.verdict,
        code=found.code,
        reasons=found.reasons,
        tier=found.tier,
        approvers=found.approvers,
        roles=found.roles,
        roles_together=found.roles_together,
        policies=tuple(_policies(found, traces, question)),
        policy_version=str(run.get("policy_version") or snapshot.version),
        forward_policy_version=str(run.get("forward_policy_version") or ""),
    )


def _policies(found: Answer, traces: Sequence[PolicyTrace], question: Question) -> list[PolicySaid]:
    decided = [trace for trace in traces if trace.policy.id in found.policy_ids]
    said = [_said(trace, question, asked=found.verdict == "needs_approval") for trace in decided]
    permits = [trace for trace in traces if trace.policy.effect == "permit"]
    if found.verdict == "deny" and not any(trace.applies for trace in permits):
        said += [_said(trace, question, asked=False) for trace in permits]
    return said


def _said(trace: PolicyTrace, question: Question, *, asked: bool) -> PolicySaid:
    policy = trace.policy
    say: Say = "forbids" if policy.effect == "forbid" else "permits"
    if policy.effect == "permit" and not trace.applies:
        say = "would permit" if asked else "does not permit"
    return PolicySaid(policy.id, say, policy.reason, policy.file, policy.line, tuple(_grounds(trace, question)))


def _grounds(trace: PolicyTrace, question: Question) -> list[ConditionSaid]:
    scope = trace.policy.template
    if not trace.principal_fits:
        return [_scope("principal", "who asks", scope.principal, question.principal["type"], question.principal["id"])]
    if not trace.resource_fits:
        return [_scope("resource", "the resource", scope.resource, question.resource["type"], question.resource["id"])]
    chosen = [trace.conditions[number - 1] for number in trace.decisive]
    return [
        ConditionSaid(
            item.clause,
            item.text,
            trace.values[item.number - 1],
            in_words(item, trace.values[item.number - 1], question),
        )
        for item in chosen
    ]


def _scope(clause: str, name: str, scope: pst.PrincipalOrResourceConstraint, type_: str, id_: str) -> ConditionSaid:
    wanted, text = _wanted(scope)
    is_ = f"{type_.rpartition('::')[2]} `{id_}`"
    return ConditionSaid(clause, f"{clause} {text}", value=False, words=f"{name} is not {wanted}: it was {is_}")


def _wanted(scope: pst.PrincipalOrResourceConstraint) -> tuple[str, str]:
    match scope:
        case pst.ScopeIs(entity_type=kind):
            return f"of type {kind.basename}", f"is {kind}"
        case pst.ScopeEq(entity=pst.EntityUid() as entity):
            return f"`{entity.id}`", f"== {uid(entity)}"
        case pst.ScopeIn(entity=pst.EntityUid() as entity):
            return f"in `{entity.id}`", f"in {uid(entity)}"
        case pst.ScopeIsIn(entity_type=kind, entity=pst.EntityUid() as entity):
            return f"of type {kind.basename} in `{entity.id}`", f"is {kind} in {uid(entity)}"
        case _:
            return "the one meant", ""
