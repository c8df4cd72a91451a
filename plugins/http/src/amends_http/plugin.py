"""The hooks of the http adapter. They only register."""

from __future__ import annotations

from collections.abc import Iterator

from amends.spi import (
    AdapterContext,
    ConfigError,
    Contract,
    DoctorFinding,
    PolicyContribution,
    Registry,
    hookimpl,
)
from amends.spi.http import HttpSender
from amends_http.declaration import Declaration
from amends_http.examine import examine
from amends_http.loading import known_values, load_declarations
from amends_http.messages import Messages
from amends_http.operation import PartnerOperation
from amends_http.policies import default_policies, default_tests
from amends_http.settings import HttpSettings, contract_folder, read_settings

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """One capability `<adapter>.<name>` per contract file."""
    settings = read_settings(context)
    messages = Messages(settings, context.secret)
    sender = HttpSender(ca_file=settings.ca_file, proxy=settings.proxy)
    for declaration, contract, values in _operations(context, settings):
        registry.capability(PartnerOperation(declaration, contract, values, messages, sender))


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default policies, unless the adapter says `default_policies = false`."""
    settings = read_settings(context)
    if not settings.default_policies:
        return
    operations = [(declaration, contract) for declaration, contract, _ in _operations(context, settings)]
    registry.policies(
        PolicyContribution(
            policies={f"{context.name}.cedar": default_policies(context.name, operations)},
            tests={f"{context.name}.policytest.json": default_tests(context.name, operations)},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """The partner answers, and the secret resolves."""
    settings = read_settings(context)

    def look() -> list[DoctorFinding]:
        return examine(
            context.name, settings, context.secret, HttpSender(ca_file=settings.ca_file, proxy=settings.proxy)
        )

    registry.doctor(look)


def _operations(
    context: AdapterContext, settings: HttpSettings
) -> Iterator[tuple[Declaration, Contract, dict[str, str]]]:
    for file, declaration in load_declarations(contract_folder(settings, context)).items():
        values = known_values(file, declaration, settings.scope())
        try:
            contract = declaration.contract(context.name, values)
        except ValueError as error:
            raise ConfigError(
                f"contract file `{file}` makes no contract for the adapter `{context.name}`: {error}",
                hint="adapter and operation names are lower-case words joined by `_`",
            ) from None
        yield declaration, contract, values
