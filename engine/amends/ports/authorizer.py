"""The authorizer: may this principal do this action on this resource, in this context, now?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from amends.core.canonical import Json
from amends.core.contract import Contract, Phase
from amends.core.evidence import Decision


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `type` is `Agent`, `Service` or `Human`."""

    type: str
    id: str
    tenant: str
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalFacts:
    """A verified approval, as evidence for policies (never a grant)."""

    approvers: tuple[str, ...]
    roles: tuple[str, ...]
    tier: int
    at_us: int
    expires_us: int


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """One question. All groups but `input` are built by the engine from ledger facts; times in microseconds.

    `run`: workflow, run_id, agent, owner, initiator (may be absent), attempt, forward_policy_version (may be absent),
    success_verified, requires_human. `forward` (absent for a forward action, needed for an undo): status (the forward
    *outcome*), principal (the agent), decided_at_us, caused_by_action, session, residue (true: parts of a failed call
    were seen). `evidence`: complete, missing. `contract_facts`: proven (no drill needed, or a valid certificate),
    drilled (a valid certificate, needed or not), reversibility, audience, release_mode, safe (the forward outcome is in
    the rung's `safe_when`), in_time (the rung has not expired; absent: every rung that this action authorizes is
    asked), reference_owned. `input` holds exactly the fields the contract declares. `resource_type` is the contract's
    `effect.resource_type` in every phase.
    """

    decision_id: str
    phase: Phase
    action: str
    contract: Contract
    principal: Principal
    resource_type: str
    resource_id: str
    tenant: str
    environment: str
    now_us: int
    age_us: int  # since the forward effect was sent; 0 for a forward action
    run: Mapping[str, Json]
    evidence: Mapping[str, Json]
    contract_facts: Mapping[str, Json]
    forward: Mapping[str, Json] | None = None
    input: Mapping[str, Json] = field(default_factory=dict[str, Json])
    approval: ApprovalFacts | None = None


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """What is in force: the site bundle's version, the effective digest, the sources by path, and the digest of what
    they mean.
    """

    version: str
    effective_digest: str
    sources: Mapping[str, str]
    semantic_digest: str = ""


class Authorizer(Protocol):
    """Answers `allow`, `deny` or `needs_approval(tier)`. Never raises for a request: whatever goes wrong is a deny
    whose `code` says what (rule: any evaluation error denies). One call uses one snapshot of the policies. A call that
    has not returned in time has denied, whatever it answers later; so calls may overlap.
    """

    def decide(self, request: AuthorizationRequest) -> Decision:
        """One recorded authorization."""
        ...

    def bundle(self) -> PolicyBundle:
        """The active bundle; at once, from memory."""
        ...
