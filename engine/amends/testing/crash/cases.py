"""Which deaths and freezes the crash matrix consists of, what each must leave, and which points a mode lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from amends.ports.services import Milestone
from amends.testing.crash.gaps import KitPoint, Point

Mode: TypeAlias = Literal["forward", "recovery", "release"]
How: TypeAlias = Literal["kill", "freeze"]
MODES: tuple[Mode, ...] = get_args(Mode)
HOWS: tuple[How, ...] = get_args(How)
RECOVERERS = (1, 3)
POINTS: tuple[Point, ...] = (*get_args(Milestone), *get_args(KitPoint))
CALLS = 4  # of an agent's run; one that releases makes a fifth
_CONFIRMED = (1, 2, 4)  # the calls that are confirmed by a read: the carrier's answer is proof by itself

_EACH_CALL = (1, 2, 3, 4)
_BESIDE: dict[Point, tuple[int, ...]] = {  # where the kit announces a point itself, at work and in recovery
    "before_authorize": (1, 4),
    "after_authorize": (1, 4),
    "before_renewal": (2,),
    "after_renewal": (2,),
    "before_mirror": (2,),
    "in_mirror": (2,),
    "after_mirror": (2,),
    "before_seal": (2,),
    "in_seal": (2,),
    "after_seal": (2,),
    "in_checkpoint": (1,),
}
_NTHS: dict[Mode, dict[Point, tuple[int, ...]]] = {
    "forward": {
        "before_intent": _EACH_CALL,
        "after_intent": _EACH_CALL,
        "before_call": _EACH_CALL,
        "after_last_check": _EACH_CALL,
        "after_call": _EACH_CALL,
        "before_outcome": _EACH_CALL,
        "after_outcome": _EACH_CALL,
        "before_probe": (1, 2, 3),
        "after_probe": (1, 2, 3),
        **_BESIDE,
    },
    "recovery": {
        "after_freeze": (1,),
        "after_plan": (1, 2, 3),
        "before_probe": (1, 2, 3),  # an unknown outcome, before an undo, after it
        "after_probe": (1, 2, 3),
        "before_undo": (1, 4),
        "after_last_check": (1, 2, 3, 4, 5),  # four undos and the note
        "before_verify": (1, 4),
        "after_verify": (1, 4),
        "after_undo": (1, 4),
        "before_correction": (1,),
        "before_call": (1,),
        "after_call": (1,),
        "before_outcome": (1,),
        "after_outcome": (1,),
        "after_correction": (1,),
        "settled": (1,),
        **_BESIDE,
    },
    "release": {
        "after_plan": (1, 2, 3),
        "before_release": (1,),
        "before_call": (5,),
        "after_last_check": (5,),
        "after_call": (5,),
        "before_outcome": (5,),
        "after_outcome": (5,),
        "before_probe": (4,),
        "after_probe": (4,),
        "settled": (1,),
        "before_authorize": (6,),
        "after_authorize": (6,),
        "before_approval": (1,),
        "after_approval": (1,),
        "before_renewal": (5,),
        "after_renewal": (5,),
        "before_mirror": (5,),
        "in_mirror": (5,),
        "after_mirror": (5,),
        "before_seal": (5,),
        "in_seal": (5,),
        "after_seal": (5,),
        "in_checkpoint": (1,),
    },
}
_NOTHING_BACK = "nothing is taken back"
_NOBODY_TOLD = "nobody is told of what stands"
_NOBODY_ASKED = "nobody is asked: its calls can be taken back, and the policy allows that"
UNREACHED: dict[Mode, dict[Point, str]] = {
    "forward": {
        "after_freeze": "an agent at work freezes nothing",
        "after_plan": "plans are made by who recovers or releases",
        "before_undo": _NOTHING_BACK,
        "after_undo": _NOTHING_BACK,
        "before_verify": _NOTHING_BACK,
        "after_verify": _NOTHING_BACK,
        "before_release": "what cannot be taken back waits in the outbox",
        "before_correction": _NOBODY_TOLD,
        "after_correction": _NOBODY_TOLD,
        "settled": "a run settles in recovery or release",
        "before_approval": _NOBODY_ASKED,
        "after_approval": _NOBODY_ASKED,
    },
    "recovery": {
        "before_intent": "recovery makes no forward call; its intents follow before_undo and before_correction",
        "after_intent": "recovery makes no forward call; its intents follow before_undo and before_correction",
        "before_release": "recovery releases nothing",
        "before_approval": _NOBODY_ASKED,
        "after_approval": _NOBODY_ASKED,
    },
    "release": {
        "before_intent": "no new call is made; the item's intent follows before_release",
        "after_intent": "no new call is made; the item's intent follows before_release",
        "after_freeze": "a run that is released is not frozen by its driver",
        "before_undo": _NOTHING_BACK,
        "after_undo": _NOTHING_BACK,
        "before_verify": _NOTHING_BACK,
        "after_verify": _NOTHING_BACK,
        "before_correction": _NOBODY_TOLD,
        "after_correction": _NOBODY_TOLD,
    },
}
_BEFORE_THE_CALL = frozenset[Point](
    {"before_authorize", "after_authorize", "before_intent", "after_intent", "before_call", "after_last_check"}
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Effects of one run at the systems' own side."""

    made: int = 0  # ever, at the partner
    left: int = 0  # there in the end
    notes: int = 0  # to people, that something was taken back

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.made + other.made, self.left + other.left, self.notes + other.notes)


