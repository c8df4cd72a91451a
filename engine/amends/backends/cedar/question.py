"""From an authorization request to what Cedar is asked, and back from a recorded decision.

Every context value is built here from ledger facts, typed and checked one by one; nothing that came from outside is
passed through as a structure. `input` holds declared scalar fields only, so the reserved keys `__extn`, `__entity`
and `__expr` have no way in. Refusals name fields and types, never values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from amends.backends.cedar.schema import CORE, PRINCIPALS, ActionDeclaration, entity_type
from amends.backends.cedar.windows import EPOCH
from amends.core.canonical import Json, JsonMap
from amends.core.contract import Alternative, Contract, InputType
from amends.core.status import Outcome
from amends.ports.authorizer import ApprovalFacts, AuthorizationRequest, Principal

_LONG_LIMIT = 2**63
_OUTCOMES = frozenset(outcome.value for outcome in Outcome)
GROUPS = ("run", "forward", "evidence", "contract", "time", "approval", "input")


class RequestRejected(Exception):
    """The request cannot be put to Cedar; the message names fields and types, never values."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question in Cedar's terms. `record` is its storable form: `from_record` builds it again."""

    principal: Mapping[str, str]
    action: Mapping[str, str]
    resource: Mapping[str, str]
    context: Mapping[str, Json]
    entities: Sequence[Mapping[str, Json]]
    record: Mapping[str, Json]

    @property
    def uids(self) -> dict[str, Mapping[str, str]]:
        """Who, what, on what."""
        return {"principal": self.principal, "action": self.action, "resource": self.resource}

    @property
    def action_key(self) -> tuple[str, str]:
        """The action as (type, id)."""
        return self.action["type"], self.action["id"]


def from_request(
    request: AuthorizationRequest, declared: ActionDeclaration, open_windows: Sequence[str], policy_version: str
) -> Question:
    """The question behind `request`. Raises `RequestRejected`."""
    _check_scope(request, declared)
    context: JsonMap = {
        "run": _run(request, policy_version),
        "evidence": _evidence(request.evidence),
        "contract": _contract(request),
        "time": _time(request, open_windows),
        "input": _input(request.input, declared),
    }
    if request.forward is not None and request.phase != "forward":
        context["forward"] = _forward(request.forward)
    elif request.phase == "undo":
        raise RequestRejected("an undo needs `forward` facts")
    if request.approval is not None and request.approval.expires_us > request.now_us:
        context["approval"] = approval_context(request.approval)
    principal = _principal(request.principal)
    resource: JsonMap = {
        "type": f"{declared.namespace}::{entity_type(request.resource_type)}",
        "id": _text(request.resource_id, "resource_id"),
        "tenant": _text(request.tenant, "tenant"),
        "environment": _text(request.environment, "environment"),
    }
    action: JsonMap = {"type": f"{declared.namespace}::Action", "id": declared.name}
    return from_record({"principal": principal, "action": action, "resource": resource, **context})


def from_record(record: Mapping[str, Json]) -> Question:
    """The question in a decision's `context`: what was asked then, word for word. Raises `RequestRejected`."""
    unknown = sorted(record.keys() - {*GROUPS, "principal", "action", "resource"})
    if unknown:
        raise RequestRejected(f"a request has no `{unknown[0]}`")
    principal, action, resource = (_object(record, name) for name in ("principal", "action", "resource"))
    tenant: JsonMap = {"type": f"{CORE}::Tenant", "id": principal.get("tenant")}
    owner: JsonMap = {"type": f"{CORE}::Tenant", "id": resource.get("tenant")}
    roles = principal.get("roles") or []
    if not isinstance(roles, list):
        raise RequestRejected("`principal.roles` is not a list")
    entities: list[JsonMap] = [
        {
            "uid": dict[str, Json](_uid(principal, "principal")),
            "attrs": {"tenant": tenant},
            "parents": [{"type": f"{CORE}::Role", "id": role} for role in roles],
        },
        {
            "uid": dict[str, Json](_uid(resource, "resource")),
            "attrs": {"tenant": owner, "environment": resource.get("environment")},
            "parents": [owner],
        },
    ]
    return Question(
        principal=_uid(principal, "principal"),
        action=_uid(action, "action"),
        resource=_uid(resource, "resource"),
        context={name: record[name] for name in GROUPS if name in record},
        entities=entities,
        record=dict(record),
    )


