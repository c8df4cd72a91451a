"""Sweeping: finding runs whose driver is gone, taking them over and driving each to rest; one stuck run stops no other
(rules 12, 16, 24).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amends.core import events as e
from amends.core.errors import AmendsError, Conflict
from amends.core.rows import RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import TERMINAL_RUNS, RunStatus
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims, holder_of
from amends.runtime.driving import REOPENED, Driver
from amends.runtime.flights import describe
from amends.runtime.kit import Kit
from amends.runtime.paging import Pager
from amends.runtime.reopening import Reopener
from amends.runtime.sessions import Session

_LIVE = frozenset(s.value for s in RunStatus if s not in TERMINAL_RUNS)
_DRIVEN = frozenset({RunStatus.RECOVERING.value, RunStatus.COMMITTING.value})
_PAGE = 200
_NAP_SECONDS = 0.1
_STUCK_US = 60_000_000  # every try writes who took the run: a stuck one must not fill the ledger
_UNSEEN = frozenset({"open"})


@dataclass(frozen=True)
class Sweeper:
    """Recovers one run or all of them."""

    kit: Kit
    book: Book
    claims: Claims
    driver: Driver
    pager: Pager
    reopener: Reopener
    stuck: dict[str, str] = field(default_factory=dict[str, str])  # runs that could not be driven, and why
    freed_us: dict[str, int] = field(default_factory=dict[str, int])  # when a run without its driver may be taken
    again_us: dict[str, int] = field(default_factory=dict[str, int])  # when a stuck run is tried again

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
        """Take one run over and drive it; a terminal run returns as it is. Raises `Conflict` if it is driven."""
        self.book.forget(run_id)
        state = self.book.state(run_id)
        if state.run.terminal:
            return state
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

    def sweep(self, until_us: int) -> list[RunState]:
        """Every live run that may be taken over now; comes back to those with due work until `until_us`."""
        seen: dict[str, RunState] = {}
        while True:
            worked = False
            self.freed_us.clear()
            for run in self._candidates():
                state = self._try(run)
                if state is not None:
                    seen[run.run_id] = state
                    worked = True
            if not worked and not self._due_later(seen, until_us):
                self._page_again()
                return list(seen.values())
            if not worked:
                self.kit.clock.sleep(_NAP_SECONDS)

    def _due_later(self, seen: dict[str, RunState], until_us: int) -> bool:
        """True if a run that was driven here, or that somebody let go, has work due by then, and it is not over yet."""
        if self.kit.clock.now_us() > until_us:
            return False
        if any(freed <= until_us for freed in self.freed_us.values()):
            return True
        mine = [s.run for s in seen.values() if not s.run.terminal]
        rows = self.kit.journal.rows("run", statuses=_DRIVEN, due_before_us=until_us, limit=_PAGE)
        let_go = [run for run in self.book.runs(rows) if not run.holder_id]
        return any(run.due_us is not None and run.due_us <= until_us for run in (*mine, *let_go))

    def _page_again(self) -> None:
        """People are told again until somebody acknowledges (rule 34)."""
        after, runs = "", dict[str, None]()
        while items := self.kit.journal.rows("escalation", statuses=_UNSEEN, active=True, after_key=after, limit=_PAGE):
            after = items[-1].key.key
            runs |= dict.fromkeys(item.run_id for item in items)
        for run_id in runs:
            try:
                self.pager.page(self.book.state(run_id))
            except AmendsError as error:  # the others are paged all the same
                self.stuck[run_id] = error.message

    def _candidates(self) -> list[RunRow]:
        """Live runs with something due, a page at a time."""
        found: list[RunRow] = []
        after = ""
        now = self.kit.clock.now_us()
        while rows := self.kit.journal.rows("run", statuses=_LIVE, due_before_us=now, after_key=after, limit=_PAGE):
            after = rows[-1].key.key
            found += self.book.runs(rows)
        return [run for run in found if self._may_start(run, now)]

    def _may_start(self, run: RunRow, now_us: int) -> bool:
        if self.claims.driving(run.run_id) is not None or now_us < self.again_us.get(run.run_id, 0):
            return False
        if run.status is RunStatus.NEEDS_HUMAN:
            return self._readable(run) and self.reopener.reopen(run.run_id)
        if run.status is RunStatus.OPEN:
            return (
                now_us >= run.updated_us + self._grace_us(run)
                and self._readable(run)
                and not self._at_a_gate(run, now_us)
            )
        return True

    def _grace_us(self, run: RunRow) -> int:
        """How long a run waits for a resume. One that recovery has just reopened was left open on purpose (rule 24)."""
        declared = microseconds(run.resume_grace_seconds)
        return max(declared, self.kit.lease_us) if run.reason == REOPENED else declared

    def _at_a_gate(self, run: RunRow, now_us: int) -> bool:
        """Waiting at a gate needs no lease: the question's expiry is when recovery may begin (rule 29)."""
        asked = self.book.state(run.run_id).approvals.values()
        return any(row.status == "pending" and now_us < row.expires_us for row in asked)

    def _readable(self, run: RunRow) -> bool:
        try:
            self.book.state(run.run_id)
        except AmendsError as error:  # quarantined: the others go on (rule 16)
            self.stuck[run.run_id] = error.message
            return False
        return True

    def _try(self, run: RunRow) -> RunState | None:
        before = run.head
        try:
            state = self.recover(run.run_id, 0)
        except Conflict:
            self._note_orphan(run)
            return None
        except Exception as error:  # noqa: BLE001 - whatever stops one run, the others go on (rule 16)
            self.stuck[run.run_id] = describe(error)
            self.again_us[run.run_id] = self.kit.clock.now_us() + _STUCK_US
            return None
        return state if state.run.head > before else None

    def _note_orphan(self, run: RunRow) -> None:
        """A run whose driver is gone, while a child of its adapters still works, is free when its lease is over."""
        state = self.book.state(run.run_id)
        if self.kit.owners.orphaned(holder_of(state.run)):
            self.freed_us[run.run_id] = self.claims.holder_until_us(state.run, state)
