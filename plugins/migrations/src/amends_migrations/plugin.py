"""The hooks of the migrations adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends_migrations import contracts
from amends_migrations.examine import examine
from amends_migrations.moves import MoveSchema
from amends_migrations.options import options_of

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Both directions, over the databases of the section."""
    options = options_of(context)
    registry.capability(MoveSchema(contracts.upgrade(options), options, up=True))
    registry.capability(MoveSchema(contracts.downgrade(options), options, up=False))


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Migrations`."""
    del context
    folder = files("amends_migrations") / "policies"
    registry.policies(
        PolicyContribution(
            policies={"migrations.cedar": (folder / "migrations.cedar").read_text(encoding="utf-8")},
            tests={"migrations.policytest.json": (folder / "migrations.policytest.json").read_text(encoding="utf-8")},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """Every database and its scripts."""
    options = options_of(context)
    registry.doctor(lambda: examine(options, context.secret))
