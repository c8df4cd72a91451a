"""Registration: contracts that are refused, with the reason in words ("can't write the undo, don't get the tool")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import Formatter

from amends.core.contract import Contract
from amends.core.errors import ConfigError
from amends.core.status import Outcome


def refusals(contract: Contract) -> tuple[str, ...]:
    """Every reason not to register `contract`; empty if it may be registered (DESIGN section 4)."""
    return tuple(_refusals(contract))


def check(contracts: Iterable[Contract]) -> None:
    """Raise one `ConfigError` that lists every refusal of every contract, and names that clash across phases."""
    found: dict[str, list[str]] = {}
    phases: dict[str, str] = {}
    for contract in contracts:
        reasons = list(_refusals(contract))
        for name, phase in contract.action_names().items():
            other = phases.setdefault(name, phase)
            if other != phase:
                reasons.append(f"policy action `{name}` would be both `{other}` and `{phase}`")
        if reasons:
            found.setdefault(contract.capability, []).extend(reasons)
    if found:
        text = "; ".join(f"`{name}`: {', '.join(reasons)}" for name, reasons in sorted(found.items()))
        raise ConfigError(f"refused contracts: {text}", hint="complete the contract or drop the tool", refused=found)


def _refusals(contract: Contract) -> Iterator[str]:
    if contract.corrects:
        yield from _corrector(contract)
        return
    if not contract.consequential:
        return
    yield from _ways_back(contract)
    yield from _people(contract)
    yield from _inverses(contract)
    if contract.keying.kind == "probeable" and contract.probe is None:
        yield "keying is `probeable` but there is no probe"
    if contract.confirm == "probe" and contract.probe is None:
        yield "success is confirmed by a probe but there is no probe"
    if contract.restores_before_image and contract.effect.changes != "sets":
        yield "`restores_before_image` belongs to an effect that `sets` a state"
    if contract.identity.value_fields and contract.identity.cardinality != "many":
        yield "`value_fields` need cardinality `many`"


def _corrector(contract: Contract) -> Iterator[str]:
    """A correction is what stays: it has no undo and no outbox, and its posting is found again or never repeated."""
    if not contract.consequential:
        yield "a corrector posts something: its effect `changes` cannot be `none`"
    if contract.compensation or contract.release is not None:
        yield "a correction is neither undone nor queued: drop its compensation and release"
    if contract.probe is None and contract.keying.kind != "blind":
        yield f"keying is `{contract.keying.kind}` but there is no probe that finds the posting again"


def _ways_back(contract: Contract) -> Iterator[str]:
    if contract.irreversible:
        if contract.release is None:
            yield "irreversible without a release: it must leave through the outbox or a gate"
        return
    if all(rung.undo in {"escalate", "correct"} for rung in contract.compensation):
        yield "no undo: register a compensation, or declare it irreversible and send it through the outbox"
    if contract.probe is None:
        yield "no way to verify the undo: declare a probe"
    if contract.release is not None:
        yield "only irreversible calls are released from the outbox"
    if contract.effect.changes == "sets" and not contract.restores_before_image:
        yield "a state-setting effect needs a before-image to restore"


def _people(contract: Contract) -> Iterator[str]:
    if contract.readers.audience in {"customer", "partner"} and not contract.irreversible:
        yield f"`{contract.readers.audience}` readers make it irreversible: what they read cannot be unread"
    if contract.readers.audience != "machine" and contract.signal is None:
        yield "people can see it, so it needs a complete signal (place, what they saw, what they must do)"


def _inverses(contract: Contract) -> Iterator[str]:
    names: set[str] = set()
    for alternative in contract.compensation:
        if alternative.name in names:
            yield f"two alternatives are called `{alternative.name}`"
        names.add(alternative.name)
        if alternative.authority == contract.capability:
            yield f"alternative `{alternative.name}` uses the forward name as its authority"
        if alternative.authority in {f"{contract.capability}.{phase}" for phase in ("probe", "release", "correct")}:
            yield f"alternative `{alternative.name}` uses the name of another phase as its authority"
        if Outcome.UNKNOWN in alternative.safe_when and not (contract.probe and alternative.harmless_when_absent):
            yield f"alternative `{alternative.name}` is safe when `unknown` only with a probe and a harmless inverse"
        if Outcome.NONE in alternative.safe_when:
            yield f"alternative `{alternative.name}`: `none` is not a forward outcome"


def template_fields(template: str) -> tuple[str, ...]:
    """The argument names a template such as `branch:{repo}/{name}` uses."""
    return tuple(field for _, field, _, _ in Formatter().parse(template) if field)
