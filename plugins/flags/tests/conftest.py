"""A flag server over real sockets, the flags adapter on it, and calls as the engine makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from amends.core.canonical import Json, normalise_map
from amends.spi import AdapterContext, Call, Capability, DoctorFinding, Observation, PolicyContribution
from amends.testing.loopback import LoopbackSystem
from amends_flags import plugin

TOKENS = {"env:TOKEN": "*:*.unleash-admin", "env:BAD": "nobody-canary"}


@dataclass
class Shelf:
    """What the hooks registered."""

    capabilities: dict[str, Capability] = field(default_factory=dict)
    contributions: list[PolicyContribution] = field(default_factory=list)
    examinations: list[Callable[[], list[DoctorFinding]]] = field(default_factory=list)

    def capability(self, capability: Capability) -> None:
        self.capabilities[capability.contract.capability] = capability

    def policies(self, contribution: PolicyContribution) -> None:
        self.contributions.append(contribution)

    def doctor(self, examine: Callable[[], list[DoctorFinding]]) -> None:
        self.examinations.append(examine)


def context(url: str, **options: Json) -> AdapterContext:
    given: dict[str, Json] = {"base_url": url, "token": "env:TOKEN", "tell": "person:maya", **options}
    if options.get("backend") == "flagd":
        given = {name: value for name, value in given.items() if name not in {"base_url", "token"}}
    return AdapterContext("flags", "flags", "acme", "staging", given, TOKENS.__getitem__, ".")


def load(where: AdapterContext) -> Shelf:
    shelf = Shelf()
    plugin.amends_register_capabilities(where, shelf)
    plugin.amends_register_policies(where, shelf)
    plugin.amends_register_doctor(where, shelf)
    return shelf


@dataclass
class Driver:
    """Calls a capability the way the engine does, and remembers what the engine would record."""

    capability: Capability
    args: Mapping[str, Any]
    action: str = "act-1"
    action_id: str = ""  # a twin's own id: it is looked up under the marker of the action it is a twin of
    timeout_seconds: float = 3.0
    before: dict[str, Json] = field(default_factory=dict)
    after: dict[str, Json] = field(default_factory=dict)
    effect: dict[str, Json] = field(default_factory=dict)
    reference: str = ""

    def call(self, rung: str = "", observed: Observation | None = None, undo: str = "undo-1", **changes: Any) -> Call:
        arguments = self.capability.arguments.model_validate(dict(self.args)).model_dump(mode="json")
        known: dict[str, Any] = {
            "run_id": "run-1",
            "action_id": self.action_id or self.action,
            "marker": self.action,
            "idempotency_key": f"key-{self.action}",
            "args": normalise_map(arguments),
            "before": self.before,
            "allocated": {},
            "effect": self.effect,
            "after": self.after,
            "reference": self.reference,
            "attempt": 1,
            "sent_at_us": None,
            "timeout_seconds": self.timeout_seconds,
            "secret": {"env:CARD": "card-canary"}.__getitem__,
            "deadline_us": 0,
            "still_wanted": lambda: True,
            "rung": rung,
            "undo_key": f"key-{undo}",
            "undo_marker": undo,
            "observed": observed,
        }
        return Call(**{**known, **changes})

    def prepare(self) -> None:
        self.before = normalise_map(dict(self.capability.prepare(self.call()).before))

    def do(self) -> Any:
        self.prepare()
        receipt = self.capability.do(self.call())
        self.reference = receipt.reference
        self.effect = normalise_map(dict(receipt.effect))
        self.after = normalise_map(dict(getattr(receipt, "after", {})))
        return receipt

    def probe(self) -> Observation:
        return self.capability.probe(self.call())

    def undo(self, rung: str, **changes: Any) -> Any:
        return self.capability.undo(self.call(rung, self.probe(), **changes))

    def verify(self) -> Observation:
        return self.capability.verify_undone(self.call())


@pytest.fixture
def unleash() -> Iterator[LoopbackSystem]:
    with LoopbackSystem.start("unleash") as system:
        system.control(
            "seed_flag",
            name="billing",
            description="the billing field",
            environments={
                "staging": {"enabled": True, "strategies": [{"name": "default", "title": "beta testers"}]},
                "production": {"enabled": True, "strategies": [{"name": "default", "title": "everybody"}]},
            },
        )
        system.control("seed_flag", name="fresh")
        yield system
        assert system.unfired() == [], "a fault that was armed never fired"


@pytest.fixture
def shelf(unleash: LoopbackSystem) -> Shelf:
    return load(context(unleash.url))


@pytest.fixture
def driver(shelf: Shelf) -> Callable[..., Driver]:
    def make(name: str, action: str = "act-1", **args: Any) -> Driver:
        return Driver(shelf.capabilities[f"flags.{name}"], args, action)

    return make


@pytest.fixture
def driver_of() -> Callable[..., Driver]:
    return Driver


@pytest.fixture
def adapter() -> Callable[..., Shelf]:
    def make(url: str = "http://127.0.0.1:9", **options: Json) -> Shelf:
        return load(context(url, **options))

    return make
