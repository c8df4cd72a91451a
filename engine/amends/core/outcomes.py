"""Outcome rules: what an answer, an exception or a probe proves (rules 3, 4 and 7).

Every function returns an `OutcomeRecorded` body, the only way an outcome enters the ledger, or `None` where the new
facts change nothing. `succeeded` and `failed` need authoritative evidence; everything else is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from amends.core.canonical import Json
from amends.core.contract import Contract
from amends.core.events import LateEvidence, OutcomeRecorded
from amends.core.evidence import Evidence, FailureNote, Observation
from amends.core.rows import ActionRow
from amends.core.status import ActionStatus, Outcome

_S = ActionStatus
_HEARING = frozenset({_S.UNKNOWN, _S.FAILED, _S.NEEDS_HUMAN, _S.AWAITING_APPROVAL, _S.DENIED, _S.WITHDRAWN})


def answered(
    contract: Contract,
    *,
    at_us: int,
    reference: str,
    effect: Mapping[str, Json],
    output: Mapping[str, Json],
    after: Mapping[str, Json],
    parts: tuple[str, ...],
) -> OutcomeRecorded:
    """The call returned. The answer is proof only where the contract says so, its reference is valid and every part
    is there; otherwise a probe decides.
    """
    doubt = _doubt(contract, reference, parts)
    return OutcomeRecorded(
        outcome=Outcome.UNKNOWN if doubt else Outcome.SUCCEEDED,
        evidence=Evidence(
            source="response",
            strength="weak" if doubt else "authoritative",
            at_us=at_us,
            code=doubt or "answered",
        ),
        effect=dict(effect),
        output=dict(output),
        after_image=dict(after),
        reference=reference if valid_reference(contract, reference) else "",
        parts=parts,
        error=FailureNote(code=doubt) if doubt else None,
    )


def _doubt(contract: Contract, reference: str, parts: tuple[str, ...]) -> str:
    if not valid_reference(contract, reference):
        return "reference_invalid"
    if contract.confirm == "probe":
        return "answer_is_no_proof"
    if set(contract.parts) - set(parts):
        return "parts_missing"
    return ""


def valid_reference(contract: Contract, reference: str) -> bool:
    """True if the provider's reference has the declared shape, or none is declared."""
    if contract.reference is None:
        return True
    return re.fullmatch(contract.reference.pattern, reference) is not None


def accepted(*, at_us: int, operation: str, effect: Mapping[str, Json], reference: str) -> OutcomeRecorded:
    """The provider works on it: unknown until a probe of the operation is final."""
    return OutcomeRecorded(
        outcome=Outcome.UNKNOWN,
        evidence=Evidence(source="response", strength="weak", at_us=at_us, code="accepted"),
        effect={**effect, "operation": operation},
        reference=reference,
        error=FailureNote(code="accepted"),
    )


def not_sent(*, at_us: int, code: str, detail: str) -> OutcomeRecorded:
    """Proof that nothing left this machine: `failed`, and the same key may be sent again."""
    return OutcomeRecorded(
        outcome=Outcome.FAILED,
        evidence=Evidence(source="response", strength="proof", at_us=at_us, code="not_sent", detail=detail),
        error=FailureNote(code=code, message=detail, resendable=True),
    )


def refused(*, at_us: int, code: str, detail: str, again: bool, retry_after_seconds: float | None) -> OutcomeRecorded:
    """The provider's authoritative no. A stored refusal is not re-sent: it opens the next generation (rule 5)."""
    return OutcomeRecorded(
        outcome=Outcome.FAILED,
        evidence=Evidence(source="response", strength="proof", at_us=at_us, code="refused", detail=detail),
        error=FailureNote(code=code, message=detail, retry_after_seconds=retry_after_seconds, resendable=again),
    )


def failed_before(*, at_us: int, code: str, detail: str) -> OutcomeRecorded:
    """`resolve` or `prepare` failed (`code` says which): nothing was sent (rule 2)."""
    return OutcomeRecorded(
        outcome=Outcome.FAILED,
        evidence=Evidence(source="response", strength="proof", at_us=at_us, code=code, detail=detail),
        error=FailureNote(code=code, message=detail),
    )


def lost(*, at_us: int, code: str, detail: str) -> OutcomeRecorded:
    """No usable answer: unknown, whatever the exception was called (rule 3)."""
    return OutcomeRecorded(
        outcome=Outcome.UNKNOWN,
        evidence=Evidence(source="response", strength="weak", at_us=at_us, code=code, detail=detail),
        error=FailureNote(code=code, message=detail),
    )


def owner_lost(*, at_us: int, detail: str) -> OutcomeRecorded:
    """The driver died or fell silent with this call in flight."""
    return OutcomeRecorded(
        outcome=Outcome.UNKNOWN,
        evidence=Evidence(source="takeover", strength="weak", at_us=at_us, code="owner_lost", detail=detail),
        error=FailureNote(code="owner_lost", message=detail),
    )


