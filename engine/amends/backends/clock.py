"""The real clock."""

from __future__ import annotations

import time


class SystemClock:
    """This machine's time."""

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
