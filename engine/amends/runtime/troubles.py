"""Troubles: runs that could not be driven. Each is tried again after a while that doubles, and a person has an item
about it; nothing is silent, and nothing fills the ledger (rules 16 and 34).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from amends.core.errors import AmendsError, SystemUnavailable
from amends.core.rows import RunRow
from amends.core.schedule import microseconds
from amends.runtime.book import Book
from amends.runtime.escalations import Escalations
from amends.runtime.flights import describe
from amends.runtime.kit import Kit

FIRST_WAIT_SECONDS = 60.0  # every try writes who took the run
LONGEST_WAIT_SECONDS = 6 * 3600.0
TRIES_BEFORE_A_PERSON = 3
MOST = 10_000  # runs remembered; one that is forgotten is only tried sooner


@dataclass(frozen=True, slots=True)
class _Trouble:
    reason: str
    tries: int = 0
    again_us: int = 0
    head: int = 0  # of the run, after the last try: a run that somebody has written to since is tried at once


class Troubles:
    """What this process could not drive. What it remembers is bounded; what people must know is in the ledger."""

    def __init__(self, kit: Kit, book: Book, escalations: Escalations) -> None:
        self._kit = kit
        self._book = book
        self._escalations = escalations
        self._known: dict[str, _Trouble] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Run ids, and why each could not be driven."""
        return {run_id: trouble.reason for run_id, trouble in self._known.items()}

    def holds_back(self, run: RunRow, now_us: int) -> bool:
        """True while a run waits for its next try."""
        known = self._known.get(run.run_id)
        return known is not None and now_us < known.again_us and run.head == known.head

    def met(self, run: RunRow, error: Exception) -> None:
        """Whatever stopped one run: try it again later, and tell a person if it goes on."""
        known = self._known.pop(run.run_id, _Trouble(""))
        tries = known.tries + 1
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(tries - 1, 20), LONGEST_WAIT_SECONDS)
        reason = describe(error, self._kit.secrets)
        if tries >= TRIES_BEFORE_A_PERSON and not isinstance(error, SystemUnavailable):
            self._tell(run.run_id, f"recovery stopped {tries} times: {reason}")
        again = self._kit.clock.now_us() + microseconds(wait)
        self._remember(run.run_id, _Trouble(reason, tries, again, self._head(run)))

    def unreadable(self, run_id: str, error: AmendsError) -> None:
        """A run that cannot be read: it is quarantined where that is its own fault (rule 16)."""
        known = self._known.get(run_id, _Trouble(""))
        self._remember(run_id, replace(known, reason=error.message))

    def over(self, run_id: str) -> None:
        """The run was driven."""
        self._known.pop(run_id, None)

    def _remember(self, run_id: str, trouble: _Trouble) -> None:
        self._known[run_id] = trouble
        while len(self._known) > MOST:
            self._known.pop(next(iter(self._known)))

    def _tell(self, run_id: str, detail: str) -> None:
        """A work item where the run can still be written to; an unreadable one is in quarantine."""
        with suppress(Exception):  # what stops the run may stop this, too; the trouble itself is kept
            self._escalations.undrivable(run_id, detail)

    def _head(self, run: RunRow) -> int:
        try:
            return self._book.state(run.run_id).run.head
        except AmendsError:
            return run.head
