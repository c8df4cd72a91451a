"""Default policies of an http adapter, written from its contracts: agents call, recovery takes back.

Each permit names one action on one type of resource. What is irreversible is released within what the baseline
demands of it. The tests that go with them hold under the baseline alone; a site's own rules may well be stricter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from amends.spi import Contract, Json
from amends_http.declaration import Declaration

_SAMPLES: dict[str, Json] = {"String": "x", "Long": 1, "Bool": True, "Set<String>": ["x"]}


def default_policies(adapter: str, operations: Iterable[tuple[Declaration, Contract]]) -> str:
    """The Cedar text of every default permit of the adapter."""
    return "\n".join(text for declaration, contract in operations for text in _permits(adapter, declaration, contract))


def default_tests(adapter: str, operations: Iterable[tuple[Declaration, Contract]]) -> str:
    """The policy tests of those permits, as JSON."""
    tests = [test for declaration, contract in operations for test in _tests(adapter, declaration, contract)]
    return json.dumps(tests, indent=2, ensure_ascii=False)


def _permits(adapter: str, declaration: Declaration, contract: Contract) -> Iterator[str]:
    name = contract.capability
    reason = f"agents may call {name}: {contract.summary}"
    yield _permit(_id(adapter, declaration), reason, "principal is Amends::Agent", contract, name)
    for rung, action in _undo_actions(declaration, contract):
        reason = f"recovery may take back {name} by {rung}"
        yield _permit(_id(adapter, declaration, rung), reason, "principal", contract, action)
    if contract.irreversible:
        reason = f"what passed the rules of the outbox may leave: {name}"
        yield _permit(_id(adapter, declaration, "release"), reason, "principal", contract, f"{name}.release")


def _tests(adapter: str, declaration: Declaration, contract: Contract) -> Iterator[Json]:
    name = contract.capability
    allow: dict[str, Json] = {"outcome": "allow", "determining": {"exact": [_id(adapter, declaration)]}}
    yield {"name": f"agents may call {name}", "given": _given("forward", contract, name), "expect": allow}
    for rung, action in _undo_actions(declaration, contract):
        given = _given("undo", contract, action)
        allow = {"outcome": "allow", "determining": {"exact": [_id(adapter, declaration, rung)]}}
        yield {"name": f"recovery may take back {name} by {rung}", "given": given, "expect": allow}
        given = _given("undo", contract, action, evidence={"complete": False, "missing": ["probe"]})
        deny: Json = {"outcome": "deny"}
        yield {"name": f"{rung} of {name} needs complete evidence", "given": given, "expect": deny}


def _undo_actions(declaration: Declaration, contract: Contract) -> Iterator[tuple[str, str]]:
    """(rung, policy action) of every rung that recovery may climb by default; rungs of one action count once."""
    seen: set[str] = set()
    for rung, alternative in zip(declaration.compensation, contract.compensation, strict=True):
        action = contract.undo_action_name(alternative)
        if rung.undo == "own" and rung.default_permit and action not in seen:
            seen.add(action)
            yield rung.name, action


def _given(fixture: str, contract: Contract, action: str, **more: Json) -> Json:
    facts: dict[str, Json] = {
        "reversibility": {"id": contract.reversibility},
        "audience": {"id": contract.readers.audience},
        "release_mode": {"id": contract.release.mode if contract.release else "none"},
    }
    overrides: dict[str, Json] = {
        "action": {"type": f"{contract.namespace}::Action", "id": action},
        "resource": {"type": _resource(contract)},
        "input": {name: _SAMPLES[type_] for name, type_ in contract.input.items()},
        "contract": facts,
        **more,
    }
    return {"fixture": fixture, "overrides": overrides}


def _resource(contract: Contract) -> str:
    """`Partner::CarrierInstructions` for a `carrier_instructions:…` of the adapter `partner`."""
    words = contract.effect.resource_type.split("_")
    return f"{contract.namespace}::{''.join(word[:1].upper() + word[1:] for word in words if word)}"


def _id(adapter: str, declaration: Declaration, part: str = "") -> str:
    words = [declaration.name, part] if part else [declaration.name]
    return f"{adapter}:{'-'.join(words).replace('_', '-')}"


def _permit(name: str, reason: str, principal: str, contract: Contract, action: str) -> str:
    return (
        f"@id({json.dumps(name)})\n"
        f"@reason({json.dumps(reason, ensure_ascii=False)})\n"
        f"permit (\n"
        f"  {principal},\n"
        f"  action == {contract.namespace}::Action::{json.dumps(action)},\n"
        f"  resource is {_resource(contract)}\n"
        f");\n"
    )
