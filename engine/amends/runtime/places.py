"""Places: how many calls on adapters are under way at once, and what becomes of those that never return.

A thread cannot be ended. A call past its time limit therefore gives its place to the next one, so that sixteen hung
calls stop nobody else; but it stays counted, and an action or adapter with too many of them is called no more.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from amends.ports.services import Clock

HUNG_OF_AN_ACTION = 2
HUNG_OF_AN_ADAPTER = 64
_LOOK_AGAIN_SECONDS = 0.05


class NoPlace(TimeoutError):
    """The call was not made: there was no place for it within its time limit, or too many before it never returned."""


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """Whose call it is, and how long it may take; `eq=False`: each is its own."""

    adapter: str
    about: str  # the action's id, or what else it is about
    seconds: float


class Places:
    """At most `most` calls that are within their time limits. Safe for threads."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._changed = threading.Condition()
        self._over: dict[Seat, float] = {}  # of every call under way: when its time is over, monotonic

    @contextmanager
    def held(self, seat: Seat) -> Generator[None]:
        """A place for as long as the block lasts. Waits for one no longer than the call may take; raises `NoPlace`."""
        self._take(seat)
        try:
            yield
        finally:
            with self._changed:
                del self._over[seat]
                self._changed.notify()

    def hung(self) -> int:
        """How many calls are past their time limit and have not returned."""
        with self._changed:
            return len(self._late())

    def _take(self, seat: Seat) -> None:
        until = self._clock.monotonic() + seat.seconds
        with self._changed:
            while True:
                late = self._late()
                self._refuse_after_hung(seat, late)
                now = self._clock.monotonic()
                if len(self._over) - len(late) < self._most:
                    self._over[seat] = now + seat.seconds
                    return
                if now >= until:
                    raise NoPlace(f"not called: {self._most} other calls were under way for {seat.seconds:g} s")
                self._changed.wait(_LOOK_AGAIN_SECONDS)

    def _late(self) -> list[Seat]:
        now = self._clock.monotonic()
        return [seat for seat, over in self._over.items() if now >= over]

    def _refuse_after_hung(self, seat: Seat, late: list[Seat]) -> None:
        of_action = sum(1 for other in late if other.about == seat.about)
        if of_action >= HUNG_OF_AN_ACTION:
            raise NoPlace(f"not called: {of_action} earlier calls about this have not returned")
        of_adapter = sum(1 for other in late if other.adapter == seat.adapter)
        if of_adapter >= HUNG_OF_AN_ADAPTER:
            raise NoPlace(
                f"not called: {of_adapter} calls of adapter `{seat.adapter}` have not returned; restart this process"
            )
