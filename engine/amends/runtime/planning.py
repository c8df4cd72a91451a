"""Planning a run before its first call: what each step is, who reads it, how it is undone (DESIGN section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from amends.core.contract import Contract
from amends.core.errors import InvalidInput
from amends.runtime.kit import Catalog

StepClass: TypeAlias = Literal["read", "reversible", "compensatable", "irreversible"]


@dataclass(frozen=True, slots=True)
class Step:
    """One intended call: a label, its capability, and the labels whose outputs it needs."""

    label: str
    capability: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A classified step; `when` says if it runs at once, waits in the outbox or at a gate."""

    label: str
    capability: str
    step_class: StepClass
    readers: str
    undo: str
    undo_cost: str
    when: Literal["at_once", "outbox", "gate"]
    order: int


def classify(catalog: Catalog, steps: Sequence[Step]) -> tuple[PlannedStep, ...]:
    """Every step classified, in order. Raises `InvalidInput` or `UnknownName`."""
    contracts: dict[str, Contract] = {}
    for step in steps:
        if not step.label:
            raise InvalidInput(f"a step of `{step.capability}` has no label", hint="name what it is for")
        if step.label in contracts:
            raise InvalidInput(f"two steps are called `{step.label}`", hint="name each differently")
        contract = catalog.get(step.capability).contract
        _refuse_early_needs(step, contracts)
        contracts[step.label] = contract
    return tuple(_planned(step, contracts[step.label], n) for n, step in enumerate(steps, start=1))


def _refuse_early_needs(step: Step, earlier: dict[str, Contract]) -> None:
    for need in step.needs:
        contract = earlier.get(need)
        if contract is None:
            raise InvalidInput(f"step `{step.label}` needs `{need}`, which is not before it", hint="order the steps")
        if contract.release is not None and contract.release.mode != "gate":
            raise InvalidInput(
                f"step `{step.label}` needs the output of `{need}`, which waits in the outbox",
                hint="make it a gate, or do without its output",
            )


def _planned(step: Step, contract: Contract, order: int) -> PlannedStep:
    when: Literal["at_once", "outbox", "gate"] = "at_once"
    if contract.release is not None:
        when = "gate" if contract.release.mode == "gate" else "outbox"
    return PlannedStep(
        label=step.label,
        capability=step.capability,
        step_class=contract.reversibility if contract.consequential else "read",
        readers=f"{contract.readers.audience}: {contract.readers.where}",
        undo=", then ".join(rung.name for rung in contract.compensation) or "none",
        undo_cost=contract.undo_cost,
        when=when,
        order=order,
    )
