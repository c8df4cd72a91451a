"""Rows: the current state that `fold` computes from events. A journal stores them beside the events, unread.

Every row can be rebuilt from the events alone; tests compare the two after every run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import Field

from amends.core.canonical import Json
from amends.core.contract import Contract, Frozen, Phase, ReleaseMode
from amends.core.evidence import Decision, Evidence, FailureNote, Observation
from amends.core.status import TERMINAL_RUNS, ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus

JsonFields: TypeAlias = dict[str, Json]
RowKind: TypeAlias = Literal[
    "run",
    "action",
    "approval",
    "escalation",
    "claim",
    "pause",
    "bundle",
    "policy",
    "quarantine",
    "certificate",
    "sealed",
]


class RunRow(Frozen):
    """One run. `head` is its last `run_seq`: the version every commit is computed from."""

    run_id: str
    tenant: str
    workflow: str
    run_key: str
    agent: str
    initiator: str
    owner: str
    intent_ref: str = ""
    check: str = ""
    resume_grace_seconds: float = 0.0
    status: RunStatus = RunStatus.OPEN
    forward: bool = False  # its last direction: committing rather than recovering
    reason: str = ""
    epoch: int = 1
    holder_id: str = ""  # empty: released
    holder_host: str = ""
    holder_pid: int = 0
    owner_file: str = ""
    lease_until_us: int = 0
    dead_since_us: int | None = None  # of the former owner, at the last take-over
    checkpoints: dict[str, int] = Field(default_factory=dict[str, int])
    recover_to: str = ""
    taken_back: tuple[tuple[int, int], ...] = ()  # (after, until) run_seq of what recoveries to a checkpoint undid
    check_answer: str = ""
    checked_us: int | None = None
    checked_seq: int | None = None  # run_seq of the check's last answer
    due_us: int | None = None
    caused_by: str = ""
    opened_us: int = 0
    moved_us: int = 0
    updated_us: int = 0
    ledger_us: int = 0  # ledger time: the latest `ts_us` of the run
    head: int = 0

    @property
    def terminal(self) -> bool:
        """True if nothing will change this run any more (rule 25)."""
        return self.status in TERMINAL_RUNS


class ActionRow(Frozen):
    """One intended call and everything known about it."""

    action_id: str
    run_id: str
    seq: int  # run_seq of its registration: before any send
    kind: ActionKind
    of: str = ""
    rung: str = ""
    capability: str
    adapter: str
    instance: str
    environment: str
    tenant: str
    resource: str
    slot: str
    label: str = ""
    generation: int = 1
    args: JsonFields
    args_digest: str
    input: JsonFields = Field(default_factory=dict[str, Json])
    subject_digest: str = ""
    contract: Contract
    depends_on: tuple[str, ...] | None = None
    inputs_from: tuple[str, ...] = ()
    after: tuple[str, ...] = ()  # actions whose outcome was recorded before this intent (rule 20)
    claim: str = ""
    place: str = ""
    revision: int = 0
    covers: tuple[str, ...] = ()
    required: bool = True

    status: ActionStatus = ActionStatus.PLANNED
    outcome: Outcome = Outcome.NONE
    attempt: int = 0
    sent_seq: int | None = None  # run_seq of the first intent
    sent_us: int | None = None  # of the first intent: when people may first have seen it
    sent_epoch: int = 0  # of the last intent: whose call it is
    attempt_us: int | None = None  # of the last intent
    idempotency_key: str = ""
    deadline_us: int | None = None
    before_image: JsonFields = Field(default_factory=dict[str, Json])
    allocated: JsonFields = Field(default_factory=dict[str, Json])
    content_digest: str = ""
    effect: JsonFields = Field(default_factory=dict[str, Json])
    output: JsonFields = Field(default_factory=dict[str, Json])
    after_image: JsonFields = Field(default_factory=dict[str, Json])
    reference: str = ""
    parts: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    late: tuple[Evidence, ...] = ()  # not folded yet
    late_outcome: Outcome = Outcome.NONE
    late_effect: JsonFields = Field(default_factory=dict[str, Json])
    late_reference: str = ""
    error: FailureNote | None = None
    outcome_seq: int | None = None
    outcome_us: int | None = None
    decided: Decision | None = None
    forward_decision_id: str = ""
    forward_policy_version: str = ""
    decided_us: int | None = None

    probes: int = 0  # of the present question
    probed_us: int | None = None
    unknown_since_us: int | None = None
    observation: Observation | None = None
    undo: str = ""  # the living undo action
    tried_rungs: tuple[str, ...] = ()
    compensated_us: int | None = None
    compensated_how: str = ""
    late_check_due_us: int | None = None
    parked_cause: ParkedCause | None = None
    parked_detail: str = ""
    accepted_by: str = ""
    withdrawn_reason: str = ""
    release_mode: ReleaseMode | None = None
    approval_id: str = ""
    last_decided: str = ""  # decision and reason of the last `recovery_decided`, so that a plan is recorded once
    created_us: int = 0
    updated_us: int = 0

    @property
    def forward(self) -> bool:
        """True for the agent's calls and the twins of them: what recovery has to settle."""
        return self.kind in {ActionKind.DO, ActionKind.DUPLICATE}

    @property
    def ever_sent(self) -> bool:
        """True if an intent was written, or the effect was found without one (a twin)."""
        return self.sent_seq is not None or self.kind is ActionKind.DUPLICATE

    @property
    def gated_residue(self) -> bool:
        """True for an irreversible effect that was approved and exists: never undone, listed and corrected (rule 29).

        A twin the provider made was approved by nobody: a person decides about it (rule 7).
        """
        return (
            self.kind is not ActionKind.DUPLICATE and self.contract.irreversible and self.outcome is Outcome.SUCCEEDED
        )

    @property
    def proven_failed(self) -> bool:
        """True if `failed` rests on proof (not sent, refused) and not on absence (rule 4)."""
        return self.outcome is Outcome.FAILED and bool(self.evidence) and self.evidence[-1].strength == "proof"


