"""Every fact the ledger can hold: one frozen body per kind, and the envelope around it.

Past tense: an event is something that happened. `encode` and `decode` are the only way in and out of text; a
payload that does not decode raises `CorruptLedger`, and its run is quarantined instead of guessed at (rule 16).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from amends.core.canonical import Json
from amends.core.contract import Contract, Frozen, Phase, ReleaseMode
from amends.core.errors import CorruptLedger
from amends.core.evidence import Decision, Evidence, FailureNote, Observation
from amends.core.status import ActionKind, Outcome, ParkedCause, RunStatus

LEDGER_FORMAT = 1
SYSTEM_STREAM = "system"

JsonFields: TypeAlias = dict[str, Json]
Verb: TypeAlias = Literal[
    "wait", "reconcile", "compensate", "correct", "escalate", "skip", "withdraw", "check", "ask", "release", "turn_back"
]
ProbePurpose: TypeAlias = Literal[
    "confirm", "reconcile", "before_undo", "verify_undone", "late_check", "residue", "still_there"
]


class Holder(Frozen):
    """Who may drive a run. `owner_file` is the flocked file whose release proves death on this host (rule 12)."""

    owner_id: str
    host: str
    pid: int
    owner_file: str


# --- runs ---------------------------------------------------------------------------------------------------


class RunOpened(Frozen):
    """A run began under epoch 1."""

    kind: Literal["run_opened"] = "run_opened"
    tenant: str
    workflow: str
    run_key: str
    agent: str
    initiator: str
    owner: str  # a named person
    intent_ref: str = ""
    check: str = ""
    resume_grace_seconds: float = 0.0
    holder: Holder
    lease_until_us: int
    caused_by: str = ""  # the terminal run whose later facts opened this one (rule 25)


class RunClaimed(Frozen):
    """Another driver took over; the envelope's epoch is the new one."""

    kind: Literal["run_claimed"] = "run_claimed"
    holder: Holder
    lease_until_us: int
    proof: Literal["owner_dead", "lease_over", "released", "same_process"]
    dead_since_us: int  # from when the former owner provably sends nothing more


class LeaseRenewed(Frozen):
    """The driver lives."""

    kind: Literal["lease_renewed"] = "lease_renewed"
    lease_until_us: int


class LeaseReleased(Frozen):
    """The driver let go: the next one needs no proof of death."""

    kind: Literal["lease_released"] = "lease_released"


class RunMoved(Frozen):
    """The run's status changed."""

    kind: Literal["run_moved"] = "run_moved"
    to: RunStatus
    reason: str
    by: str = ""


class CheckpointReached(Frozen):
    """A named point to recover to (rule 24)."""

    kind: Literal["checkpoint_reached"] = "checkpoint_reached"
    name: str


class RecoveryTargeted(Frozen):
    """Recovery compensates only what came after this checkpoint; empty: everything."""

    kind: Literal["recovery_targeted"] = "recovery_targeted"
    checkpoint: str


class CheckAnswered(Frozen):
    """A registered success condition was asked."""

    kind: Literal["check_answered"] = "check_answered"
    check: str
    answer: Literal["passed", "not_passed", "unknown"]
    detail: str = ""


class RecoveryWaiting(Frozen):
    """Nothing is due before this time."""

    kind: Literal["recovery_waiting"] = "recovery_waiting"
    due_us: int


# --- actions ------------------------------------------------------------------------------------------------


class ActionPlanned(Frozen):
    """What is intended, with the contract as it was and the compensation registered: before any call (rule 1)."""

    kind: Literal["action_planned"] = "action_planned"
    action_kind: ActionKind
    of: str = ""  # the forward action of an undo or duplicate
    rung: str = ""  # the compensation alternative of an undo
    capability: str
    adapter: str
    instance: str
    environment: str
    slot: str
    label: str = ""
    generation: int = 1
    args: JsonFields
    args_digest: str
    input: JsonFields = Field(default_factory=dict[str, Json])  # declared policy input
    resource: str
    subject_digest: str = ""  # of what its drill certificate is about
    contract: Contract
    depends_on: tuple[str, ...] | None = None  # None: nothing declared
    inputs_from: tuple[str, ...] = ()  # actions whose outputs are used
    claim: str = ""  # identity claim beyond the run (rule 6)
    place: str = ""  # of a correction
    revision: int = 0
    covers: tuple[str, ...] = ()  # actions a correction speaks of
    required: bool = True


