"""Asking the policy: one place that builds the question from ledger facts, for every phase (rules 21 and 30)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amends.core.canonical import Json
from amends.core.contract import Alternative, Contract, Phase
from amends.core.evidence import Decision
from amends.core.fold import certificate_key
from amends.core.identity import approval_digest
from amends.core.outcomes import valid_reference
from amends.core.redaction import MASK
from amends.core.rows import ActionRow, ApprovalRow, CertificateRow, RunRow, RunState
from amends.core.status import Outcome
from amends.ports.authorizer import ApprovalFacts, AuthorizationRequest, Authorizer, Principal
from amends.ports.journal import RowKey
from amends.runtime.flights import Flights, landed
from amends.runtime.kit import Kit
from amends.runtime.listing import readable
from amends.runtime.places import NoPlace, Seat

ENGINE_MAJOR = 1
LONGEST_DECISION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about: an action as planned (it may not be recorded yet)."""

    contract: Contract
    capability: str
    resource: str
    environment: str
    input: Mapping[str, Json]
    attempt: int = 0
    reference: str = ""
    subject_digest: str = ""


def subject_of(action: ActionRow) -> Subject:
    """The subject of a recorded action."""
    return Subject(
        contract=action.contract,
        capability=action.capability,
        resource=action.resource,
        environment=action.environment,
        input=action.input,
        attempt=action.attempt,
        reference=action.reference,
        subject_digest=action.subject_digest,
    )