def approval_context(approval: ApprovalFacts) -> JsonMap:
    """Approval facts as policies see them. Raises `RequestRejected` for an approval by nobody or without a tier."""
    approvers = sorted(set(approval.approvers))
    if not approvers or approval.tier < 1:
        raise RequestRejected("the approval names no approver or no tier")
    return {
        "approvers": [_entity("Human", name) for name in approvers],
        "roles": [_entity("Role", name) for name in sorted(set(approval.roles))],
        "count": len(approvers),
        "tier": _long(approval.tier, "approval.tier"),
        "at": moment(approval.at_us),
        "expires_at": moment(approval.expires_us),
    }


def _check_scope(request: AuthorizationRequest, declared: ActionDeclaration) -> None:
    if request.phase != declared.phase:
        raise RequestRejected(f"`{declared.name}` is an action of phase `{declared.phase}`, not `{request.phase}`")
    if request.principal.type not in PRINCIPALS[request.phase]:
        raise RequestRejected(f"an {request.principal.type} never acts in phase `{request.phase}`")
    if entity_type(request.resource_type) not in declared.resources:
        raise RequestRejected(f"`{declared.name}` does not apply to a `{request.resource_type}`")


def _principal(principal: Principal) -> JsonMap:
    return {
        "type": f"{CORE}::{principal.type}",
        "id": _text(principal.id, "principal.id"),
        "tenant": _text(principal.tenant, "principal.tenant"),
        "roles": [_text(role, "principal.roles") for role in sorted(set(principal.roles))],
    }


def _run(request: AuthorizationRequest, policy_version: str) -> JsonMap:
    facts = request.run
    run: JsonMap = {
        "run_id": _text(facts.get("run_id"), "run.run_id"),
        "workflow": _text(facts.get("workflow"), "run.workflow"),
        "agent": _entity("Agent", _text(facts.get("agent"), "run.agent")),
        "attempt": _long(facts.get("attempt"), "run.attempt"),
        "policy_version": policy_version,
        "policy_changed": facts.get("forward_policy_version") not in {None, "", policy_version},
        "success_verified": _bool(facts.get("success_verified", False), "run.success_verified"),
        "requires_human": _bool(facts.get("requires_human", False), "run.requires_human"),
    }
    if facts.get("forward_policy_version"):
        run["forward_policy_version"] = _text(facts["forward_policy_version"], "run.forward_policy_version")
    for person in ("owner", "initiator"):
        if facts.get(person):
            run[person] = _entity("Human", _text(facts[person], f"run.{person}"))
    return run


def _forward(facts: Mapping[str, Json]) -> JsonMap:
    status = _text(facts.get("status"), "forward.status")
    if status not in _OUTCOMES:
        raise RequestRejected("`forward.status` is no outcome (none, succeeded, failed, unknown)")
    forward: JsonMap = {
        "status": _entity("Outcome", status),
        "principal": _entity("Agent", _text(facts.get("principal"), "forward.principal")),
        "residue": _bool(facts.get("residue", False), "forward.residue"),
    }
    for name in ("session", "caused_by_action"):
        if facts.get(name):
            forward[name] = _text(facts[name], f"forward.{name}")
    if facts.get("decided_at_us") is not None:
        forward["decided_at"] = moment(_long(facts["decided_at_us"], "forward.decided_at_us"))
    return forward


def _evidence(facts: Mapping[str, Json]) -> JsonMap:
    missing = facts.get("missing", [])
    if not isinstance(missing, list):
        raise RequestRejected("`evidence.missing` is not a list")
    return {
        "complete": _bool(facts.get("complete", False), "evidence.complete"),
        "missing": [_text(name, "evidence.missing") for name in missing],
    }


