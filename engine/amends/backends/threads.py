"""Threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable


class DaemonThreads:
    """Each piece of work on a daemon thread of its own: none keeps a finished process from ending."""

    def call(self, work: Callable[[], None], name: str) -> None:
        threading.Thread(target=work, name=name, daemon=True).start()

    def beat(self, work: Callable[[], None], name: str) -> None:
        threading.Thread(target=work, name=name, daemon=True).start()