@dataclass(frozen=True)
class Policy:
    """Asks the authorizer. The principal of everything but a forward action is the recovering Service (rule 21).

    `flights`: of its own, so that no call on an adapter takes the place of a question.
    """

    kit: Kit
    flights: Flights

    def forward(self, run: RunRow, subject: Subject, approval: ApprovalRow | None = None) -> Decision:
        """May the agent do this (for an irreversible action: may it be queued)?"""
        return self._ask("forward", subject.capability, run, subject, self.agent(run), approval=approval)

    def probe(self, run: RunRow, subject: Subject) -> Decision:
        """May the Service read this?"""
        return self._ask("probe", f"{subject.capability}.probe", run, subject, self.service(run))

    def release(self, state: RunState, action: ActionRow, approval: ApprovalRow | None) -> Decision:
        """May this irreversible action be sent now?"""
        name = f"{action.capability}.release"
        return self._ask("release", name, state.run, subject_of(action), self.service(state.run), approval=approval)

    def undo(
        self, state: RunState, forward: ActionRow, rung: Alternative, approval: ApprovalRow | None, *, residue: bool
    ) -> Decision:
        """May this compensation be sent now?"""
        name = forward.contract.undo_action_name(rung)
        return self._ask(
            "undo",
            name,
            state.run,
            subject_of(forward),
            self.service(state.run),
            forward=forward,
            rung=rung,
            approval=approval,
            residue=residue,
        )

    def correct(self, run: RunRow, subject: Subject, approval: ApprovalRow | None) -> Decision:
        """May this correction be posted?"""
        name = f"{subject.capability}.correct"
        return self._ask("correct", name, run, subject, self.service(run), approval=approval)

    def agent(self, run: RunRow) -> Principal:
        """The run's agent."""
        return Principal("Agent", run.agent, run.tenant, tuple(self.kit.agent_roles.get(run.agent, ())))

    def service(self, run: RunRow) -> Principal:
        """The recovering Service of the run's tenant."""
        return Principal("Service", self.kit.service, run.tenant)

    def binding(self, state: RunState, action: ActionRow, phase: Phase) -> str:
        """The digest an approval of this action is bound to; for an undo, to what its forward action did (rule 30)."""
        run = state.run
        forward = state.actions.get(action.of, action) if phase == "undo" else action
        principal = self.agent(run) if phase == "forward" else self.service(run)
        return approval_digest(
            principal=f"{principal.type}::{principal.id}",
            action=f"{action.capability}:{phase}:{action.rung}",
            resource=action.resource,
            args_digest=action.args_digest,
            policy_input=action.input,
            content_digest=action.content_digest,
            forward_outcome=forward.outcome.value,
            contract_digest=action.contract.digest,
        )

    def _ask(
        self,
        phase: Phase,
        name: str,
        run: RunRow,
        subject: Subject,
        principal: Principal,
        *,
        forward: ActionRow | None = None,
        rung: Alternative | None = None,
        approval: ApprovalRow | None = None,
        residue: bool = False,
    ) -> Decision:
        now = max(self.kit.clock.now_us(), run.ledger_us)
        since = forward.sent_us if forward and forward.sent_us is not None else now
        request = AuthorizationRequest(
            decision_id=self.kit.ids.new(),
            phase=phase,
            action=name,
            contract=subject.contract,
            principal=principal,
            resource_type=subject.contract.effect.resource_type,
            resource_id=subject.resource.split(":", 1)[1],
            tenant=run.tenant,
            environment=subject.environment,
            now_us=now,
            age_us=max(0, now - since),
            run=_run_facts(run, subject, forward),
            evidence=_evidence_facts(forward, rung),
            contract_facts=self._contract_facts(subject, forward, rung, now),
            forward=None if forward is None else _forward_facts(run, forward, residue=residue),
            input={key: value for key, value in subject.input.items() if key in subject.contract.input},
            approval=_approval_facts(approval, now),
        )
        seat = Seat("authorizer", f"{run.run_id} {name}", LONGEST_DECISION_SECONDS)
        return answered(self.flights, self.kit.authorizer, request, seat).model_copy(update={"asked_us": now})

    def _contract_facts(
        self, subject: Subject, forward: ActionRow | None, rung: Alternative | None, now_us: int
    ) -> dict[str, Json]:
        contract = subject.contract
        drilled = self.drilled(contract, subject.subject_digest, now_us)
        facts: dict[str, Json] = {
            "proven": not contract.needs_drill or self.kit.on_sandbox or drilled,
            "drilled": drilled,
            "reversibility": contract.reversibility,
            "audience": contract.readers.audience,
            "release_mode": contract.release.mode if contract.release else "",
            "reference_owned": valid_reference(contract, subject.reference) or not subject.reference,
        }
        if forward is not None and rung is not None:
            facts["safe"] = forward.outcome in rung.safe_when
            limit = rung.expires_after_seconds
            facts["in_time"] = limit is None or now_us <= (forward.sent_us or now_us) + round(limit * 1_000_000)
        return facts

    def drilled(self, contract: Contract, subject_digest: str, now_us: int) -> bool:
        """True if a drill certificate for exactly this contract and subject is in force."""
        offer = self.kit.catalog.find(contract.capability)
        subject = subject_digest if offer is None else offer.drill_subject(subject_digest)
        key = certificate_key(contract.capability, contract.digest, subject, ENGINE_MAJOR)
        row = self.kit.journal.row(RowKey("certificate", key))
        return any(known.expires_us > now_us for known in readable([row] if row else [], CertificateRow))


def answered(flights: Flights, authorizer: Authorizer, request: AuthorizationRequest, seat: Seat) -> Decision:
    """The authorizer's answer; an authorizer that breaks its port by raising, by answering something else than this
    question, or by not answering within `seat.seconds`, has denied it. Fail closed: every denial is a decision,
    recorded like any other, and nobody hears an answer that comes later.
    """
    try:
        decision: object = landed(flights.launch(lambda: authorizer.decide(request), "decide", seat), seat)
    except NoPlace as full:
        problem = f"the authorizer was {full}"
    except TimeoutError:
        problem = f"the authorizer did not answer in time ({seat.seconds:g} s)"
    except Exception as error:  # noqa: BLE001 - whatever it is called, it is no permit
        problem = f"the authorizer failed ({type(error).__name__})"
    else:
        if isinstance(decision, Decision) and _is_about(request, decision):
            return decision
        problem = f"the authorizer answered {_instead(decision)}"
    return _broken(_in_force(flights, authorizer, seat), request, problem)