class DecisionRecorded(Frozen):
    """Policy was asked."""

    kind: Literal["decision_recorded"] = "decision_recorded"
    phase: Phase
    decision: Decision


class ActionDenied(Frozen):
    """Policy, or rule 11, said no; nothing was sent."""

    kind: Literal["action_denied"] = "action_denied"
    code: str
    reason: str


class ActionQueued(Frozen):
    """Waits in the outbox."""

    kind: Literal["action_queued"] = "action_queued"
    mode: ReleaseMode
    content_digest: str = ""
    before_image: JsonFields = Field(default_factory=dict[str, Json])


class IntentRecorded(Frozen):
    """The durable intent of one send. Whatever is read later about this attempt stands here."""

    kind: Literal["intent_recorded"] = "intent_recorded"
    attempt: int
    idempotency_key: str
    deadline_us: int
    before_image: JsonFields = Field(default_factory=dict[str, Json])
    allocated: JsonFields = Field(default_factory=dict[str, Json])
    content_digest: str = ""
    approval_id: str = ""


class OutcomeRecorded(Frozen):
    """What is known of the effect now, and why."""

    kind: Literal["outcome_recorded"] = "outcome_recorded"
    outcome: Outcome
    evidence: Evidence
    effect: JsonFields = Field(default_factory=dict[str, Json])
    output: JsonFields = Field(default_factory=dict[str, Json])  # what the agent was told
    after_image: JsonFields = Field(default_factory=dict[str, Json])
    reference: str = ""
    parts: tuple[str, ...] = ()
    error: FailureNote | None = None


class ProbeSent(Frozen):
    """A read-only question is about to be asked."""

    kind: Literal["probe_sent"] = "probe_sent"
    purpose: ProbePurpose
    number: int


class ProbeAnswered(Frozen):
    """The real system's answer."""

    kind: Literal["probe_answered"] = "probe_answered"
    purpose: ProbePurpose
    observation: Observation


class LateEvidence(Frozen):
    """A stale owner or a call-back reports; moves no status until the owner folds it (rule 13)."""

    kind: Literal["evidence.late"] = "evidence.late"
    outcome: Outcome
    evidence: Evidence
    effect: JsonFields = Field(default_factory=dict[str, Json])
    reference: str = ""


class CompensationStarted(Frozen):
    """An undo of this action lives."""

    kind: Literal["compensation_started"] = "compensation_started"
    undo: str
    rung: str


class CompensationVerified(Frozen):
    """A separate read of the real system found the effect gone (rule 18)."""

    kind: Literal["compensation_verified"] = "compensation_verified"
    how: Literal["undone", "already_gone", "nothing_to_undo", "person"]
    undo: str = ""
    observation: Observation | None = None
    late_check_due_us: int | None = None


class LateCheckDone(Frozen):
    """The second look after a verified undo is over. `diverged`: somebody else changed it since; `inconclusive`: the
    system could not be read any more.
    """

    kind: Literal["late_check_done"] = "late_check_done"
    seen: Literal["absent", "diverged", "inconclusive"]


class EffectReappeared(Frozen):
    """The effect landed after its undo was verified."""

    kind: Literal["effect_reappeared"] = "effect_reappeared"
    observation: Observation


class ActionWithdrawn(Frozen):
    """Left the outbox or was refused by a person, unsent."""

    kind: Literal["action_withdrawn"] = "action_withdrawn"
    reason: str
    by: str = ""


class ActionParked(Frozen):
    """Waits for a person, with a cause."""

    kind: Literal["action_parked"] = "action_parked"
    cause: ParkedCause
    detail: str = ""


class ActionReopened(Frozen):
    """New evidence, a new bundle or a person lets automation go on."""

    kind: Literal["action_reopened"] = "action_reopened"
    reason: str
    by: str = ""


class ActionAccepted(Frozen):
    """A person takes the state as it is."""

    kind: Literal["action_accepted"] = "action_accepted"
    by: str
    comment: str = ""