class ApprovalRow(Frozen):
    """A question to people and their answers."""

    approval_id: str
    run_id: str
    action_id: str
    phase: Phase
    status: Literal["pending", "approved", "refused", "expired", "voided", "withdrawn", "consumed"] = "pending"
    tier: int
    roles: tuple[str, ...] = ()
    roles_together: bool = False
    people: int = 1  # how many different people must say yes
    reasons: tuple[str, ...] = ()
    question: str = ""
    asked_of: tuple[str, ...] = ()
    shown: JsonFields
    digest: str
    asked_us: int
    expires_us: int
    approvers: tuple[str, ...] = ()
    approver_roles: tuple[str, ...] = ()
    granted_tier: int = 0
    granted_us: int | None = None
    by: str = ""
    channel: str = ""
    comment: str = ""
    roll_back: bool = False

    @property
    def who_may(self) -> str:
        """Who may say yes, in words: `tier 2, finance or operations, 2 people`."""
        words = [f"tier {self.tier}"]
        if self.roles:
            words.append((" and " if self.roles_together else " or ").join(self.roles))
        if self.people > 1:
            words.append(f"{self.people} people")
        return ", ".join(words)

    def covered_by(self, roles: Collection[str]) -> bool:
        """True if people who hold `roles` between them hold what it takes."""
        held = set(self.roles) & set(roles)
        return held == set(self.roles) if self.roles_together or not self.roles else bool(held)

    def helped_by(self, roles: Collection[str]) -> bool:
        """True if the yes of a person with `roles` completes the approval, brings a role that is still missing, or
        leaves another person to bring it.
        """
        together = {*self.approver_roles, *roles}
        missing = set(self.roles) - set(self.approver_roles)
        return self.covered_by(together) or bool(missing & set(roles)) or len(self.approvers) + 1 < self.people

    def complete(self, approvers: Collection[str], roles: Collection[str]) -> bool:
        """True if the yes of these people, who hold `roles` between them, is the approval that was asked for."""
        return len(approvers) >= self.people and self.covered_by(roles)