@dataclass(frozen=True, slots=True)
class Case:
    """One process stopped at the `nth` announcement of a point, and so many others that recover."""

    mode: Mode
    point: Point
    how: How
    recoverers: int
    nth: int

    @property
    def name(self) -> str:
        """Also the order's number."""
        return f"{self.mode}-{self.point}-{self.nth}-{self.how}-{self.recoverers}".replace("_", "-")

    @property
    def honest(self) -> bool:
        """True for what no ledger can stop: frozen after the last check, it wakes up and sends."""
        return self.how == "freeze" and self.point == "after_last_check"

    @property
    def family(self) -> str:
        """What a point of the kit's own is about: `mirror`, `approval`, …"""
        return self.point.partition("_")[2] if self.point in get_args(KitPoint) else ""

    @property
    def locked(self) -> bool:
        """True if who is stopped holds the journal's lock, at the checkpoint of its end."""
        return self.family == "checkpoint"

    @property
    def expected(self) -> Counts:
        """What the systems must show in the end, if nothing was sent that no ledger can stop."""
        if self.mode == "release":
            return Counts(made=CALLS + 1, left=CALLS + 1)
        if self.mode == "recovery":
            return Counts(made=CALLS, notes=1)
        call = _CONFIRMED[self.nth - 1] if self.point in {"before_probe", "after_probe"} else self.nth
        if self.locked:
            call = CALLS  # it is at its end
        made = call - 1 if self.point in _BEFORE_THE_CALL else call
        return Counts(made=made, notes=int(made == CALLS))


_FOUND = (  # a woken process's answer was held against what had become of its call since
    Case("forward", "after_call", "freeze", 1, 4),
    Case("recovery", "before_call", "freeze", 1, 1),
    Case("release", "before_call", "freeze", 3, 5),
)


def all_cases() -> Iterator[Case]:
    """The whole matrix."""
    for mode in MODES:
        for point, nths in _NTHS[mode].items():
            for nth in nths:
                yield from (Case(mode, point, how, n, nth) for how in HOWS for n in RECOVERERS)


def kind_of(point: Point) -> str:
    """What a point is about: `call` for `before_call` and `after_call`."""
    return point.partition("_")[2] or point


def short_cases() -> Iterator[Case]:
    """Each kind of point once, in turn in each mode that has it, before and after it, killed and frozen, with one
    recoverer and with three; and those that once showed a difference, which stand for their own kind.
    """
    yield from _FOUND
    ways: list[tuple[How, int]] = [(how, n) for n in RECOVERERS for how in HOWS]
    kinds = dict.fromkeys(map(kind_of, POINTS)).keys() - {kind_of(case.point) for case in _FOUND}
    for turn, kind in enumerate(sorted(kinds)):
        places: list[tuple[Mode, Point, int]] = [
            (m, p, nths[-1]) for m in MODES for p, nths in _NTHS[m].items() if kind_of(p) == kind
        ]
        how, recoverers = ways[turn % len(ways)]
        mode, point, nth = places[turn % len(places)]
        yield Case(mode, point, how, recoverers, nth)
