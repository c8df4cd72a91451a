"""The register object hooks are given: it takes what fits and refuses the rest in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from pydantic import BaseModel

from amends.backends.plugin_host.values import Registered
from amends.core.contract import Contract
from amends.core.errors import ConfigError
from amends.ports.services import Notifier
from amends.spi import Capability, Check, DoctorFinding, PolicyContribution


class AdapterRegistry:
    """`amends.spi.Registry` for one adapter. Raises `ConfigError` for a name that is taken or an object that is not
    what the hook promises.
    """

    def __init__(self, adapter: str) -> None:
        self._adapter = adapter
        self.registered = Registered()

    def capability(self, capability: Capability) -> None:
        contract = getattr(capability, "contract", None)
        arguments = getattr(capability, "arguments", None)
        if not _is(capability, Capability) or not _is(contract, Contract):
            raise self._wrong(capability, "a `Capability` with a `contract`")
        if not isinstance(arguments, type) or not issubclass(arguments, BaseModel):
            raise self._wrong(capability, "a `Capability` whose `arguments` is a pydantic model")
        if any(other.contract.capability == capability.contract.capability for other in self.registered.capabilities):
            raise self._taken("capability", capability.contract.capability)
        self.registered.capabilities.append(capability)

    def check(self, check: Check) -> None:
        if not _is(check, Check):
            raise self._wrong(check, "a `Check`")
        if any(other.name == check.name for other in self.registered.checks):
            raise self._taken("check", check.name)
        self.registered.checks.append(check)

    def policies(self, contribution: PolicyContribution) -> None:
        if not _is(contribution, PolicyContribution):
            raise self._wrong(contribution, "a `PolicyContribution`")
        for path in (*contribution.policies, *contribution.tests):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ConfigError(
                    f"policy file `{path}` leaves the adapter's own folder",
                    hint="use a relative path such as `x.cedar`",
                )
            if path in self.registered.policies or path in self.registered.tests:
                raise self._taken("policy file", path)
        self.registered.policies.update(contribution.policies)
        self.registered.tests.update(contribution.tests)

    def notifier(self, notifier: Notifier) -> None:
        if not callable(getattr(notifier, "deliver", None)) or not getattr(notifier, "name", ""):
            raise self._wrong(notifier, "a `Notifier` with `name` and `deliver`")
        if any(other.name == notifier.name for other in self.registered.notifiers):
            raise self._taken("notifier", notifier.name)
        self.registered.notifiers.append(notifier)

    def doctor(self, examine: Callable[[], list[DoctorFinding]]) -> None:
        if not callable(examine):
            raise self._wrong(examine, "a function that returns findings")
        self.registered.examinations.append(examine)

    def _taken(self, kind: str, name: str) -> ConfigError:
        return ConfigError(f"{kind} `{name}` is registered twice", hint="give the second one another name")

    def _wrong(self, value: object, wanted: str) -> ConfigError:
        return ConfigError(
            f"adapter `{self._adapter}` registered a `{type(value).__name__}`, not {wanted}",
            hint="see amends.spi.hookspecs for what each hook may register",
        )


def _is(value: object, kind: type) -> bool:
    """`isinstance`, for values that plugins hand over whatever their types say."""
    return isinstance(value, kind)