class EscalationRow(Frozen):
    """A bounded work item."""

    escalation_id: str
    run_id: str
    action_id: str
    cause: str
    status: Literal["open", "acknowledged", "resolved"] = "open"
    queue: str
    owner: str
    deadline_us: int
    known: str
    in_doubt: str
    proposed: str
    choices: tuple[str, ...]
    evidence: JsonFields = Field(default_factory=dict[str, Json])
    opened_us: int
    notified_us: int | None = None
    deliveries: int = 0
    delivered: bool = False
    choice: str = ""
    by: str = ""
    comment: str = ""
    resolved_us: int | None = None


class ClaimRow(Frozen):
    """Identity beyond the run: who holds the one effect of this kind (rule 6)."""

    claim: str
    run_id: str
    action_id: str
    held: bool


class PauseRow(Frozen):
    """A pause in force, or one that was lifted."""

    scope: str
    active: bool
    reason: str = ""
    by: str = ""


class BundleRow(Frozen):
    """A recorded policy bundle (sources stay in the event)."""

    effective_digest: str
    policy_version: str


class PolicyRow(Frozen):
    """What engines were last told to decide by (`active`), or the last bundle that was refused for a role."""

    key: Literal["active", "rejected:active", "rejected:shadow"]
    policy_version: str
    digest: str
    at_us: int
    reasons: tuple[str, ...] = ()
    kept: str = ""


class QuarantineRow(Frozen):
    """A run that nothing may drive until a person lifts it, or a quarantine that was lifted."""

    run_id: str
    reason: str
    status: Literal["open", "told", "lifted"] = "open"  # `told`: a notice has left
    since_us: int = 0
    by: str = ""
    comment: str = ""

    @property
    def active(self) -> bool:
        """True while nothing may drive the run."""
        return self.status != "lifted"


class CertificateRow(Frozen):
    """A drill certificate in force."""

    key: str
    capability: str
    contract_digest: str
    subject_digest: str
    certified_us: int
    expires_us: int


class SealedRow(Frozen):
    """What is left in the journal of a run whose events went into an archive file. No event makes it: sealing does."""

    run_id: str
    workflow: str
    run_key: str
    status: RunStatus
    file: str


Row: TypeAlias = (
    RunRow
    | ActionRow
    | ApprovalRow
    | EscalationRow
    | ClaimRow
    | PauseRow
    | BundleRow
    | PolicyRow
    | QuarantineRow
    | CertificateRow
)


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything about one run, folded. Actions keep the order of their registration."""

    run: RunRow
    actions: dict[str, ActionRow] = field(default_factory=dict[str, ActionRow])
    approvals: dict[str, ApprovalRow] = field(default_factory=dict[str, ApprovalRow])
    escalations: dict[str, EscalationRow] = field(default_factory=dict[str, EscalationRow])
    claims: dict[str, ClaimRow] = field(default_factory=dict[str, ClaimRow])
    sealed: str = ""  # the archive file it was read from; empty: the journal

    def forward_actions(self) -> tuple[ActionRow, ...]:
        """The actions recovery must settle, oldest first."""
        return tuple(action for action in self.actions.values() if action.forward)

    def in_slot(self, slot: str) -> ActionRow | None:
        """The newest forward action of a slot, whatever its status."""
        found = None
        for action in self.actions.values():
            if action.kind is ActionKind.DO and action.slot == slot:
                found = action
        return found

    def undo_of(self, action: ActionRow) -> ActionRow | None:
        """The living undo action of a forward action."""
        return self.actions.get(action.undo) if action.undo else None

    def undos_of(self, action_id: str) -> tuple[ActionRow, ...]:
        """Every undo action there ever was for a forward action, oldest first."""
        return tuple(a for a in self.actions.values() if a.kind is ActionKind.UNDO and a.of == action_id)

    @property
    def pivot_passed(self) -> bool:
        """True once an outbox release is running, unknown or succeeded: from then on only forward (DESIGN: pivot)."""
        return any(
            a.release_mode in {"on_success", "on_approval"}
            and a.sent_seq is not None
            and (a.status is ActionStatus.RUNNING or a.outcome in {Outcome.UNKNOWN, Outcome.SUCCEEDED})
            for a in self.forward_actions()
        )
