"""Sweeping: finding runs whose driver is gone, taking them over and driving each to rest; one stuck run stops no other
(rules 12, 16, 24).

Runs are read a page at a time and driven one at a time, so that ten thousand need no more memory than a few. A run that
was taken over often, or that could not be driven, comes last: whoever starts anew after a crash begins with the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from amends.core import events as e
from amends.core.errors import AmendsError, Conflict, CorruptLedger, SystemUnavailable
from amends.core.rows import RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import TERMINAL_RUNS, RunStatus
from amends.runtime import quarantines
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims
from amends.runtime.driving import REOPENED, Driver
from amends.runtime.kit import Kit
from amends.runtime.paging import Pager
from amends.runtime.reopening import Reopener
from amends.runtime.sessions import Session
from amends.runtime.troubles import Troubles

_LIVE = frozenset(s.value for s in RunStatus if s not in TERMINAL_RUNS)
_DRIVEN = frozenset({RunStatus.RECOVERING.value, RunStatus.COMMITTING.value})
_UNSEEN = frozenset({"open"})
PAGE = 200  # rows read at once
_NAP_SECONDS = 0.1
_REFUSALS = 3  # of the journal, in a row, after which a sweep gives up
_OFTEN = 5  # take-overs after which a run comes last: it may be what ends its drivers


@dataclass(frozen=True)
class Sweeper:
    """Recovers one run or all of them."""

    kit: Kit
    book: Book
    claims: Claims
    driver: Driver
    pager: Pager
    reopener: Reopener
    troubles: Troubles
    refused: list[SystemUnavailable] = field(default_factory=list[SystemUnavailable])  # one after the other
    freed_us: dict[str, int] = field(default_factory=dict[str, int])  # when a run without its driver may be taken

    @property
    def stuck(self) -> dict[str, str]:
        """Runs that could not be driven by this process, and why."""
        return self.troubles.reasons

    def settle(self, session: Session, until_us: int) -> RunState:
        """Drive a run this process holds, page people, let go."""
        try:
            state = self.driver.drive(session, until_us)
        finally:
            if not session.closed:
                self.claims.release(session)
        self.pager.page(state)
        if state.run.terminal or state.run.status is RunStatus.NEEDS_HUMAN:
            self.pager.report(state)
        state = self.book.state(session.run_id)
        self.book.forget(session.run_id)  # thousands of runs may be swept
        return state

    def recover(self, run_id: str, until_us: int, *, ordered_by: str = "") -> RunState:
        """Take one run over and drive it; a terminal run returns as it is. Raises `Conflict` if it is driven or
        quarantined.
        """
        self.book.forget(run_id)
        state = self.book.state(run_id)
        if state.run.terminal:
            return state
        quarantines.refuse(self.kit.journal, run_id)
        if state.run.status is RunStatus.NEEDS_HUMAN:
            self.reopener.reopen(run_id)
        session = self.claims.take(run_id)
        try:
            self._turn(session, ordered_by)
        except BaseException:
            self.claims.release(session)  # nobody else could drive the run while we hold it and do nothing
            raise
        return self.settle(session, until_us)

    def refuse_if_driven(self, state: RunState) -> None:
        """Raises `Conflict` naming the holder if a living driver has the run."""
        self.claims.proof(state)

    def _turn(self, session: Session, ordered_by: str) -> None:
        """A run that died open recovers backwards, even if all succeeded; one that died committing goes forward
        (rule 23).
        """

        def decide(state: RunState) -> list[Draft]:
            if state.run.status is not RunStatus.OPEN:
                return []
            reason = "recovery was ordered" if ordered_by else "its driver is gone"
            return [Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=reason, by=ordered_by))]

        self.book.record(session.run_id, decide, epoch=session.epoch)
        self.kit.progress.reached("after_freeze", session.run_id, "")

    # --- all runs -----------------------------------------------------------------------------------------

    def sweep(self, until_us: int) -> Iterator[RunState]:
        """Every live run that may be taken over now, each as it comes to rest; comes back to those with due work until
        `until_us`, so a run may come more than once.
        """
        due: dict[str, int] = {}  # of the runs driven here; a state is not kept: there may be thousands
        while True:
            worked = False
            self.freed_us.clear()
            for state in self._round():
                worked = True
                due.pop(state.run.run_id, None)
                if not state.run.terminal and state.run.due_us is not None and state.run.due_us <= until_us:
                    due[state.run.run_id] = state.run.due_us
                yield state
            if not worked and not self._due_later(due, until_us):
                self._page_again()
                return
            if not worked:
                self.kit.clock.sleep(_NAP_SECONDS)

    def _round(self) -> Iterator[RunState]:
        """Each candidate once; those that took many drivers or gave trouble after all others."""
        now = self.kit.clock.now_us()
        ends = self.claims.ends()
        last: list[tuple[int, str]] = []
        self.refused.clear()
        for run in self._live(_LIVE, now):
            if not ends.may_be_over(run, now):
                if ends.orphaned(run):
                    self._note_orphan(run)
            elif run.epoch > _OFTEN or run.run_id in self.troubles.reasons:
                last.append((run.epoch, run.run_id))
            else:
                yield from self._try(run, now)
        for _, run_id in sorted(last):
            if (again := self._read(run_id)) is not None:
                yield from self._try(again, now)

    def _live(self, statuses: frozenset[str], due_before_us: int) -> Iterator[RunRow]:
        """Rows of runs with something due that no quarantine holds, a page at a time."""
        held = {stored.key.key for stored in quarantines.in_force(self.kit.journal)}
        after = ""
        while rows := self.kit.journal.rows(
            "run", statuses=statuses, due_before_us=due_before_us, after_key=after, limit=PAGE
        ):
            after = rows[-1].key.key
            yield from self.book.runs(row for row in rows if row.run_id not in held)

    def _read(self, run_id: str) -> RunRow | None:
        try:
            return self.book.state(run_id).run
        except AmendsError as error:
            self.troubles.unreadable(run_id, error)
            return None

    def _due_later(self, mine: dict[str, int], until_us: int) -> bool:
        """True if a run that was driven here, or that somebody let go, has work due by then, and it is not over yet."""
        if self.kit.clock.now_us() > until_us:
            return False
        if mine or any(freed <= until_us for freed in self.freed_us.values()):
            return True
        return any(run.due_us is not None and not run.holder_id for run in self._live(_DRIVEN, until_us))

    def _page_again(self) -> None:
        """People are told of a quarantine, and again of items until somebody acknowledges (rule 34)."""
        self.pager.page_quarantines()
        after = ""
        while items := self.kit.journal.rows("escalation", statuses=_UNSEEN, active=True, after_key=after, limit=PAGE):
            after = items[-1].key.key
            for run_id in dict.fromkeys(item.run_id for item in items if self.pager.is_due(item)):
                try:
                    self.pager.page(self.book.state(run_id))
                except AmendsError as error:  # the others are paged all the same
                    self.troubles.unreadable(run_id, error)
                self.book.forget(run_id)

    def _may_start(self, run: RunRow, now_us: int) -> bool:
        if self.claims.driving(run.run_id) is not None or self.troubles.holds_back(run, now_us):
            return False
        if run.status is RunStatus.NEEDS_HUMAN:
            return self.reopener.has_news(run) and self.reopener.reopen(run.run_id)
        if run.status is RunStatus.OPEN:
            return now_us >= run.updated_us + self._grace_us(run) and not self._at_a_gate(run, now_us)
        return True

    def _grace_us(self, run: RunRow) -> int:
        """How long a run waits for a resume. One that recovery has just reopened was left open on purpose (rule 24)."""
        declared = microseconds(run.resume_grace_seconds)
        return max(declared, self.kit.lease_us) if run.reason == REOPENED else declared

    def _at_a_gate(self, run: RunRow, now_us: int) -> bool:
        """Waiting at a gate needs no lease: the question's expiry is when recovery may begin (rule 29)."""
        asked = self.book.state(run.run_id).approvals.values()
        return any(row.status == "pending" and now_us < row.expires_us for row in asked)

    def _try(self, run: RunRow, now_us: int) -> Iterator[RunState]:
        """The run as it came to rest, if it was driven and anything happened."""
        try:
            if not self._may_start(run, now_us):
                return
            state = self.recover(run.run_id, 0)
        except Conflict:
            return  # somebody else was faster
        except SystemUnavailable as error:  # the journal's trouble, hardly the run's: it is asked no thousand times
            self.refused.append(error)
            if len(self.refused) >= _REFUSALS:
                raise
            return
        except Exception as error:  # noqa: BLE001 - whatever stops one run, the others go on (rule 16)
            if isinstance(error, CorruptLedger) and quarantines.holds(self.kit.journal, run.run_id):
                self.troubles.unreadable(run.run_id, error)  # once it is lifted, it waits no longer
            else:
                self.troubles.met(run, error)
            return
        finally:
            self.book.forget(run.run_id)
        self.refused.clear()
        self.troubles.over(run.run_id)
        if state.run.head > run.head:
            yield state

    def _note_orphan(self, run: RunRow) -> None:
        """A run whose driver is gone, while a child of its adapters still works, is free when its lease is over."""
        try:
            state = self.book.state(run.run_id)
        except AmendsError as error:
            self.troubles.unreadable(run.run_id, error)
            return
        self.freed_us[run.run_id] = self.claims.holder_until_us(state.run, state)
        self.book.forget(run.run_id)
