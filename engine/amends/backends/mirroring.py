"""Keeps the DuckDB ledger close behind the journal while an engine is open (DESIGN section 6: every second)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from amends.core.errors import AmendsError
from amends.ports.journal import Journal
from amends.ports.ledger import Ledger


class Mirroring:
    """Refreshes the ledger on a thread of its own whenever the journal has grown. Trouble is kept in `problem` and
    tried again later: the mirror is disposable and never stands in a run's way.
    """

    def __init__(self, journal: Journal, ledger: Callable[[], Ledger], *, every_seconds: float = 1.0) -> None:
        self._journal = journal
        self._ledger = ledger
        self._every_seconds = every_seconds
        self._stopping = threading.Event()
        self._mirrored = -1
        self.problem = ""
        self._thread = threading.Thread(target=self._work, name="amends-mirror", daemon=True)

    def start(self) -> None:
        """Begin; the first refresh comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """End after the refresh that is going on. Idempotent."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        pause = self._every_seconds
        while not self._stopping.wait(pause):
            pause = self._every_seconds if self._refreshed() else min(60.0, pause * 2)

    def _refreshed(self) -> bool:
        try:
            newest = self._journal.info().max_seq
            if newest != self._mirrored:
                self._mirrored = self._ledger().refresh().max_seq
        except AmendsError as error:
            self.problem = error.message
            return False
        self.problem = ""
        return True
