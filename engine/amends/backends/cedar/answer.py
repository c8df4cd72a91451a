"""Three answers from two-valued Cedar: allow, needs a person's approval, or deny.

Policies stay plain Cedar, so any Cedar tool agrees on allow and deny. What a person could change is found by asking
again with a hypothetical approval; a question that would be refused even then never reaches a person. Everything
that is not a clean allow is a deny: an evaluation error, no decision, an allow that no policy determined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from amends.backends.cedar import native
from amends.backends.cedar.compile import Slice, Snapshot
from amends.backends.cedar.question import Question, stamp
from amends.backends.cedar.tree import Policy
from amends.backends.cedar.windows import EPOCH
from amends.core.canonical import Json, JsonMap
from amends.core.evidence import Verdict

TIERS = (1, 2, 3)
TWO_PEOPLE = 2  # the most that a policy can be found to ask for
LIFETIME = timedelta(days=1)  # of a hypothetical approval

FORBIDDEN = "forbidden"
NO_PERMIT = "no_permit"
POLICY_ERROR = "policy_error"
REQUEST_REJECTED = "request_rejected"
NO_DETERMINING_POLICY = "no_determining_policy"
ENGINE_ERROR = "engine_error"
APPROVAL_NEEDED = "approval_needed"


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the three, with the policies it rests on and their reasons in words."""

    verdict: Verdict
    code: str = ""
    policy_ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    tier: int = 0
    approvers: int = 0
    roles: tuple[str, ...] = ()
    roles_together: bool = False
    ttl_seconds: float = 0.0
    question: str = ""
    asked_of: tuple[str, ...] = ()
    errors: int = 0


@dataclass(frozen=True, slots=True)
class _Asker:
    """One question against one slice; only the approval varies."""

    snapshot: Snapshot
    slice: Slice
    question: Question
    entities: native.EntitiesHandle

    def ask(self, approval: JsonMap | None = None) -> native.RawAnswer:
        context = self.question.context if approval is None else {**self.question.context, "approval": approval}
        return native.evaluate(self.question.uids, context, self.slice.handle, self.entities, self.snapshot.schema)

    def clean_allow(self, approval: JsonMap) -> native.RawAnswer | None:
        raw = self.ask(approval)
        return raw if raw.allowed and raw.determining and not raw.errors else None


def answer(snapshot: Snapshot, question: Question, *, sliced: bool = True) -> Answer:
    """The answer to `question` under `snapshot`. `sliced=False` asks all policies: the same answer, slower."""
    if question.action_key not in snapshot.actions:
        return deny(REQUEST_REJECTED, f"the policy action `{question.action['id']}` does not exist here")
    cut = snapshot.slice(question.action_key) if sliced else snapshot.whole
    entities = native.parse_entities(question.entities, snapshot.schema)
    if entities is None:
        return deny(REQUEST_REJECTED, "principal or resource does not fit the schema")
    asker = _Asker(snapshot, cut, question, entities)
    raw = asker.ask()
    refused = _unclean(raw, question)
    if refused is not None:
        return refused
    if raw.allowed:
        return Answer("allow", "", raw.determining, _reasons(cut, raw.determining))
    if cut.reads_approval and all(cut.policies[id_].reads_approval for id_ in raw.determining):
        asked = _approvable(asker, raw)
        if asked is not None:
            return asked
    if raw.determining:
        return Answer("deny", FORBIDDEN, raw.determining, _reasons(cut, raw.determining))
    return deny(NO_PERMIT, f"no policy permits `{question.action['id']}` in this situation")


def deny(code: str, reason: str, policy_ids: tuple[str, ...] = (), errors: int = 0) -> Answer:
    """A deny that Amends itself explains."""
    return Answer("deny", code, policy_ids, (reason,), errors=errors)


def _unclean(raw: native.RawAnswer, question: Question) -> Answer | None:
    if raw.rejected:
        return deny(REQUEST_REJECTED, f"the request does not fit what `{question.action['id']}` declares")
    if raw.errors:
        names = ", ".join(f"`{id_}`" for id_ in raw.errored) or "a policy"
        return deny(POLICY_ERROR, f"{names} could not be evaluated", raw.errored, raw.errors)
    if raw.allowed and not raw.determining:
        return deny(NO_DETERMINING_POLICY, "the engine allowed without naming a policy")
    return None


