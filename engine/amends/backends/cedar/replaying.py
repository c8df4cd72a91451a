"""Recorded decisions asked again under a candidate: what would have come out otherwise?

The question is what was recorded, word for word, with one exception: which time windows were open is the candidate's
calendar's to say, at the recorded time. Everything else is a fact of its day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from amends.backends.cedar import windows
from amends.backends.cedar.answer import REQUEST_REJECTED, Answer, answer
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import Question, RequestRejected, from_record
from amends.backends.cedar.windows import EPOCH
from amends.core.canonical import Json
from amends.core.evidence import Decision, Verdict, as_map

Kind = Literal["same", "same_by_others", "loosened", "tightened", "not_evaluable"]
KINDS: tuple[Kind, ...] = ("same", "same_by_others", "loosened", "tightened", "not_evaluable")
_RANK: Mapping[Verdict, int] = {"deny": 0, "needs_approval": 1, "allow": 2}


@dataclass(frozen=True, slots=True)
class Replayed:
    """One decision and what the candidate says. `problem` says why a decision is not evaluable."""

    kind: Kind
    decision: Decision
    found: Answer | None
    problem: str = ""


def replay(decisions: Iterable[Decision], candidate: Snapshot) -> Iterator[Replayed]:
    """Each decision under `candidate`, in order. Call it on a thread with enough stack."""
    for decision in decisions:
        yield replay_one(decision, candidate)


def replay_one(decision: Decision, candidate: Snapshot) -> Replayed:
    """One decision under `candidate`. Call it on a thread with enough stack."""
    if not decision.context:
        return Replayed("not_evaluable", decision, None, "the question was refused before it could be recorded")
    try:
        question = from_record(_with_windows(decision.context, candidate))
    except (RequestRejected, ValueError) as problem:
        return Replayed("not_evaluable", decision, None, f"the recorded question cannot be read: {problem}")
    if question.action_key not in candidate.actions:
        return Replayed("not_evaluable", decision, None, f"there is no action `{decision.action}` any more")
    found = answer(candidate, question)
    if found.code == REQUEST_REJECTED and decision.code != REQUEST_REJECTED:
        return Replayed("not_evaluable", decision, found, f"the schema of `{decision.action}` has changed")
    return Replayed(_kind(decision, found), decision, found)


def _kind(decision: Decision, found: Answer) -> Kind:
    """Anything that lets more through is `loosened`, whatever else it does: the doubt goes to a person."""
    if found.verdict != decision.verdict:
        return "loosened" if _RANK[found.verdict] > _RANK[decision.verdict] else "tightened"
    if found.verdict == "needs_approval":
        before = (decision.tier, decision.approvers, decision.roles, decision.roles_together)
        after = (found.tier, found.approvers, found.roles, found.roles_together)
        if before != after:
            return "loosened" if _asks_less(decision, found) else "tightened"
    return "same" if sorted(found.policy_ids) == sorted(decision.policy_ids) else "same_by_others"


def _asks_less(decision: Decision, found: Answer) -> bool:
    """True if somebody could say yes who could not before."""
    if found.tier < decision.tier or found.approvers < decision.approvers:
        return True
    return any(not _suffices(decision, roles) for roles in _sufficient(found))


def _sufficient(found: Answer) -> list[set[str]]:
    """The smallest sets of roles that are enough."""
    return [set(found.roles)] if found.roles_together or not found.roles else [{role} for role in found.roles]


def _suffices(decision: Decision, roles: set[str]) -> bool:
    asked = set(decision.roles)
    return asked <= roles if decision.roles_together or not asked else bool(asked & roles)


def _with_windows(context: Mapping[str, Json], candidate: Snapshot) -> Mapping[str, Json]:
    time = as_map(context.get("time"))
    now = time.get("now")
    if not isinstance(now, str):
        return context
    at = datetime.fromisoformat(now)
    if at.tzinfo is None:
        raise RequestRejected("`time.now` has no time zone")
    names: list[Json] = list(windows.open_names(candidate.windows, (at - EPOCH) // timedelta(microseconds=1)))
    return {**context, "time": {**time, "windows": names}}


def question_of(decision: Decision) -> Question:
    """What was asked then. Raises `RequestRejected` for a decision that recorded no question."""
    if not decision.context:
        raise RequestRejected("the question was refused before it could be recorded")
    return from_record(decision.context)