class RecoveryDecided(Frozen):
    """One step of a plan, with the facts it rests on."""

    kind: Literal["recovery_decided"] = "recovery_decided"
    decision: Verb
    reason: str
    facts: JsonFields = Field(default_factory=dict[str, Json])
    due_us: int | None = None


# --- people -------------------------------------------------------------------------------------------------


class ApprovalAsked(Frozen):
    """People are asked; the digest binds exactly what was shown (rule 30)."""

    kind: Literal["approval_asked"] = "approval_asked"
    approval_id: str
    phase: Phase
    tier: int
    roles: tuple[str, ...] = ()  # empty: any person of the tier
    roles_together: bool = False  # it takes all of `roles`, among the people who say yes; else any one of them
    people: int = 1  # how many different people must say yes
    reasons: tuple[str, ...] = ()
    question: str = ""  # what the asking policies say to people
    asked_of: tuple[str, ...] = ()  # roles it is addressed to first; no permission
    shown: JsonFields
    digest: str
    content_digest: str = ""  # of what was read when asking; it may have changed since the action was queued
    expires_us: int


class ApprovalGiven(Frozen):
    """One person's yes."""

    kind: Literal["approval_given"] = "approval_given"
    approval_id: str
    by: str
    roles: tuple[str, ...] = ()
    tier: int
    channel: str
    comment: str = ""
    digest: str


class ApprovalClosed(Frozen):
    """No yes can come any more: refused, expired, voided by a change, or consumed by an intent."""

    kind: Literal["approval_closed"] = "approval_closed"
    approval_id: str
    how: Literal["refused", "expired", "voided", "withdrawn"]
    by: str = ""
    channel: str = ""
    comment: str = ""
    roll_back: bool = False


class EscalationOpened(Frozen):
    """A bounded work item for a person: what is known, in doubt, proposed, until when (rule 34)."""

    kind: Literal["escalation_opened"] = "escalation_opened"
    escalation_id: str
    cause: str
    queue: str
    owner: str
    deadline_us: int
    known: str
    in_doubt: str
    proposed: str
    choices: tuple[str, ...]
    evidence: JsonFields = Field(default_factory=dict[str, Json])


class EscalationNotified(Frozen):
    """A notifier tried to deliver."""

    kind: Literal["escalation_notified"] = "escalation_notified"
    escalation_id: str
    notifier: str
    delivered: bool
    detail: str = ""


class EscalationAcknowledged(Frozen):
    """A person has seen it: paging stops."""

    kind: Literal["escalation_acknowledged"] = "escalation_acknowledged"
    escalation_id: str
    by: str
    channel: str


class EscalationResolved(Frozen):
    """A person (or new evidence) decided."""

    kind: Literal["escalation_resolved"] = "escalation_resolved"
    escalation_id: str
    choice: str
    by: str
    channel: str
    comment: str = ""
    evidence: str = ""


# --- the system stream --------------------------------------------------------------------------------------


class PauseSet(Frozen):
    """No forward intent passes in this scope: `all`, `tenant:x` or `workflow:x` (rule 15)."""

    kind: Literal["pause_set"] = "pause_set"
    scope: str
    reason: str
    by: str


class PauseLifted(Frozen):
    """The pause is over."""

    kind: Literal["pause_lifted"] = "pause_lifted"
    scope: str
    by: str


SHIPPED_POLICIES = "baseline/"  # sources so named came with the engine: the same bytes everywhere, no site's secret


class BundleRecorded(Frozen):
    """A policy bundle's sources, kept once: any decision can be re-derived from the ledger."""

    kind: Literal["bundle_recorded"] = "bundle_recorded"
    policy_version: str
    effective_digest: str
    semantic_digest: str = ""  # of the meaning: layout, comments and order do not count
    sources: dict[str, str]


class BundleActivated(Frozen):
    """This bundle decides from now on: an engine has loaded it, or somebody had it examined and it is sound."""

    kind: Literal["bundle_activated"] = "bundle_activated"
    policy_version: str
    effective_digest: str
    replaced: str = ""  # the version before; empty: none was recorded