def _approvable(asker: _Asker, base: native.RawAnswer) -> Answer | None:
    """The lowest tier, and the fewest people, whose approval gives a clean allow; None if none does."""
    cut, held = asker.slice, asker.question.context.get("approval")
    for tier, people in _ladder(cut, held):
        raw = asker.clean_allow(_hypothetical(asker.question.context, tier, people, cut.roles))
        if raw is None:
            continue
        gating = set(base.determining) | {id_ for id_ in raw.determining if cut.policies[id_].reads_approval}
        ids = tuple(sorted(gating))
        roles, together = _sufficient_roles(asker, tier, people)
        return _asking(
            Answer("needs_approval", APPROVAL_NEEDED, ids, _reasons(cut, ids), tier, people, roles, together),
            [cut.policies[id_] for id_ in ids],
        )
    return None


def _asking(found: Answer, policies: Sequence[Policy]) -> Answer:
    """With what the asking policies' annotations say: text and defaults, which permit nothing. The shortest `@ttl`
    counts.
    """
    return replace(
        found,
        ttl_seconds=min((policy.ttl_seconds for policy in policies if policy.ttl_seconds), default=0.0),
        question="; ".join(dict.fromkeys(policy.gate for policy in policies if policy.gate)),
        asked_of=tuple(sorted({policy.approver_role for policy in policies if policy.approver_role})),
    )


def _ladder(cut: Slice, held: Json) -> Iterator[tuple[int, int]]:
    """What to ask with, least first; a tier at which no policy could answer otherwise than one below is left out."""
    lowest, people = 1, 1
    if isinstance(held, dict):
        lowest, people = _integer(held, "tier"), _integer(held, "count") + 1
    within = [tier for tier in TIERS if tier >= lowest]
    for tier in within:
        if tier == within[0] or tier in cut.tier_steps:
            yield tier, people
            if cut.counts_approvers and people < TWO_PEOPLE:
                yield tier, TWO_PEOPLE


def _hypothetical(context: Mapping[str, Json], tier: int, people: int, roles: Sequence[str]) -> JsonMap:
    """The approval held so far, plus people who hold `roles`: nobody's name, never the initiator's."""
    held = context.get("approval")
    before: JsonMap = held if isinstance(held, dict) else {}
    approvers = _list(before, "approvers")
    added: list[Json] = [
        {"type": "Amends::Human", "id": f"\N{BULLET} any approver {number}"}
        for number in range(people - len(approvers))
    ]
    held_roles = _list(before, "roles")
    new_roles: list[Json] = [{"type": "Amends::Role", "id": role} for role in roles]
    now = _now(context)
    return {
        "approvers": [*approvers, *added],
        "roles": [*held_roles, *(role for role in new_roles if role not in held_roles)],
        "count": people,
        "tier": tier,
        "at": stamp(now),
        "expires_at": stamp(now + LIFETIME),
    }


def _now(context: Mapping[str, Json]) -> datetime:
    time = context.get("time")
    return datetime.fromisoformat(str(time["now"])) if isinstance(time, dict) else EPOCH


def _sufficient_roles(asker: _Asker, tier: int, people: int) -> tuple[tuple[str, ...], bool]:
    """Roles of which any one is enough; empty: any person may. If only several are enough: the fewest, and True."""
    every, context = asker.slice.roles, asker.question.context
    if not every or asker.clean_allow(_hypothetical(context, tier, people, ())):
        return (), False
    if len(every) == 1:
        return every, False
    alone = tuple(role for role in every if asker.clean_allow(_hypothetical(context, tier, people, (role,))))
    if alone:
        return alone, False
    together = every
    for role in every:
        fewer = tuple(other for other in together if other != role)
        if asker.clean_allow(_hypothetical(context, tier, people, fewer)):
            together = fewer
    return together, True


def _reasons(cut: Slice, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cut.policies[id_].reason for id_ in ids if id_ in cut.policies))


def _integer(value: Mapping[str, Json], name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 1


def _list(value: Mapping[str, Json], name: str) -> list[Json]:
    found = value.get(name)
    return list(found) if isinstance(found, list) else []
