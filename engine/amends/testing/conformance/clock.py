"""A clock for tests over real systems: real time, but whoever waits finds the time gone."""

from __future__ import annotations

import threading
import time


class LeapingClock:
    """Runs like the real clock; `sleep` leaps instead of waiting, so that no test waits for a schedule or a window."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leapt = 0.0
        self._skew = 0.0

    def now_us(self) -> int:
        with self._lock:
            return round((time.time() + self._leapt + self._skew) * 1_000_000)  # noqa: TID251 - real systems live by it

    def monotonic(self) -> float:
        with self._lock:
            return time.monotonic() + self._leapt

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._leapt += seconds

    def skew(self, seconds: float) -> None:
        """Set the wall clock off by this much from the systems' clocks; `monotonic` does not notice."""
        with self._lock:
            self._skew = seconds