def adopted(action: ActionRow, *, at_us: int) -> OutcomeRecorded:
    """The effect exists and belongs to a committed run: used here, never compensated here (rule 6)."""
    return OutcomeRecorded(
        outcome=Outcome.SUCCEEDED,
        evidence=Evidence(
            source="adopted", strength="authoritative", at_us=at_us, code="adopted", detail=action.run_id
        ),
        effect=action.effect,
        output=action.output,
        after_image=action.after_image,
        reference=action.reference,
    )


def absence_final_at_us(action: ActionRow, dead_since_us: int | None) -> int | None:
    """From when `absent` proves that nothing landed: min(call deadline, owner's proven death) + the contract's
    settle time (rule 4). `None`: never.
    """
    probe = action.contract.probe
    if probe is None or not probe.absence_can_be_final or action.deadline_us is None:
        return None
    start = action.deadline_us
    if dead_since_us is not None and (action.attempt_us or 0) <= dead_since_us:
        start = min(start, dead_since_us)
    return start + round((probe.absent_final_after_seconds or 0.0) * 1_000_000)


def observed(
    action: ActionRow, observation: Observation, *, looked_us: int, at_us: int, dead_since_us: int | None
) -> OutcomeRecorded | None:
    """What a look that began at `looked_us` proves about an action that is unknown (or was `failed` by absence). A
    process may stand still between the look and its record: what was absent then may have landed since.
    """
    match observation.seen:
        case "applied" | "many":
            return _seen_applied(action, observation, at_us)
        case "absent":
            final_at = absence_final_at_us(action, dead_since_us)
            if final_at is None or looked_us < final_at or action.outcome is Outcome.FAILED:
                return None
            return OutcomeRecorded(
                outcome=Outcome.FAILED,
                evidence=Evidence(
                    source="probe",
                    strength="authoritative",
                    at_us=at_us,
                    code="probe_absent",
                    detail=f"absent past {final_at}",
                ),
                error=FailureNote(code="absent", message=observation.detail, resendable=True),
            )
        case _:
            return None


def _seen_applied(action: ActionRow, observation: Observation, at_us: int) -> OutcomeRecorded | None:
    missing = set(action.contract.parts) - set(observation.parts)
    if missing and not action.contract.partial_inverse:
        return None
    reference = observation.reference or action.reference
    if not valid_reference(action.contract, reference):
        return None
    if action.outcome is Outcome.FAILED:
        return None if action.proven_failed else _contradiction(at_us)
    return OutcomeRecorded(
        outcome=Outcome.SUCCEEDED,
        evidence=Evidence(
            source="probe",
            strength="authoritative",
            at_us=at_us,
            code="probe_applied",
            detail=f"only parts {sorted(observation.parts)}" if missing else "",
        ),
        effect=observation.effect,
        output=observation.effect if not action.output else {},
        after_image=action.after_image or observation.state,
        reference=reference,
        parts=observation.parts,
    )


def _contradiction(at_us: int) -> OutcomeRecorded:
    return OutcomeRecorded(
        outcome=Outcome.UNKNOWN,
        evidence=Evidence(source="probe", strength="authoritative", at_us=at_us, code="contradicted"),
        error=FailureNote(code="contradicted", message="an effect was seen that an earlier look had not found"),
    )


def folded_late(action: ActionRow, *, at_us: int) -> OutcomeRecorded | None:
    """What waiting late evidence proves, when the owner folds it (rule 13). Proven failures absorb it; a call in
    flight or being taken back does not hear it: its own answer, or the second look, comes first.
    """
    if action.proven_failed or action.status not in _HEARING:
        return None
    strong = [evidence for evidence in action.late if evidence.strength != "weak"]
    if not strong or action.late_outcome not in {Outcome.SUCCEEDED, Outcome.FAILED}:
        return None
    if action.outcome is Outcome.FAILED:
        return _contradiction(at_us) if action.late_outcome is Outcome.SUCCEEDED else None
    if action.outcome is not Outcome.UNKNOWN:
        return None
    reference = action.late_reference or action.reference
    if action.late_outcome is Outcome.SUCCEEDED and not valid_reference(action.contract, reference):
        return None
    return OutcomeRecorded(
        outcome=action.late_outcome,
        evidence=strong[-1].model_copy(update={"source": "late"}),
        effect=action.late_effect,
        output=action.late_effect,
        reference=reference if action.late_outcome is Outcome.SUCCEEDED else "",
    )


def said_by_person(*, happened: bool, at_us: int, by: str, evidence: str, reference: str = "") -> OutcomeRecorded:
    """A person's word, with their evidence, settles an unknown (rule 31)."""
    return OutcomeRecorded(
        outcome=Outcome.SUCCEEDED if happened else Outcome.FAILED,
        evidence=Evidence(
            source="person", strength="authoritative", at_us=at_us, code="person", detail=evidence, by=by
        ),
        reference=reference,
    )


def late(outcome: OutcomeRecorded) -> LateEvidence:
    """An outcome that arrives under a stale epoch, as evidence that moves nothing."""
    return LateEvidence(
        outcome=outcome.outcome, evidence=outcome.evidence, effect=outcome.effect, reference=outcome.reference
    )