def _is_about(request: AuthorizationRequest, decision: Decision) -> bool:
    return (decision.decision_id, decision.action) == (request.decision_id, request.action)


def _instead(answer: object) -> str:
    return "another question" if isinstance(answer, Decision) else f"`{type(answer).__name__}`, no decision"


def _broken(in_force: tuple[str, str], request: AuthorizationRequest, reason: str) -> Decision:
    """A denial in place of an answer. The error's own words may hold the whole question: they are not kept."""
    version, digest = in_force
    return Decision(
        decision_id=request.decision_id,
        verdict="deny",
        action=request.action,
        policy_version=version,
        effective_digest=digest,
        code="engine_error",
        reasons=(reason,),
        principal=f'{request.principal.type}::"{request.principal.id}"',
        resource=f'{request.resource_type}::"{request.resource_id}"',
    )


def _in_force(flights: Flights, authorizer: Authorizer, seat: Seat) -> tuple[str, str]:
    named = Seat(seat.adapter, f"{seat.about} bundle", seat.seconds)
    try:
        bundle = landed(flights.launch(authorizer.bundle, "bundle", named), named)
    except Exception:  # noqa: BLE001 - what cannot name its policies has denied all the same
        return "unknown", "unknown"
    return bundle.version, bundle.effective_digest


def _run_facts(run: RunRow, subject: Subject, forward: ActionRow | None) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "workflow": run.workflow,
        "run_id": run.run_id,
        "agent": run.agent,
        "owner": run.owner,
        "attempt": subject.attempt,
        "success_verified": run.check_answer == "passed",
        "requires_human": subject.contract.release is not None and subject.contract.release.mode != "on_success",
    }
    if run.initiator:
        facts["initiator"] = run.initiator
    if forward is not None and forward.forward_policy_version:
        facts["forward_policy_version"] = forward.forward_policy_version
    return facts


def _forward_facts(run: RunRow, forward: ActionRow, *, residue: bool) -> dict[str, Json]:
    return {
        "status": forward.outcome.value,
        "principal": run.agent,
        "session": run.run_id,
        "decided_at_us": forward.decided_us or forward.created_us,
        "caused_by_action": forward.capability,
        "residue": residue,
    }


def _evidence_facts(forward: ActionRow | None, rung: Alternative | None) -> dict[str, Json]:
    """What the inverse needs and the ledger does not have; a masked value is a missing one (rule 10)."""
    if forward is None or rung is None:
        return {"complete": True, "missing": []}
    sources: dict[str, Mapping[str, Json]] = {
        "forward_input": forward.args,
        "forward_output": {**forward.effect, **forward.output, "reference": forward.reference or None},
        "reconciliation": {
            **forward.effect,
            **(forward.observation.effect if forward.observation else {}),
            "reference": forward.reference or (forward.observation.reference if forward.observation else "") or None,
        },
    }
    source = sources[rung.input_from]
    missing: list[Json] = [name for name in rung.required_fields if _missing(source.get(name))]
    looked = forward.outcome is Outcome.SUCCEEDED or forward.observation is not None
    return {"complete": looked and not missing, "missing": missing}


def _missing(value: Json) -> bool:
    """True for nothing, and for what a mask is a part of."""
    return value in (None, "") or (isinstance(value, str) and MASK in value)


def _approval_facts(approval: ApprovalRow | None, now_us: int) -> ApprovalFacts | None:
    """A yes that is in force; one that has expired is none."""
    if approval is None or approval.status not in {"approved", "consumed"} or now_us >= approval.expires_us:
        return None
    return ApprovalFacts(
        approvers=approval.approvers,
        roles=approval.approver_roles,
        tier=approval.granted_tier,
        at_us=approval.granted_us or approval.asked_us,
        expires_us=approval.expires_us,
    )
