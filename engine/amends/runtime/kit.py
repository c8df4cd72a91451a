"""What the runtime works with: the wired ports, the catalog of capabilities, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from amends.config import EngineSettings, PersonSettings
from amends.core.audit import ADAPTER_SUBJECT
from amends.core.contract import Contract
from amends.core.errors import ConfigError, UnknownName
from amends.core.rows import ActionRow, RunRow
from amends.core.schedule import microseconds
from amends.ports.archive import Archive
from amends.ports.authorizer import Authorizer
from amends.ports.journal import Journal
from amends.ports.services import Clock, Ids, Notifier, Owners, Progress, Secrets, Threads
from amends.spi.capability import Capability, Corrector
from amends.spi.hookspecs import AdapterContext, Check


@dataclass(frozen=True, slots=True)
class Offer:
    """A capability and the configured adapter that offers it."""

    capability: Capability
    context: AdapterContext
    distribution: str = ""  # whose adapter it is, with its version

    @property
    def contract(self) -> Contract:
        """The contract in force today."""
        return self.capability.contract

    def drill_subject(self, subject_digest: str) -> str:
        """What a drill certificate is about besides the contract: what `prepare` names; else the adapter as it is."""
        return subject_digest or f"{ADAPTER_SUBJECT}{self.distribution}"


class Catalog:
    """Every registered capability, and which URI scheme of a signal's place is served by which corrector. `remedy`: how
    a capability comes to be there.
    """

    def __init__(
        self,
        offers: Iterable[Offer] = (),
        *,
        remedy: str = "enable its adapter in amends.toml; `amends inventory` lists what is offered",
    ) -> None:
        self._remedy = remedy
        self._offers: dict[str, Offer] = {}
        self._correctors: dict[str, Offer] = {}
        for offer in offers:
            self._add(offer)

    def _add(self, offer: Offer) -> None:
        name = offer.contract.capability
        if name in self._offers:
            other = self._offers[name].context.name
            raise ConfigError(
                f"capability `{name}` is offered by adapters `{other}` and `{offer.context.name}`",
                hint="disable one of them in amends.toml",
            )
        self._offers[name] = offer
        if isinstance(offer.capability, Corrector):
            self._correctors.setdefault(offer.capability.scheme, offer)

    def get(self, name: str) -> Offer:
        """The offer called `name`. Raises `UnknownName` with the names there are."""
        try:
            return self._offers[name]
        except KeyError:
            raise UnknownName(
                f"no adapter offers `{name}`",
                hint=self._remedy,
                known=sorted(self._offers),
            ) from None

    def find(self, name: str) -> Offer | None:
        """The offer called `name`, if there is one."""
        return self._offers.get(name)

    def all(self) -> tuple[Offer, ...]:
        """Every offer, by name."""
        return tuple(self._offers[name] for name in sorted(self._offers))

    def corrector(self, place: str, of: Iterable[ActionRow]) -> Offer | None:
        """The corrector that serves a place such as `slack:C012/17.5`, where signals of these actions were seen.

        None also if one of them was made through the corrector's own adapter when it meant another system: the place
        of the same name there is not the one that people saw (rule 21).
        """
        offer = self._correctors.get(place.split(":", 1)[0])
        if offer is None:
            return None
        now = offer.context
        moved = any(
            (action.instance, action.environment) != (now.instance, now.environment)
            for action in of
            if action.adapter == now.name
        )
        return None if moved else offer

    @property
    def schemes(self) -> frozenset[str]:
        """The schemes of places that can be served."""
        return frozenset(self._correctors)

    def usable(self, action: ActionRow) -> bool:
        """True if today's adapter is the one an action was recorded with, and still accepts its contract (rule 21).

        An adapter that was given another instance or environment reaches another system: the action is not there.
        """
        offer = self._offers.get(action.contract.capability)
        if offer is None:
            return False
        if (offer.context.instance, offer.context.environment) != (action.instance, action.environment):
            return False
        now, then = offer.contract, action.contract  # asked for at every plan: no digest of the rest is made
        return now.effect == then.effect and now.probe == then.probe and now.compensation == then.compensation


@dataclass(frozen=True)
class Kit:
    """Everything the runtime needs, wired by `amends.bootstrap` (or by a test)."""

    journal: Journal
    authorizer: Authorizer
    clock: Clock
    ids: Ids
    secrets: Secrets
    owners: Owners
    progress: Progress
    threads: Threads
    catalog: Catalog
    digest_key: bytes
    tenant: str
    on_sandbox: bool = False  # nothing here is production: calls need no drill, for this is where drills are held
    default_owner: str = ""
    settings: EngineSettings = field(default_factory=EngineSettings)
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    check_seconds: Mapping[str, float] = field(default_factory=dict[str, float])  # how long configured ones may take
    people: Mapping[str, PersonSettings] = field(default_factory=dict[str, PersonSettings])
    agent_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notifiers: tuple[Notifier, ...] = ()
    archive: Callable[[], Archive] | None = None  # where sealed runs are read from; built when first needed
    service: str = "recovery"

    def person(self, name: str) -> PersonSettings:
        """Who decides. Raises `UnknownName` for anybody who is no person of the project."""
        try:
            return self.people[name]
        except KeyError:
            raise UnknownName(
                f"`{name}` is not a person of this project", hint="add `[people.<name>]` with roles and tier"
            ) from None

    def ledger_now_us(self, run: RunRow) -> int:
        """Ledger time: the clock's, but never before what the run has recorded (rule 4)."""
        return max(self.clock.now_us(), run.ledger_us)

    @property
    def skew_us(self) -> int:
        """Clock skew allowed between hosts, microseconds."""
        return microseconds(self.settings.skew_seconds)

    @property
    def lease_us(self) -> int:
        """Length of a lease, microseconds."""
        return microseconds(self.settings.lease_seconds)