class BundleRejected(Frozen):
    """A bundle was refused; what decided before goes on deciding."""

    kind: Literal["bundle_rejected"] = "bundle_rejected"
    role: Literal["active", "shadow"]  # what it was meant for
    policy_version: str  # empty: it could not even be read
    digest: str  # of what was found, so that one fault is told once
    reasons: tuple[str, ...]
    kept: str  # the version that goes on deciding


class RunQuarantined(Frozen):
    """A run's rows cannot be read; nothing drives it until a person looks (rule 16)."""

    kind: Literal["run_quarantined"] = "run_quarantined"
    quarantined_run: str
    reason: str


class QuarantineNotified(Frozen):
    """A notifier tried to tell somebody of a quarantined run (rule 34)."""

    kind: Literal["quarantine_notified"] = "quarantine_notified"
    quarantined_run: str
    owner: str
    notifier: str
    delivered: bool
    detail: str = ""


class RunQuarantineLifted(Frozen):
    """A person lets a quarantined run be driven again: it reads back, as its events say."""

    kind: Literal["run_quarantine_lifted"] = "run_quarantine_lifted"
    quarantined_run: str
    by: str
    channel: str
    comment: str = ""


class DrillCertified(Frozen):
    """Do, verify, undo, verify passed on a sandbox (key: capability + contract + subject digest + engine major)."""

    kind: Literal["drill_certified"] = "drill_certified"
    capability: str
    contract_digest: str
    subject_digest: str
    engine_major: int
    expires_us: int
    detail: str = ""


class ReportDelivered(Frozen):
    """A run's report was sent to its owner (rule 34)."""

    kind: Literal["report_delivered"] = "report_delivered"
    reported_run: str
    owner: str
    notifier: str
    delivered: bool
    detail: str = ""


Body: TypeAlias = Annotated[
    RunOpened
    | RunClaimed
    | LeaseRenewed
    | LeaseReleased
    | RunMoved
    | CheckpointReached
    | RecoveryTargeted
    | CheckAnswered
    | RecoveryWaiting
    | ActionPlanned
    | DecisionRecorded
    | ActionDenied
    | ActionQueued
    | IntentRecorded
    | OutcomeRecorded
    | ProbeSent
    | ProbeAnswered
    | LateEvidence
    | CompensationStarted
    | CompensationVerified
    | LateCheckDone
    | EffectReappeared
    | ActionWithdrawn
    | ActionParked
    | ActionReopened
    | ActionAccepted
    | RecoveryDecided
    | ApprovalAsked
    | ApprovalGiven
    | ApprovalClosed
    | EscalationOpened
    | EscalationNotified
    | EscalationAcknowledged
    | EscalationResolved
    | PauseSet
    | PauseLifted
    | BundleRecorded
    | BundleActivated
    | BundleRejected
    | RunQuarantined
    | QuarantineNotified
    | RunQuarantineLifted
    | DrillCertified
    | ReportDelivered,
    Field(discriminator="kind"),
]

_BODY: TypeAdapter[Body] = TypeAdapter(Body)


@dataclass(frozen=True, slots=True)
class Event:
    """One fact with its place. `run_seq` is dense per run; `ts_us` is ledger time and never runs backwards."""

    event_id: str
    ts_us: int
    run_id: str
    run_seq: int
    action_id: str
    epoch: int
    body: Body


def encode(body: Body) -> str:
    """The payload text of a body."""
    return body.model_dump_json()


def decode(payload: str, where: str) -> Body:
    """The body of a payload. Raises `CorruptLedger` naming `where` if it does not read back."""
    try:
        return _BODY.validate_json(payload)
    except ValidationError as error:
        first = error.errors()[0]
        raise CorruptLedger(
            f"event {where} cannot be read: {first['msg']}",
            hint="the run is quarantined; run `amends ledger verify`",
            where=where,
        ) from error


@cache
def words() -> frozenset[str]:
    """Every fixed word that bodies are written in: names of fields, kinds, statuses and other choices."""
    return frozenset(_words(Body, set()))


def _words(kind: object, seen: set[type]) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from map(str, get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(choice.value) for choice in kind)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in seen:
            seen.add(kind)
            for name, field in kind.model_fields.items():
                yield name
                yield from _words(field.annotation, seen)
    else:
        for part in get_args(kind):
            yield from _words(part, seen)
