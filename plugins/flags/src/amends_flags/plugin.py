"""The hooks of the flags adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends.spi.http import HttpSender
from amends_flags.lifecycle import ArchiveFlag, CreateFlag
from amends_flags.options import UnleashOptions, read_options
from amends_flags.port import FlagPlace
from amends_flags.strategy import SetStrategy
from amends_flags.switch import SetFlag
from amends_flags.unleash import Unleash
from amends_flags.variants import SetVariants

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """`flags.set`, `flags.strategy`, `flags.variants`, `flags.create`, `flags.archive`."""
    place = _place(context)
    for capability in (SetFlag, SetStrategy, SetVariants, CreateFlag, ArchiveFlag):
        registry.capability(capability(place))


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Flags`, with their tests."""
    del context
    folder = files("amends_flags") / "policies"
    registry.policies(
        PolicyContribution(
            policies={"flags.cedar": (folder / "flags.cedar").read_text(encoding="utf-8")},
            tests={"flags.policytest.json": (folder / "flags.policytest.json").read_text(encoding="utf-8")},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """Whether the place can be read, and is the project and environment that are meant."""
    registry.doctor(_place(context).examine)


def _place(context: AdapterContext) -> FlagPlace:
    """Where this adapter's flags live."""
    options = read_options(context)
    if isinstance(options, UnleashOptions):
        return Unleash(options, context.secret, HttpSender(ca_file=options.ca_file, proxy=options.proxy))
    from amends_flags.flagd import Flagd  # noqa: PLC0415 - file locks, which not every system has

    return Flagd(options)
