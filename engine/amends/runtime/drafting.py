"""Bodies of forward actions, built in one place: what is planned, what is intended, what policy is asked about."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, fields

from amends.core import events as e
from amends.core.canonical import Json, canonical_bytes, normalise_map
from amends.core.contract import Contract
from amends.core.errors import InvalidInput
from amends.core.evidence import Decision
from amends.core.identity import claim_of, idempotency_key
from amends.core.order import inputs_from
from amends.core.redaction import redact
from amends.core.rows import ActionRow, RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionKind
from amends.runtime.asking import Subject
from amends.runtime.kit import Kit
from amends.runtime.resolving import Request, Resolved
from amends.spi.capability import Prepared, Question


@dataclass(frozen=True, slots=True)
class Reading(Prepared):
    """What `prepare` read before a call, and when it was asked."""

    asked_us: int | None = None  # ledger time; None: nothing was read now


def reading(prepared: Prepared, asked_us: int) -> Reading:
    """What an adapter answered, with its time."""
    return Reading(**{field.name: getattr(prepared, field.name) for field in fields(Prepared)}, asked_us=asked_us)


def planned(
    state: RunState, resolved: Resolved, request: Request, prepared: Prepared, generation: int
) -> e.ActionPlanned:
    """The registration of a forward action: contract and compensation as they are now (rule 1)."""
    contract, context = resolved.contract, resolved.offer.context
    return e.ActionPlanned(
        action_kind=ActionKind.DO,
        capability=contract.capability,
        adapter=context.name,
        instance=context.instance,
        environment=context.environment,
        slot=resolved.slot,
        label=resolved.label,
        generation=generation,
        args=resolved.args,
        args_digest=resolved.args_digest,
        input={**resolved.input, **normalise_map(prepared.input)},
        resource=resolved.resource,
        subject_digest=prepared.subject_digest,
        contract=contract,
        depends_on=request.depends_on,
        inputs_from=inputs_from(state, resolved.args),
        claim=claim_of(contract, state.run.tenant, state.run.workflow, resolved.slot),
        required=request.required,
    )


def deadline_us(decision: Decision, contract: Contract, read_us: int | None) -> int:
    """Until when a call may be sent and its answer counts: its time limit from when policy was asked, and twice that
    from when the system was read. Who stands still before the intent may wake up under other policies, and where
    somebody else has changed what the call is about.
    """
    limit = microseconds(contract.limits.timeout_seconds)
    allowed = decision.asked_us + limit
    return allowed if read_us is None else min(allowed, read_us + 2 * limit)


def first_intent(
    run: RunRow, resolved: Resolved, prepared: Reading, generation: int, decision: Decision
) -> e.IntentRecorded:
    """The intent of a call that was never sent."""
    return e.IntentRecorded(
        attempt=1,
        idempotency_key=idempotency_key(run.run_id, ActionKind.DO, resolved.slot, generation),
        deadline_us=deadline_us(decision, resolved.contract, prepared.asked_us),
        before_image=normalise_map(prepared.before),
        allocated=normalise_map(prepared.allocated),
        content_digest=prepared.content_digest,
    )


def next_intent(
    action: ActionRow, prepared: Reading | None, decision: Decision, approval_id: str = ""
) -> e.IntentRecorded:
    """The intent of a registered action: released from the outbox or a gate, or sent again under the same key."""
    read = prepared or Reading(action.before_image, action.allocated, content_digest=action.content_digest)
    return e.IntentRecorded(
        attempt=action.attempt + 1,
        idempotency_key=action.idempotency_key
        or idempotency_key(action.run_id, action.kind, action.slot, action.generation),
        deadline_us=deadline_us(decision, action.contract, read.asked_us),
        before_image=normalise_map(read.before),
        allocated=normalise_map(read.allocated),
        content_digest=read.content_digest,
        approval_id=approval_id,
    )


def twin(
    action: ActionRow,
    slot: str,
    *,
    generation: int = 1,
    depends_on: tuple[str, ...] = (),
    inputs_from: tuple[str, ...] = (),
) -> e.ActionPlanned:
    """The registration of a second effect of an action, found without a call of ours (rules 7 and 25)."""
    return e.ActionPlanned(
        action_kind=ActionKind.DUPLICATE,
        of=action.action_id,
        capability=action.capability,
        adapter=action.adapter,
        instance=action.instance,
        environment=action.environment,
        slot=slot,
        generation=generation,
        args=action.args,
        args_digest=action.args_digest,
        input=action.input,
        resource=action.resource,
        contract=action.contract,
        depends_on=depends_on,
        inputs_from=inputs_from,
    )


def subject(resolved: Resolved, prepared: Prepared) -> Subject:
    """What policy is asked about before an action is registered."""
    return Subject(
        contract=resolved.contract,
        capability=resolved.contract.capability,
        resource=resolved.resource,
        environment=resolved.offer.context.environment,
        input={**resolved.input, **normalise_map(prepared.input)},
        subject_digest=prepared.subject_digest,
    )


def question_before(kit: Kit, run_id: str, action_id: str, args: dict[str, Json], timeout_seconds: float) -> Question:
    """What `prepare` is told, of a copy of the arguments: nothing has been sent yet."""
    return Question(
        run_id=run_id,
        action_id=action_id,
        marker=action_id,
        idempotency_key="",
        args=deepcopy(args),
        before={},
        allocated={},
        effect={},
        after={},
        reference="",
        attempt=0,
        sent_at_us=None,
        timeout_seconds=timeout_seconds,
        secret=kit.secrets.resolve,
    )


def refuse_unrecordable(kit: Kit, capability: str, prepared: Prepared) -> None:
    """What is needed to undo must survive the ledger unchanged (rule 10). Raises `InvalidInput`."""
    kept: dict[str, Json] = {"before": normalise_map(prepared.before), "allocated": normalise_map(prepared.allocated)}
    told = normalise_map(prepared.input)
    canonical_bytes(kept)
    if redact(kept, kit.secrets.revealed()) != kept:
        raise InvalidInput(
            f"the before-image of `{capability}` holds a secret, so it could not be restored",
            hint="keep the secret out of the changed object, or change it by hand",
        )
    if redact(told, kit.secrets.revealed()) != told:
        raise InvalidInput(
            f"what policies would be told about `{capability}` holds a secret: such a decision cannot be derived again",
            hint="report it to the plugin's authors: `Prepared.input` may hold no secret",
        )
