"""What the host hands over: adapters adopted whole, and what was wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from amends.core.contract import Contract
from amends.ports.services import Notifier
from amends.spi import AdapterContext, Capability, Check, DoctorFinding, PolicyContribution

Stage: TypeAlias = Literal["find", "import", "version", "hooks", "register", "contracts", "adopt", "policies"]


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """Why an adapter is not there. `name` is its section `[adapters.<name>]`; `distribution` may be empty."""

    name: str
    distribution: str
    stage: Stage
    message: str
    remedy: str

    def __str__(self) -> str:
        where = f" ({self.distribution})" if self.distribution else ""
        return f"adapter `{self.name}`{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Offered:
    """A capability and the configured adapter that offers it."""

    capability: Capability
    context: AdapterContext

    @property
    def contract(self) -> Contract:
        """What it declares."""
        return self.capability.contract


@dataclass(frozen=True, slots=True)
class Examination:
    """An adapter's part of `amends doctor`: run it through `examine`."""

    adapter: str
    ask: Callable[[], list[DoctorFinding]]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter, whole. `prefix` is where its policies live: `git` for `Git::…` and ids `git:…`."""

    name: str
    plugin: str
    distribution: str
    version: str
    context: AdapterContext
    prefix: str
    offers: tuple[Offered, ...] = ()
    checks: tuple[Check, ...] = ()
    contribution: PolicyContribution | None = None
    notifiers: tuple[Notifier, ...] = ()
    examinations: tuple[Examination, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """Adapters in name order, and a problem for each that is not among them."""

    adapters: tuple[Adapter, ...] = ()
    problems: tuple[PluginProblem, ...] = ()

    @property
    def offers(self) -> tuple[Offered, ...]:
        """Every capability."""
        return tuple(offer for adapter in self.adapters for offer in adapter.offers)

    @property
    def checks(self) -> dict[str, Check]:
        """Every success check, by name."""
        return {check.name: check for adapter in self.adapters for check in adapter.checks}

    @property
    def contributions(self) -> Mapping[str, PolicyContribution]:
        """Default policies, by the prefix they live under."""
        return {a.prefix: a.contribution for a in self.adapters if a.contribution is not None}

    @property
    def owned_prefixes(self) -> Mapping[str, frozenset[str]]:
        """The capability prefixes each contributor may write policies for."""
        owned: dict[str, frozenset[str]] = {}
        for adapter in self.adapters:
            own = {offer.contract.capability.split(".", 1)[0] for offer in adapter.offers}
            owned[adapter.prefix] = frozenset(own or {adapter.prefix})
        return owned

    @property
    def notifiers(self) -> tuple[Notifier, ...]:
        """Every notifier that adapters bring."""
        return tuple(notifier for adapter in self.adapters for notifier in adapter.notifiers)

    @property
    def examinations(self) -> tuple[Examination, ...]:
        """Every examination for `amends doctor`."""
        return tuple(examination for adapter in self.adapters for examination in adapter.examinations)

    def without(self, names: Mapping[str, PluginProblem]) -> Loaded:
        """The same without the adapters in `names`, each with its problem."""
        kept = tuple(adapter for adapter in self.adapters if adapter.name not in names)
        return Loaded(kept, (*self.problems, *names.values()))

    def only(self, names: Collection[str]) -> Loaded:
        """The adapters and problems of the sections `names`."""
        return Loaded(
            tuple(adapter for adapter in self.adapters if adapter.name in names),
            tuple(problem for problem in self.problems if problem.name in names),
        )


@dataclass
class Registered:
    """What an adapter's hooks handed over so far."""

    capabilities: list[Capability] = field(default_factory=list[Capability])
    checks: list[Check] = field(default_factory=list[Check])
    policies: dict[str, str] = field(default_factory=dict[str, str])
    tests: dict[str, str] = field(default_factory=dict[str, str])
    notifiers: list[Notifier] = field(default_factory=list[Notifier])
    examinations: list[Callable[[], list[DoctorFinding]]] = field(
        default_factory=list[Callable[[], list[DoctorFinding]]]
    )
