"""What policy tests exercise: each policy, and each of its conditions seen true and seen false."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from amends.backends.cedar.answer import Answer
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.conditions import conditions_of
from amends.backends.cedar.question import Question
from amends.backends.cedar.tracing import Tracer
from amends.backends.cedar.tree import Policy


@dataclass(frozen=True, slots=True)
class ConditionCoverage:
    """How often one condition was true and false; where it was not reached it is neither."""

    number: int
    clause: str
    text: str
    true: int
    false: int

    @property
    def missing(self) -> tuple[str, ...]:
        """What was never seen: of `true` and `false`."""
        return tuple(word for word, count in (("true", self.true), ("false", self.false)) if not count)


@dataclass(frozen=True, slots=True)
class PolicyCoverage:
    """How often one policy's scope matched, and how often it determined the answer."""

    policy_id: str
    file: str
    line: int
    matched: int
    determined: int
    conditions: tuple[ConditionCoverage, ...]

    @property
    def complete(self) -> bool:
        """True if the policy determined an answer and each of its conditions was seen both ways."""
        return self.determined > 0 and not any(condition.missing for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Every policy, in order of file and line."""

    policies: tuple[PolicyCoverage, ...]

    @property
    def goals(self) -> int:
        """What there is to see: each policy determining an answer, each condition true, each condition false."""
        return sum(1 + 2 * len(policy.conditions) for policy in self.policies)

    @property
    def seen(self) -> int:
        """How much of it was seen."""
        missing = sum(len(condition.missing) for policy in self.policies for condition in policy.conditions)
        return self.goals - missing - sum(not policy.determined for policy in self.policies)

    @property
    def percent(self) -> float:
        """What was seen of what there is to see; 100 if there is nothing."""
        return 100.0 * self.seen / self.goals if self.goals else 100.0


@dataclass(slots=True)
class _Counts:
    matched: int = 0
    determined: int = 0
    true: dict[int, int] = field(default_factory=dict[int, int])
    false: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(slots=True)
class CoverageRecorder:
    """Watches tests being run. One recorder may watch several snapshots; a policy is known by its id."""

    _counts: dict[str, _Counts] = field(default_factory=dict[str, _Counts])
    _tracers: dict[int, tuple[Snapshot, Tracer]] = field(default_factory=dict[int, tuple[Snapshot, Tracer]])

    def watch(self, snapshot: Snapshot, question: Question, found: Answer) -> None:
        """Count one answered question. Call it on a thread with enough stack."""
        for id_ in found.policy_ids:
            self._of(id_).determined += 1
        for trace in self._tracer(snapshot).trace(question):
            if not trace.in_scope:
                continue
            counts = self._of(trace.policy.id)
            counts.matched += 1
            for condition, value in zip(trace.conditions, trace.values, strict=True):
                if value is not None:
                    side = counts.true if value else counts.false
                    side[condition.number] = side.get(condition.number, 0) + 1

    def coverage(self, policies: Iterable[Policy]) -> Coverage:
        """What was seen of `policies`; others, such as those that a test brings, are left out."""
        ordered = sorted(policies, key=lambda policy: (policy.file, policy.line, policy.id))
        return Coverage(tuple(_covered(policy, self._counts.get(policy.id, _Counts())) for policy in ordered))

    def _of(self, policy_id: str) -> _Counts:
        return self._counts.setdefault(policy_id, _Counts())

    def _tracer(self, snapshot: Snapshot) -> Tracer:
        known = self._tracers.get(id(snapshot))
        if known is None:  # the snapshot is kept, so that its id stays its own
            known = self._tracers[id(snapshot)] = (snapshot, Tracer(snapshot))
        return known[1]


def _covered(policy: Policy, counts: _Counts) -> PolicyCoverage:
    conditions = tuple(
        ConditionCoverage(
            item.number, item.clause, item.text, _count(counts.true, item.number), _count(counts.false, item.number)
        )
        for item in conditions_of(policy).items
    )
    return PolicyCoverage(policy.id, policy.file, policy.line, counts.matched, counts.determined, conditions)


def _count(side: Mapping[int, int], number: int) -> int:
    return side.get(number, 0)


def gaps(coverage: Coverage) -> Sequence[str]:
    """What was not seen, a line each, with file and line of the policy."""
    found: list[str] = []
    for policy in coverage.policies:
        where = f"{policy.file}:{policy.line}: `{policy.policy_id}`"
        if not policy.determined:
            found.append(f"{where} never determined an answer")
        found += [
            f"{where}, {condition.clause} `{condition.text}`: never {' and never '.join(condition.missing)}"
            for condition in policy.conditions
            if condition.missing
        ]
    return found
