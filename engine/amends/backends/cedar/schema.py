"""The schema of adapters, generated from their contracts: one namespace each, every action in exactly one phase.

Plugins name things; they write no schema. So a resource always has `tenant` and `environment`, and the actions of
recovery never accept an Agent (rule 21).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amends.core.contract import Contract, InputType, Phase
from amends.core.errors import ConfigError

CORE = "Amends"
PHASES: tuple[Phase, ...] = ("forward", "probe", "undo", "release", "correct")
PRINCIPALS: Mapping[Phase, tuple[str, ...]] = {
    "forward": ("Agent", "Human"),
    "probe": ("Service", "Human"),
    "undo": ("Service", "Human"),
    "release": ("Service", "Human"),
    "correct": ("Service", "Human"),
}

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RESERVED_FIELDS = frozenset({"__extn", "__entity", "__expr"})
_RESERVED_TYPES = frozenset({"Action", "Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String"})
_FORWARD_FACTS: Mapping[Phase, str] = {
    "forward": "",
    "probe": "forward?: Amends::ForwardFacts,",
    "undo": "forward: Amends::ForwardFacts,",
    "release": "forward?: Amends::ForwardFacts,",
    "correct": "forward?: Amends::ForwardFacts,",
}


@dataclass(slots=True)
class ActionDeclaration:
    """One policy action: its phase, the resource types it applies to, and its declared input."""

    namespace: str
    name: str
    phase: Phase
    resources: set[str] = field(default_factory=set[str])
    required: dict[str, InputType] = field(default_factory=dict[str, InputType])
    optional: dict[str, InputType] = field(default_factory=dict[str, InputType])

    @property
    def input(self) -> dict[str, InputType]:
        """Every declared field."""
        return self.required | self.optional


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every action of the registered contracts, by (namespace, name), and the schema text of each namespace."""

    actions: Mapping[tuple[str, str], ActionDeclaration]
    texts: Mapping[str, str]


def entity_type(resource_type: str) -> str:
    """The Cedar type of a contract's resource type: `Reservation` for `reservation`, `DraftPr` for `draft_pr`."""
    return "".join(part[:1].upper() + part[1:] for part in resource_type.split("_") if part)


def vocabulary(contracts: Iterable[Contract]) -> Vocabulary:
    """Declare every action of `contracts`. Raises `ConfigError` for a name that Cedar or the core reserves, or that
    two contracts use in different phases or with different field types.
    """
    actions: dict[tuple[str, str], ActionDeclaration] = {}
    owners: dict[str, str] = {}
    for contract in contracts:
        _check_names(contract, owners)
        resource = entity_type(contract.effect.resource_type)
        for name, phase in contract.action_names().items():
            key = contract.namespace, name
            known = actions.get(key)
            if known is None:
                actions[key] = _declare(contract, name, phase, resource)
            else:
                _merge(known, phase, resource, contract)
    names = sorted({namespace for namespace, _ in actions})
    return Vocabulary(actions, {name: _namespace_text(name, actions) for name in names})


def _declare(contract: Contract, name: str, phase: Phase, resource: str) -> ActionDeclaration:
    """The first read of a call comes before `prepare` has added its input: a probe needs none of the fields."""
    fields = dict(contract.input)
    required, optional = ({}, fields) if phase == "probe" else (fields, {})
    return ActionDeclaration(contract.namespace, name, phase, {resource}, required, optional)


def _check_names(contract: Contract, owners: dict[str, str]) -> None:
    prefix = contract.capability.split(".", 1)[0]
    namespace = contract.namespace
    if namespace == CORE:
        raise ConfigError(
            f"capability `{contract.capability}` would live in the core's namespace `{CORE}`", hint="rename the adapter"
        )
    if owners.setdefault(namespace, prefix) != prefix:
        raise ConfigError(
            f"`{prefix}` and `{owners[namespace]}` would share the policy namespace `{namespace}`", hint="rename one"
        )
    resource = contract.effect.resource_type
    if entity_type(resource) in _RESERVED_TYPES:
        raise ConfigError(
            f"capability `{contract.capability}`: resource type `{resource}` is a word of Cedar", hint="rename it"
        )
    for name in contract.input:
        if not _FIELD.fullmatch(name) or name in _RESERVED_FIELDS:
            raise ConfigError(
                f"capability `{contract.capability}`: policy input `{name}` is no usable field name",
                hint="use letters, digits and underscores",
            )


def _merge(known: ActionDeclaration, phase: Phase, resource: str, contract: Contract) -> None:
    """Two contracts bring one action (a shared `authority`): a field that only one of them declares is optional."""
    if known.phase != phase:
        raise ConfigError(
            f"policy action `{known.name}` would be both `{known.phase}` and `{phase}`", hint="rename the authority"
        )
    for name, type_ in contract.input.items():
        if known.input.get(name, type_) != type_:
            raise ConfigError(
                f"policy action `{known.name}`: input `{name}` is `{known.input[name]}` in one contract "
                f"and `{type_}` in `{contract.capability}`",
                hint="give the field one type",
            )
    both = known.required.keys() & contract.input.keys()
    every = known.input | contract.input
    known.resources.add(resource)
    known.required = {name: every[name] for name in both}
    known.optional = {name: type_ for name, type_ in every.items() if name not in both}


def _namespace_text(namespace: str, actions: Mapping[tuple[str, str], ActionDeclaration]) -> str:
    own = sorted((a for (owner, _), a in actions.items() if owner == namespace), key=lambda action: action.name)
    resources = sorted({resource for action in own for resource in action.resources})
    lines = [f"namespace {namespace} {{"]
    lines += [
        f"  entity {resource} in [{CORE}::Tenant] = {{ tenant: {CORE}::Tenant, environment: String }};"
        for resource in resources
    ]
    for action in own:
        lines += _action_lines(action)
    return "\n".join([*lines, "}", ""])


def _action_lines(action: ActionDeclaration) -> list[str]:
    principals = ", ".join(f"{CORE}::{name}" for name in PRINCIPALS[action.phase])
    fields = [f'"{name}": {type_}' for name, type_ in sorted(action.required.items())]
    fields += [f'"{name}"?: {type_}' for name, type_ in sorted(action.optional.items())]
    return [
        f'  action {json.dumps(action.name)} in [{CORE}::Action::"phase.{action.phase}"] appliesTo {{',
        f"    principal: [{principals}],",
        f"    resource: [{', '.join(sorted(action.resources))}],",
        f"    context: {{ run: {CORE}::RunFacts, {_FORWARD_FACTS[action.phase]}",
        f"      evidence: {CORE}::EvidenceFacts, contract: {CORE}::ContractFacts,",
        f"      time: {CORE}::TimeFacts, approval?: {CORE}::ApprovalFacts,",
        f"      input: {{ {', '.join(fields)} }} }}",
        "  };",
    ]
