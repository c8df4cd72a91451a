"""What is armed on a line, whether it has happened, and what came along: the part that all lines share."""

from __future__ import annotations

import threading
from collections import deque

from amends.testing.conformance.line import CUTS, Cut, Exchange, Fault, FaultKind


class Armed:
    """Faults in the order of their arming, and requests in the order of their coming. Thread-safe."""

    def __init__(self, kinds: frozenset[FaultKind], cuts: frozenset[Cut] = frozenset(CUTS)) -> None:
        self._kinds = kinds
        self._cuts = cuts
        self._lock = threading.Lock()
        self._waiting: deque[Fault] = deque()
        self._happened: set[Fault] = set()
        self._stale: Fault | None = None
        self._stale_left = 0
        self._written_since = False
        self._seen: list[Exchange] = []

    def note(self, exchange: Exchange) -> None:
        """A request has come along."""
        with self._lock:
            self._seen.append(exchange)

    def exchanges(self) -> tuple[Exchange, ...]:
        """Every request so far."""
        with self._lock:
            return tuple(self._seen)

    def add(self, fault: Fault) -> None:
        """Arm a fault. Raises `ValueError` for a kind or a cut that the line cannot make."""
        if fault.kind not in self._kinds or fault.how not in self._cuts:
            raise ValueError(f"this line cannot make `{fault}`")
        with self._lock:
            if fault.kind == "stale":
                self._stale, self._stale_left, self._written_since = fault, fault.reads, False
            else:
                self._waiting.append(fault)

    def clear(self) -> None:
        """Disarm every fault."""
        with self._lock:
            self._waiting.clear()
            self._stale, self._stale_left = None, 0

    def next_is(self, kind: FaultKind) -> bool:
        """Whether the next request meets a fault of this kind; it is taken then."""
        with self._lock:
            if self._waiting and self._waiting[0].kind == kind:
                self._take()
                return True
            return False

    def write(self) -> Fault | None:
        """A request that changes something has come: the fault that it meets."""
        with self._lock:
            self._written_since = self._stale is not None
            return self._take() if self._waiting else None

    def _take(self) -> Fault:
        fault = self._waiting[0]
        self._happened.add(fault)
        if not fault.lasting:
            self._waiting.popleft()
        return fault

    @property
    def stale(self) -> bool:
        """Whether reads are to be stale after the next request."""
        return self._stale is not None

    def read_is_stale(self) -> bool:
        """A read has come: whether it is answered as before the request. Call only if it can be; it is counted."""
        with self._lock:
            if not self._written_since or not self._stale_left:
                return False
            self._stale_left -= 1
            return True

    def unfired(self) -> tuple[Fault, ...]:
        """The armed faults that have not happened."""
        with self._lock:
            stale = (self._stale,) if self._stale is not None and self._stale_left == self._stale.reads else ()
            waiting = tuple(fault for fault in self._waiting if not (fault.lasting and fault in self._happened))
            return (*waiting, *stale)
