"""Small ports: clock, ids, secrets, owners, notifiers, progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from amends.core.canonical import Json
from amends.core.events import Holder


class Clock(Protocol):
    """Time. `now_us` is wall time (microseconds since the epoch, UTC) and may jump; `monotonic` never does."""

    def now_us(self) -> int:
        """Wall time now."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Identifiers: time-ordered (UUIDv7), so that keys sort by registration."""

    def new(self) -> str:
        """A fresh id, greater than every earlier one of this process."""
        ...


class Secrets(Protocol):
    """Secret references, resolved at send and nowhere else (rule 10)."""

    def resolve(self, reference: str) -> str:
        """The value behind `env:NAME` or `file:PATH`. Raises `ConfigError` naming the reference, never the value."""
        ...

    def revealed(self) -> frozenset[str]:
        """Every value resolved so far, for redaction."""
        ...


class Owners(Protocol):
    """Proof of life and death of drivers on this host, by flocked owner files (rule 12)."""

    def me(self) -> Holder:
        """This process. Raises `CallerError` in a forked child, which may not use the engine (rule 9)."""
        ...

    def proven_dead(self, holder: Holder) -> bool:
        """True only on proof: the holder is of this host and nobody holds its owner file. Another host: False."""
        ...

    def orphaned(self, holder: Holder) -> bool:
        """True if the holder's process is gone from this host while a child of its adapters still holds its owner
        file: no proof of death, but nobody renews its lease, so waiting for the lease's end is worth while.
        """
        ...


class Threads(Protocol):
    """Where work runs beside its caller. Work never raises."""

    def call(self, work: Callable[[], None], name: str) -> None:
        """Start one bounded call on an adapter."""
        ...

    def beat(self, work: Callable[[], None], name: str) -> None:
        """Start what goes on for as long as the engine is open."""
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """What a person is told by an escalation or a run report."""

    notice_id: str  # the same each time it is repeated
    kind: Literal["escalation", "report"]  # `escalation` or `report`
    run_id: str  # the run
    owner: str  # whom to tell
    subject: str  # one line
    body: str  # the text
    until_us: int | None  # the deadline, in microseconds
    facts: Mapping[str, Json]  # the same, as data


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whether a notice left, in words without secrets."""

    delivered: bool  # whether it left
    detail: str = ""  # in words, without secrets


class Notifier(Protocol):
    """Delivers notices to people. Must not raise: a failure is a `Delivery(False, why)`."""

    @property
    def name(self) -> str:
        """The notifier's configured name."""
        ...

    def deliver(self, notice: Notice) -> Delivery:
        """Try once, within a bounded time."""
        ...


Milestone: TypeAlias = Literal[
    "before_intent",
    "after_intent",
    "before_call",
    "after_call",
    "before_outcome",
    "after_outcome",
    "after_freeze",
    "after_plan",
    "before_probe",
    "after_probe",
    "before_undo",
    "after_undo",
    "before_verify",
    "after_verify",
    "before_release",
    "before_correction",
    "after_correction",
    "settled",
]


class Progress(Protocol):
    """Hears where the engine is: progress bars, traces, and the test kit's crash points. May never raise."""

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Called in the driving thread, outside every lock."""
        ...