def _contract(request: AuthorizationRequest) -> JsonMap:
    """Facts about the contract. What the engine leaves out is taken from the contract itself, or is false."""
    facts, contract = request.contract_facts, request.contract
    mode = contract.release.mode if contract.release else "none"
    proven = not contract.needs_drill or _bool(facts.get("proven", False), "contract.proven")
    return {
        "writes": contract.consequential,
        "proven": proven,
        "drilled": _bool(facts.get("drilled", False), "contract.drilled"),
        "reversibility": _entity("Reversibility", _word(facts, "reversibility", contract.reversibility)),
        "audience": _entity("Audience", _word(facts, "audience", contract.readers.audience)),
        "release_mode": _entity("ReleaseMode", _word(facts, "release_mode", mode)),
        "safe": _bool(facts.get("safe", False), "contract.safe") and _declared_safe(request),
        "in_time": _bool(facts["in_time"], "contract.in_time") if "in_time" in facts else _in_time(request),
        "reference_owned": _bool(facts.get("reference_owned", False), "contract.reference_owned"),
    }


def _declared_safe(request: AuthorizationRequest) -> bool:
    """The same fact seen from the other side: some rung under this action names the outcome in `safe_when`."""
    if request.phase != "undo" or request.forward is None:
        return True
    status = request.forward.get("status")
    return any(status in rung.safe_when for rung in _rungs(request.contract, request.action))


def _in_time(request: AuthorizationRequest) -> bool:
    limits = [rung.expires_after_seconds for rung in _rungs(request.contract, request.action)]
    return all(limit is None or request.age_us <= limit * 1_000_000 for limit in limits)


def _rungs(contract: Contract, action: str) -> list[Alternative]:
    return [rung for rung in contract.compensation if contract.undo_action_name(rung) == action]


def _time(request: AuthorizationRequest, open_windows: Iterable[str]) -> JsonMap:
    return {
        "now": moment(request.now_us),
        "age": f"{max(0, request.age_us) // 1000}ms",
        "windows": list(open_windows),
    }


def _input(given: Mapping[str, Json], declared: ActionDeclaration) -> JsonMap:
    unknown = sorted(given.keys() - declared.input.keys())
    if unknown:
        raise RequestRejected(f"input `{unknown[0]}` is not declared by `{declared.name}`")
    absent = sorted(declared.required.keys() - given.keys())
    if absent:
        raise RequestRejected(f"input `{absent[0]}` is declared by `{declared.name}` and missing")
    return {name: _value(value, declared.input[name], f"input.{name}") for name, value in sorted(given.items())}


def _value(value: Json, type_: InputType, where: str) -> Json:
    if type_ == "String":
        return _text(value, where)
    if type_ == "Long":
        return _long(value, where)
    if type_ == "Bool":
        return _bool(value, where)
    if not isinstance(value, list):
        raise RequestRejected(f"`{where}` is not a {type_}")
    return [_text(item, where) for item in value]


def _word(facts: Mapping[str, Json], name: str, default: str) -> str:
    return _text(facts.get(name) or default, f"contract.{name}")


def _entity(type_: str, id_: str) -> JsonMap:
    return {"type": f"{CORE}::{type_}", "id": id_}


def moment(microseconds: int) -> str:
    """Microseconds as Cedar reads a time. Raises `RequestRejected`."""
    try:
        return stamp(EPOCH + timedelta(milliseconds=microseconds // 1000))
    except OverflowError:
        raise RequestRejected("a time is out of range") from None


def stamp(utc: datetime) -> str:
    """Milliseconds and `Z`: Cedar refuses Python's own ISO form."""
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise RequestRejected(f"`{where}` is not a String")
    return value


def _bool(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise RequestRejected(f"`{where}` is not a Bool")
    return value


def _long(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestRejected(f"`{where}` is not a Long")
    if not -_LONG_LIMIT <= value < _LONG_LIMIT:
        raise RequestRejected(f"`{where}` does not fit a Long")
    return value


def _object(record: Mapping[str, Json], name: str) -> JsonMap:
    value = record.get(name)
    if not isinstance(value, dict):
        raise RequestRejected(f"the record has no `{name}`")
    return value


def _uid(value: Mapping[str, Json], name: str) -> dict[str, str]:
    return {"type": _text(value.get("type"), f"{name}.type"), "id": _text(value.get("id"), f"{name}.id")}
