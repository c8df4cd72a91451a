"""Who and what there is in a simulated world: capabilities of every kind, their policies, and a stricter bundle."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from amends.backends.cedar import CedarAuthorizer
from amends.core.contract import Alternative, Contract, Effect, Identity, Keying, ProbeRule, Readers, Retry, Signal
from amends.core.evidence import Decision
from amends.ports.authorizer import AuthorizationRequest, PolicyBundle
from amends.spi import Capability, PolicyContribution
from amends.testing import contracts
from amends.testing.simulation.scheduling import Process
from amends.testing.simulation.system import (
    LAG_SECONDS,
    SimAccepted,
    SimCapability,
    SimCorrector,
    SimSetting,
    SimSystem,
)

_PROBE = ProbeRule(
    strength="list",
    schedule_seconds=(0.0, 1.0, 4.0, 9.0, 20.0),
    deadline_seconds=60.0,
    absent_final_after_seconds=10.0,
    counts=True,
)
_UNDO = Alternative(
    name="cancel", retry=Retry(attempts=8, backoff_seconds=1.0, backoff_factor=1.5, settle_seconds=LAG_SECONDS + 1)
)
_SIGNAL = Signal(
    visible_to="the team", place="note:{name}", seen="{name} is there", reader_must="nothing", comes_back="tomorrow"
)


def _made(name: str, **changes: Any) -> Contract:
    effect = Effect(kind="thing", system="sim", resource=f"{name}:{{name}}")
    fields: dict[str, Any] = {"effect": effect, "probe": _PROBE, "compensation": (_UNDO,)}
    return contracts.reversible(f"sim.{name}", **(fields | changes))


def _queued(name: str, mode: Any) -> Contract:
    effect = Effect(kind="thing", system="sim", resource=f"{name}:{{name}}")
    return contracts.irreversible(f"sim.{name}", mode, effect=effect, probe=_PROBE)


KEYED = _made("keyed", probe=_PROBE.model_copy(update={"counts": False}))
PROBEABLE = _made("probeable", keying=Keying(kind="probeable"))
SEEN = _made("seen", signal=_SIGNAL, readers=Readers(audience="team", where="the board"))
ACCEPTED = _made(  # a late request is then worked on: what it makes may be two delays late
    "accepted", probe=_PROBE.model_copy(update={"counts": False, "absent_final_after_seconds": 15.0})
)
SET = _made(
    "set",
    effect=Effect(kind="value", system="sim", resource="value:{name}", changes="sets"),
    identity=Identity(fields=("name",), value_fields=("value",), cardinality="many"),
    keying=Keying(kind="probeable"),
    restores_before_image=True,
    probe=_PROBE.model_copy(update={"counts": False}),
)
OUT = _queued("out", "on_success")
ASK = _queued("ask", "on_approval")
GATE = _queued("gate", "gate")
NOTE = contracts.corrector(
    "note.correct",
    probe=_PROBE.model_copy(update={"counts": False}),
    effect=Effect(kind="note", system="note", resource="note:{place}"),
    identity=Identity(fields=("place", "text")),
)
CONTRACTS = (KEYED, PROBEABLE, SEEN, ACCEPTED, SET, OUT, ASK, GATE, NOTE)
_SETTING = frozenset({SET.capability})
_WORKING = frozenset({ACCEPTED.capability})


def capabilities(system: SimSystem, process: Process) -> list[Capability]:
    """Every capability, for one process."""

    def made(contract: Contract) -> Capability:
        if contract.corrects:
            return SimCorrector(contract, system, process)
        if contract.capability in _SETTING:
            return SimSetting(contract, system, process)
        kind = SimAccepted if contract.capability in _WORKING else SimCapability
        return kind(contract, system, process)

    return [made(contract) for contract in CONTRACTS]


# --- policies -----------------------------------------------------------------------------------------------


def _permit(name: str, who: str, actions: Iterable[str], when: str = "") -> str:
    listed = ", ".join(f'Sim::Action::"{action}"' for action in actions)
    return (
        f'@id("{name}") @reason("{name}")\npermit (principal is Amends::{who}, action in [{listed}], resource){when};\n'
    )


_FORWARD = tuple(c.capability for c in CONTRACTS if not c.corrects)
_UNDOS = tuple(f"{c.capability}.undo" for c in CONTRACTS if c.compensation)
_BY_YES = " when { context has approval && context.approval.tier >= 1 }"


def _policies(undos: Iterable[str]) -> str:
    return "".join(
        (
            _permit("sim:calls", "Agent", _FORWARD),
            _permit("sim:undos", "Service", undos),
            _permit("sim:out", "Service", (f"{OUT.capability}.release",)),
            _permit("sim:ask", "Service", (f"{ASK.capability}.release",), _BY_YES),
            _permit("sim:gate", "Service", (f"{GATE.capability}.release",), _BY_YES),
        )
    )


_NOTES = """
@id("note:correct") @reason("recovery tells people")
permit (principal is Amends::Service, action == Note::Action::"note.correct.correct", resource);
"""


@cache
def _loaded(*, strict: bool) -> CedarAuthorizer:
    undos = tuple(name for name in _UNDOS if not (strict and name.startswith(PROBEABLE.capability)))
    return CedarAuthorizer.load(
        contracts=CONTRACTS,
        contributions={
            "sim": PolicyContribution({"sim.cedar": _policies(undos)}),
            "note": PolicyContribution({"note.cedar": _NOTES}),
        },
        site_bundle=None,
        known_labels={},
    )


class SwitchingPolicy:
    """The real authorizer over one of two bundles; the stricter one lets nobody take back what is only probeable."""

    def __init__(self) -> None:
        self.strict = False

    def decide(self, request: AuthorizationRequest) -> Decision:
        return _loaded(strict=self.strict).decide(request)

    def bundle(self) -> PolicyBundle:
        return _loaded(strict=self.strict).bundle()
