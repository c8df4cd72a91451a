"""Resolving a call, purely: arguments, slot, resource, policy input; and what an earlier call of the slot decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from amends.core.canonical import Json, canonical_bytes, keyed_digest, normalise_map
from amends.core.contract import Contract
from amends.core.errors import InternalError, InvalidInput
from amends.core.identity import render, slot_of
from amends.core.redaction import is_reference, redact, redact_text
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import may_resend
from amends.core.status import ActionKind, ActionStatus, Outcome
from amends.runtime.kit import Offer

_S = ActionStatus


@dataclass(frozen=True, slots=True)
class Request:
    """One call as the caller made it. `depends_on` holds action ids; `None`: nothing declared; `()`: independent."""

    capability: str
    args: Mapping[str, object]
    label: str = ""
    depends_on: tuple[str, ...] | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Resolved:
    """A call whose arguments are validated, canonical, frozen and free of secrets. `invalid` says why they do not
    validate, if they do not but the intent can still be named.
    """

    offer: Offer
    args: dict[str, Json]
    args_digest: str
    slot: str
    label: str
    resource: str
    input: dict[str, Json]
    invalid: str = ""

    @property
    def contract(self) -> Contract:
        """The contract as it is now, and as it will be recorded."""
        return self.offer.contract

    @property
    def queued(self) -> bool:
        """True for a call that goes into the outbox: nothing is sent before the run has succeeded (rule 26)."""
        release = self.contract.release
        return release is not None and release.mode != "gate"


def resolve(
    offer: Offer, args: Mapping[str, object], label: str, digest_key: bytes, secrets: frozenset[str]
) -> Resolved:
    """Raises `InvalidInput` (does not serialise, holds a secret) or `Unidentified`; nothing was sent then."""
    contract = offer.contract
    given = normalise_map(args)
    invalid = ""
    try:
        values = normalise_map(offer.capability.arguments.model_validate(given).model_dump(mode="json"))
    except ValidationError as error:
        invalid = _explain(contract, error)
        values = given
    canonical_bytes(values)
    _refuse_secrets(contract, values, label, secrets)
    try:
        resource = render(contract.effect.resource, values)
        slot = slot_of(contract, offer.context.instance, offer.context.environment, values, label)
    except InvalidInput:
        if invalid:
            raise InvalidInput(invalid, hint="fix the arguments; nothing was sent") from None
        raise
    return Resolved(
        offer=offer,
        args=values,
        args_digest=keyed_digest(values, digest_key),
        slot=slot,
        label=label,
        resource=resource,
        input={name: values[name] for name in contract.input if name in values},
        invalid=invalid,
    )


def _explain(contract: Contract, error: ValidationError) -> str:
    wrong = [
        f"`{'.'.join(str(p) for p in item['loc']) or 'arguments'}`: {item['msg'][:1].lower()}{item['msg'][1:]}"
        for item in error.errors()
    ]
    return f"arguments of `{contract.capability}` do not validate: {'; '.join(wrong)}"


def _refuse_secrets(contract: Contract, values: dict[str, Json], label: str, secrets: frozenset[str]) -> None:
    for name in contract.secret_arguments:
        value = values.get(name)
        if value is not None and not is_reference(value):
            raise InvalidInput(
                f"argument `{name}` of `{contract.capability}` must be a secret reference",
                hint="pass `env:NAME` or `file:PATH`; the adapter resolves it at send",
            )
    if redact_text(label, secrets) != label:
        raise InvalidInput(
            f"the label of a call of `{contract.capability}` holds a secret that may not enter the ledger",
            hint="name the call by something that is no secret",
        )
    if redact(values, secrets) != values:
        raise InvalidInput(
            f"arguments of `{contract.capability}` hold a secret that may not enter the ledger",
            hint="pass a secret reference such as `env:NAME` instead of the value",
        )


@dataclass(frozen=True, slots=True)
class Prior:
    """What stands in the slot. `blocks`: answer with the recorded state; `resend`: the same action may go again;
    otherwise a new generation opens.
    """

    action: ActionRow | None
    blocks: bool
    resend: bool = False
    conflict: bool = False

    @property
    def recorded(self) -> ActionRow:
        """The action in the slot. Raises `InternalError` for a free slot."""
        if self.action is None:
            raise InternalError("a free slot was taken for a used one", hint="report this")
        return self.action

    @property
    def generation(self) -> int:
        """The generation a new action would have."""
        return self.action.generation + 1 if self.action else 1


def prior(state: RunState, resolved: Resolved) -> Prior:
    """What an earlier call of the same slot means for this one (rule 5)."""
    earlier = state.in_slot(resolved.slot)
    if earlier is None:
        return Prior(None, blocks=False)
    same = earlier.args_digest == resolved.args_digest
    if earlier.status is _S.FAILED and earlier.outcome is Outcome.FAILED:
        if same and may_resend(earlier):
            return Prior(earlier, blocks=False, resend=True)
        refused_here = earlier.error is not None and earlier.error.code in {"prepare_refused", "invalid_input"}
        return Prior(earlier, blocks=same and refused_here)
    if earlier.status in {_S.DENIED, _S.WITHDRAWN, _S.COMPENSATED}:
        return Prior(earlier, blocks=False)
    return Prior(earlier, blocks=True, conflict=not same)


def proposed_inverse(state: RunState, resolved: Resolved) -> ActionRow | None:
    """The effect of this run that a forward call would take away (rule 11), if any."""
    if resolved.contract.effect.changes != "removes":
        return None
    for action in reversed(state.forward_actions()):
        if action.kind is ActionKind.DO and action.resource == resolved.resource and _exists(action):
            return action
    return None


def _exists(action: ActionRow) -> bool:
    return (
        action.ever_sent
        and action.contract.effect.changes != "removes"
        and action.outcome
        in {
            Outcome.SUCCEEDED,
            Outcome.UNKNOWN,
            Outcome.NONE,
        }
    )
