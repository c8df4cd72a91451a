"""Every hook, typed, in one file. Hooks only register; the objects they register behave.

A plugin module implements any of these with `@amends.spi.hookimpl`. Each hook gets the adapter's context (its
`[adapters.<name>]` section of `amends.toml`) and a `Registry` to hand objects to. The host calls the hooks in a
scratch manager: whatever a plugin raises, prints or exits with, the engine goes on without it and `doctor` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import pluggy

from amends.core.canonical import Json

if TYPE_CHECKING:
    from amends.ports.services import Notifier
    from amends.spi.capability import Capability

SPI_VERSION = "1.0"
PROJECT = "amends"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

CheckAnswer: TypeAlias = Literal["passed", "not_passed", "unknown"]


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """One `[adapters.<name>]` section. `secret` resolves the adapter's secret references at send time."""

    name: str  # the section's name
    instance: str  # tells two instances of a system apart
    tenant: str  # whose resources
    environment: str  # where it acts
    options: Mapping[str, Json]  # every further key of the section
    secret: Callable[[str], str]  # resolves a secret reference
    base_path: str  # relative paths in options are relative to this folder


@dataclass(frozen=True, slots=True)
class Check:
    """A success condition: `ask(run_id)` reads and answers; it never changes anything."""

    name: str  # as runs name it
    ask: Callable[[str], tuple[CheckAnswer, str]]  # `run_id` -> (`CheckAnswer`, detail); reads only


@dataclass(frozen=True, slots=True)
class PolicyContribution:
    """Default least-privilege policies and tests of an adapter, by path; own namespace only."""

    policies: Mapping[str, str] = field(default_factory=dict[str, str])  # file name -> Cedar text
    tests: Mapping[str, str] = field(default_factory=dict[str, str])  # file name -> policy tests as JSON


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of `amends doctor`."""

    level: Literal["ok", "warning", "problem"]  # `ok`, `warning`, `problem`
    subject: str  # what was examined
    message: str  # what was found
    remedy: str = ""  # what to do


class Registry(Protocol):
    """Where hooks hand objects over. Raises `ConfigError` for a name that is taken."""

    def capability(self, capability: Capability) -> None:
        """Offer a capability."""
        ...

    def check(self, check: Check) -> None:
        """Offer a success check."""
        ...

    def policies(self, contribution: PolicyContribution) -> None:
        """Contribute default policies."""
        ...

    def notifier(self, notifier: Notifier) -> None:
        """Offer a way to reach people."""
        ...

    def doctor(self, examine: Callable[[], list[DoctorFinding]]) -> None:
        """Offer an examination for `amends doctor`: read-only, bounded."""
        ...


@hookspec
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Register the adapter's capabilities. Called once per configured adapter, before any run."""


@hookspec
def amends_register_checks(context: AdapterContext, registry: Registry) -> None:
    """Register success checks."""


@hookspec
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Register default policies and their tests."""


@hookspec
def amends_register_notifiers(context: AdapterContext, registry: Registry) -> None:
    """Register notifiers."""


@hookspec
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """Register examinations for `amends doctor`."""
