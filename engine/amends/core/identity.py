"""Identity: slots, claims, idempotency keys, digests of what people approved (rules 5, 6 and 30).

A slot says *which intent* a call is, independent of its wording. Names, revisions and texts a model may reword stay
out of it because contracts leave them out of `identity.fields`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from string import Formatter
from urllib.parse import quote

from amends.core.canonical import FORM, Json, canonical_bytes, canonical_text, digest
from amends.core.contract import Contract
from amends.core.errors import InvalidInput, Unidentified
from amends.core.status import ActionKind

_READABLE_SLOT = 200


def slot_of(contract: Contract, instance: str, environment: str, args: Mapping[str, Json], label: str = "") -> str:
    """The slot of a call: capability + adapter instance + environment + identity values + label.

    Raises `Unidentified` for a consequential call that has neither identity values nor a label.
    """
    names = contract.identity.fields + contract.identity.value_fields
    if contract.consequential and not label and not _identified(contract):
        raise Unidentified(
            f"`{contract.capability}` may be called many times in a run, so this call needs a label",
            hint="pass label='…' naming what this call is for; the same label is the same call",
            capability=contract.capability,
        )
    values = {name: args.get(name) for name in names}
    text = f"{contract.capability}@{instance}/{environment}?{canonical_text(values)}#{label}"
    if len(text) <= _READABLE_SLOT:
        return text
    return f"{contract.capability}@{instance}/{environment}?{digest(values)}#{label}"


def _identified(contract: Contract) -> bool:
    identity = contract.identity
    return bool(identity.value_fields) if identity.cardinality == "many" else bool(identity.fields)


def claim_of(contract: Contract, tenant: str, workflow: str, slot: str) -> str:
    """The claim a call makes beyond its run; empty if its identity ends with the run."""
    match contract.identity.scope:
        case "tenant":
            return f"effect:{tenant}:{slot}"
        case "workflow":
            return f"effect:{tenant}:{workflow}:{slot}"
        case _:
            return ""


def run_claim(tenant: str, workflow: str, run_key: str) -> str:
    """The claim that makes tenant + workflow + run key one run."""
    return f"run:{canonical_text([tenant, workflow, run_key])}"


def idempotency_key(run_id: str, kind: ActionKind, slot: str, generation: int, of: str = "", rung: str = "") -> str:
    """The key sent to the provider: fixed by the intent and its generation, never by wording, time or chance."""
    parts = canonical_bytes([FORM, run_id, kind.value, slot, generation, of, rung])
    return f"amends-{hashlib.sha256(parts).hexdigest()[:40]}"


def render(template: str, values: Mapping[str, Json], *, escape: bool = False) -> str:
    """`branch:{repo}/{name}` with values filled in. Raises `InvalidInput` naming a field that is missing.

    With `escape`, values are percent-encoded as path parts.
    """
    out: list[str] = []
    for text, field, _, _ in Formatter().parse(template):
        out.append(text)
        if field is None:
            continue
        value = values.get(field)
        if value is None or isinstance(value, dict | list):
            raise InvalidInput(f"`{field}` in `{template}` has no value", hint="pass it", field=field)
        out.append(quote(str(value), safe="") if escape else str(value))
    return "".join(out)


def approval_digest(
    *,
    principal: str,
    action: str,
    resource: str,
    args_digest: str,
    policy_input: Mapping[str, Json],
    content_digest: str,
    forward_outcome: str,
    contract_digest: str,
) -> str:
    """What a yes is bound to (rule 30). Time, attempt, epoch and policy version are not in it."""
    return digest(
        [principal, action, resource, args_digest, dict(policy_input), content_digest, forward_outcome, contract_digest]
    )
