"""What an answer, a probe or a person tells us, as values: evidence, observations, decisions."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from pydantic import Field

from amends.core.canonical import Json, JsonMap
from amends.core.contract import Frozen

Source: TypeAlias = Literal["response", "probe", "late", "person", "takeover", "adopted"]
Strength: TypeAlias = Literal["proof", "authoritative", "weak"]
Seen: TypeAlias = Literal["applied", "absent", "many", "diverged", "inconclusive"]
Verdict: TypeAlias = Literal["allow", "deny", "needs_approval"]


class Evidence(Frozen):
    """What a classification rests on. `at_us` is ledger time in microseconds."""

    source: Source
    strength: Strength
    at_us: int
    code: str  # e.g. `not_sent`, `refused`, `timeout`, `probe_applied`, `person`
    detail: str = ""  # redacted
    by: str = ""  # the person, where source is `person`


class Observation(Frozen):
    """A probe's answer about the real system. `state` is what `when` predicates look at."""

    seen: Seen  # `applied`, `absent`, `many`, `diverged`, `inconclusive`
    state: dict[str, Json] = Field(default_factory=dict[str, Json])  # what `when` predicates look at
    effect: dict[str, Json] = Field(default_factory=dict[str, Json])  # what is there
    reference: str = ""  # its id
    parts: tuple[str, ...] = ()  # which `parts` exist
    twins: tuple[str, ...] = ()  # with `many`: the provider references that bear our marker
    detail: str = ""  # in words
    retry_after_seconds: float | None = None  # the provider asked not to be asked sooner


class ShadowAnswer(Frozen):
    """What policies without effect would have answered, where that differs from the decision it stands in."""

    of: Literal["policies", "bundle"]  # policies with `@shadow`, or the bundle of `[policies] shadow`
    verdict: Verdict
    tier: int = 0
    policy_ids: tuple[str, ...] = ()
    policy_version: str
    effective_digest: str
    code: str = ""
    reasons: tuple[str, ...] = ()


class Decision(Frozen):
    """One recorded authorization."""

    decision_id: str
    verdict: Verdict
    action: str  # the policy action's name
    tier: int = 0
    policy_ids: tuple[str, ...] = ()
    policy_version: str
    effective_digest: str
    code: str = ""  # e.g. `no_permit`, `forbidden`, `policy_error`
    reasons: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()  # roles that could approve; empty: any person may
    roles_together: bool = False  # it takes all of `roles`, among the people who approve; else any one of them
    approvers: int = 0  # with `needs_approval`: how many different people must say yes
    ttl_seconds: float = 0.0  # how long the asking policies let a question wait (`@ttl`); 0: they do not say
    question: str = ""  # what the asking policies say to people (`@gate`)
    asked_of: tuple[str, ...] = ()  # roles that the asking policies suggest to ask (`@approver_role`); no permission
    principal: str = ""
    resource: str = ""
    context: dict[str, Json] = Field(default_factory=dict[str, Json])  # non-secret by construction: replayable
    asked_us: int = 0  # ledger time of the question: what it allows is sent within the call's time limit, or not at all
    shadow: tuple[ShadowAnswer, ...] = ()

    @property
    def allowed(self) -> bool:
        """True only for a clean allow."""
        return self.verdict == "allow"


class FailureNote(Frozen):
    """The last error of an action, redacted."""

    code: str
    message: str = ""
    retry_after_seconds: float | None = None
    resendable: bool = False  # same generation and key may be sent again (rule 5)


def as_map(value: object) -> JsonMap:
    """`value` if it is a JSON object, else an empty one."""
    return cast("JsonMap", value) if isinstance(value, dict) else {}
