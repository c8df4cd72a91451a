"""UUIDv7 ids that only ever grow within a process."""

from __future__ import annotations

import os
import threading
from uuid import UUID

from amends.ports.services import Clock

_COUNTER_BITS = 74  # all bits of a version 7 UUID behind its milliseconds, but version and variant
_STEP_BYTES = 4


class UuidV7:
    """RFC 9562 version 7: milliseconds, then a random start that later ids of the same millisecond count up from.

    A wall clock that goes backwards does not make ids go backwards. A forked child starts from fresh chance.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._last = 0

    def new(self) -> str:
        chance = int.from_bytes(os.urandom(10)) >> 6
        now = (self._clock.now_us() // 1000) << _COUNTER_BITS
        with self._lock:
            if self._pid == os.getpid() and now >> _COUNTER_BITS <= self._last >> _COUNTER_BITS:
                # A random step keeps ids of one millisecond unguessable; past the last bit it borrows from the next.
                self._last += 1 + int.from_bytes(os.urandom(_STEP_BYTES))
            else:
                self._pid = os.getpid()
                self._last = now | chance
            value = self._last
        return str(_as_uuid(value))


def _as_uuid(value: int) -> UUID:
    milliseconds, counter = value >> _COUNTER_BITS, value & ((1 << _COUNTER_BITS) - 1)
    high, low = counter >> 62, counter & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)
