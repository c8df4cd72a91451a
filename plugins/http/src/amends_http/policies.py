"""Default policies of an http adapter, written from its contracts: agents call, the recovery Service takes back.

They name one action each. What is irreversible is released by the Service, within what the baseline demands of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from amends.spi import Contract
from amends_http.declaration import Declaration


def default_policies(adapter: str, operations: Iterable[tuple[Declaration, Contract]]) -> str:
    """The Cedar text of every default permit of the adapter."""
    return "\n".join(text for declaration, contract in operations for text in _permits(adapter, declaration, contract))


def _permits(adapter: str, declaration: Declaration, contract: Contract) -> Iterator[str]:
    word = declaration.name.replace("_", "-")
    space = contract.namespace
    yield _permit(
        f"{adapter}:{word}",
        f"agents may call {contract.capability}: {contract.summary}",
        "Agent",
        space,
        contract.capability,
    )
    named: set[str] = set()
    for rung, alternative in zip(declaration.compensation, contract.compensation, strict=True):
        action = contract.undo_action_name(alternative)
        if rung.undo != "own" or not rung.default_permit or action in named:
            continue
        named.add(action)
        reason = f"recovery may take back {contract.capability} by {rung.name}"
        yield _permit(f"{adapter}:{word}-{rung.name.replace('_', '-')}", reason, "Service", space, action)
    if contract.irreversible:
        reason = f"what passed the outbox rules may leave: {contract.capability}"
        yield _permit(f"{adapter}:{word}-release", reason, "Service", space, f"{contract.capability}.release")


def _permit(name: str, reason: str, principal: str, namespace: str, action: str) -> str:
    return (
        f"@id({json.dumps(name)})\n"
        f"@reason({json.dumps(reason, ensure_ascii=False)})\n"
        f"permit (principal is Amends::{principal}, action == {namespace}::Action::{json.dumps(action)}, resource);\n"
    )
