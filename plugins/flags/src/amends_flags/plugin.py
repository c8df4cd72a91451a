"""The hooks of the flags adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, DoctorFinding, PolicyContribution, Registry, hookimpl
from amends.spi.http import HttpSender
from amends_flags.examine import examine
from amends_flags.lifecycle import ArchiveFlag, CreateFlag
from amends_flags.options import FlagOptions, read_options
from amends_flags.strategy import SetStrategy
from amends_flags.switch import SetFlag
from amends_flags.unleash import Unleash


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """`flags.set`, `flags.strategy`, `flags.create`, `flags.archive`."""
    options = read_options(context)
    unleash = Unleash(options, context.secret, _sender(options))
    for capability in (SetFlag(unleash), SetStrategy(unleash), CreateFlag(unleash), ArchiveFlag(unleash)):
        registry.capability(capability)


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
    """The credential, the project, the environment."""
    options = read_options(context)

    def look() -> list[DoctorFinding]:
        return examine(options, context.secret, _sender(options))

    registry.doctor(look)


def _sender(options: FlagOptions) -> HttpSender:
    return HttpSender(ca_file=options.ca_file, proxy=options.proxy)
