"""What a campaign of kills and freezes came to, and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from rich.table import Table

from amends.testing.crash.campaign import Frozen
from amends.testing.crash.killer import Death
from amends.testing.crash.worker import BOX, FEE, calls_of

Kind: TypeAlias = Literal["keyed", "probeable", "neither"]
Cause: TypeAlias = Literal["kill", "freeze", "between"]  # `between`: frozen between the last check and the first byte
KINDS: tuple[Kind, ...] = get_args(Kind)
_KIND_OF_CALL: dict[str, Kind] = {
    "partner.set_carrier_instructions": "probeable",
    "partner.reserve_packaging": "probeable",
    "partner.book_fee": "neither",
}


def kind_of(effect: dict[str, Any]) -> Kind:
    """What the system offered when this effect was made: a key, only a way to find it again, or neither."""
    if effect["kind"] in {"carrier_instructions", "message"} or effect["resource"].endswith(BOX):
        return "probeable"
    return "neither" if effect["resource"].endswith(FEE) else "keyed"


def kind_of_call(number: int) -> Kind:
    """The same for the `number`th call of a run."""
    return _KIND_OF_CALL.get(calls_of("any", wide=True)[number - 1][0], "keyed")


@dataclass
class Control:
    """The same orders without a ledger, killed at random and placed again."""

    kills: int = 0
    orders: int = 0
    expected: int = 0
    seen: int = 0
    duplicates: int = 0


@dataclass
class Chaos:
    """Everything that was stopped, and what the systems and the ledger showed afterwards."""

    seed: int
    jobs: int
    deaths: list[Death]
    frozen: list[Frozen]
    slept: list[Death]  # of those who recover, frozen
    made: Counter[Kind] = field(default_factory=Counter[Kind])
    twice: Counter[tuple[Kind, Cause]] = field(default_factory=Counter[tuple[Kind, Cause]])
    undone_twice: list[str] = field(default_factory=list[str])
    stays: list[str] = field(default_factory=list[str])  # of what was frozen between check and send
    differences: list[str] = field(default_factory=list[str])
    asked: Counter[str] = field(default_factory=Counter[str])
    orders: int = 0
    runs: int = 0
    events: int = 0
    seconds: float = 0.0
    control: Control = field(default_factory=Control)

    @property
    def sound(self) -> bool:
        """True if nothing is there twice that a key or a look could have kept from it, the ledger and the systems
        agree, and the control fails. What woke up between check and send may stand beside what a later run has made
        under a key of its own; twice under one key is a difference all the same.
        """
        kept = [n for (_, cause), n in self.twice.items() if cause != "between"]
        return not (any(kept) or self.undone_twice or self.differences) and self.control.duplicates > 0


def tables_of(chaos: Chaos) -> Iterable[Table]:
    """Who was stopped where; effects by kind of system; what no ledger can stop; the control."""
    yield _stopped(chaos)
    yield _effects(chaos)
    yield _between(chaos)


def _stopped(chaos: Chaos) -> Table:
    table = Table(title="stopped: processes by where they were")
    table.add_column("phase", no_wrap=True)
    for name in ("kills", "agents", "rescuers", "held", "at random", "freezes", "agents", "rescuers"):
        table.add_column(name, justify="right", no_wrap=True)
    frozen = [*(f.where for f in chaos.frozen), *chaos.slept]
    for gap in sorted({d.gap for d in [*chaos.deaths, *frozen]}):
        table.add_row(gap, *_row([d for d in chaos.deaths if d.gap == gap], [d for d in frozen if d.gap == gap]))
    table.add_section()
    table.add_row("all", *_row(chaos.deaths, frozen))
    return table


def _row(deaths: Sequence[Death], frozen: Sequence[Death]) -> list[str]:
    agents = sum(d.name.startswith("agent") for d in deaths)
    random = sum(d.how == "at random" for d in deaths)
    asleep = sum(d.name.startswith("agent") for d in frozen)
    numbers = (
        *(len(deaths), agents, len(deaths) - agents, len(deaths) - random, random),
        *(len(frozen), asleep, len(frozen) - asleep),
    )
    return [str(number) for number in numbers]


def _effects(chaos: Chaos) -> Table:
    table = Table(title="effects, counted at the systems' own side")
    table.add_column("the system offers", no_wrap=True)
    for name in ("effects made", "twice under kills", "twice under freezes"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in KINDS:
        twice = chaos.twice[kind, "kill"], chaos.twice[kind, "freeze"]
        table.add_row(kind, str(chaos.made[kind]), *map(str, twice))
    control = chaos.control
    said = f"{control.duplicates} after {control.kills} kills"
    table.add_row("no ledger (control)", f"{control.seen} for {control.expected}", said, "", style="red")
    return table


def _between(chaos: Chaos) -> Table:
    table = Table(title="frozen between the last check and the first byte, taken over, woken")
    table.add_column("the system offers", no_wrap=True)
    for name in ("frozen there", "took effect on waking", "twice"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in KINDS:
        mine = [f for f in chaos.frozen if f.between is not None and kind_of_call(f.between) == kind]
        late = sum(bool(f.late) for f in mine)
        table.add_row(kind, str(len(mine)), str(late), str(chaos.twice[kind, "between"]))
    return table
