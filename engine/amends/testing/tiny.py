"""The smallest adapter there is: a shop whose effects are files in a folder. For tests of what surrounds an adapter.

It is also a plugin module: install it under an entry point `shop = amends.testing.tiny` (see
`amends.testing.distributions`) and configure `[adapters.shop]` with `folder`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from amends.core.canonical import Json
from amends.core.contract import Alternative, Contract, Effect, Identity, Keying, ProbeRule, Readers, Release
from amends.core.evidence import Observation
from amends.spi import (
    AdapterContext,
    Call,
    Capability,
    Check,
    DoctorFinding,
    Done,
    PolicyContribution,
    Question,
    Receipt,
    Refused,
    Registry,
    hookimpl,
)

POLICIES = """
@id("{name}:reserve") @reason("agents may reserve")
permit (principal is Amends::Agent, action == {space}::Action::"{name}.reserve", resource);
@id("{name}:undo") @reason("recovery may take a reservation back")
permit (principal is Amends::Service, action == {space}::Action::"{name}.reserve.undo", resource);
@id("{name}:notify") @reason("agents may queue a notice")
permit (principal is Amends::Agent, action == {space}::Action::"{name}.notify", resource);
@id("{name}:release") @reason("a notice leaves with the yes of a person")
permit (principal is Amends::Service, action == {space}::Action::"{name}.notify.release", resource)
when {{ context has approval && context.approval.tier >= 1 }};
"""


class TinyArguments(BaseModel):
    """One name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str


class TinyCapability(Capability):
    """An effect is a file in `folder`, named by the argument `name`. `refuse`: names the shop says no to."""

    arguments = TinyArguments

    def __init__(self, contract: Contract, folder: Path, refuse: frozenset[str] = frozenset()) -> None:
        self.contract = contract
        self._folder = folder
        self._refuse = refuse

    def do(self, call: Call) -> Receipt:
        name = str(call.args["name"])
        if name in self._refuse:
            raise Refused(f"the shop refuses `{name}`")
        path = self._path(call)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(call.marker, encoding="utf-8")
        return Done(effect={"name": name}, reference=path.name)

    def probe(self, question: Question) -> Observation:
        path = self._path(question)
        return Observation(seen="applied" if path.exists() else "absent", reference=path.name)

    def undo(self, call: Call) -> Receipt:
        self._path(call).unlink(missing_ok=True)
        return Done()

    def _path(self, question: Question) -> Path:
        kind = self.contract.effect.kind
        digest = hashlib.sha256(str(question.args["name"]).encode()).hexdigest()[:12]
        return self._folder / f"{kind}-{digest}"


def reserve(name: str) -> Contract:
    """A reservation: undone by removing it, found again by its name."""
    return Contract(
        capability=f"{name}.reserve",
        summary="reserves one item",
        effect=Effect(kind="reservation", system="shop", resource="reservation:{name}"),
        readers=Readers(audience="machine", where="the shop's folder"),
        undo_cost="none",
        reversibility="reversible",
        identity=Identity(fields=("name",)),
        keying=Keying(kind="probeable"),
        probe=ProbeRule(strength="id", deadline_seconds=5.0, absent_final_after_seconds=0.0),
        compensation=(Alternative(name="cancel"),),
    )


def notify(name: str) -> Contract:
    """A notice: it leaves with a person's yes and is never undone."""
    return reserve(name).model_copy(
        update={
            "capability": f"{name}.notify",
            "summary": "sends a notice",
            "effect": Effect(kind="notice", system="shop", resource="notice:{name}"),
            "undo_cost": "",
            "reversibility": "irreversible",
            "compensation": (),
            "release": Release(mode="on_approval"),
        }
    )


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """A reservation and a notice. Options: `folder`, and `refuse`, a list of names."""
    folder = Path(context.base_path) / str(context.options.get("folder", "shop"))
    refused: Json = context.options.get("refuse", [])
    names = frozenset(str(one) for one in refused) if isinstance(refused, list) else frozenset[str]()
    for contract in (reserve(context.name), notify(context.name)):
        registry.capability(TinyCapability(contract, folder, names))


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """What agents and recovery may do in the shop."""
    text = POLICIES.format(name=context.name, space=reserve(context.name).namespace)
    registry.policies(PolicyContribution({"shop.cedar": text}))


@hookimpl
def amends_register_checks(context: AdapterContext, registry: Registry) -> None:
    """A check that always passes."""
    registry.check(Check(f"{context.name}_open", lambda run_id: ("passed", f"open for {run_id}")))


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """The shop is open."""
    registry.doctor(lambda: [DoctorFinding("ok", context.name, "the shop is open")])
