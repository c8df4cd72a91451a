"""Sending: the call itself, on a thread of its own, and the recording of whatever comes of it (rules 3, 9, 13)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.errors import AmendsError, Fenced, SystemUnavailable
from amends.core.rows import ActionRow, RunRow, RunState
from amends.core.status import ActionKind, ActionStatus, Outcome, RunStatus
from amends.ports.journal import RowKey
from amends.runtime.book import Book, Draft
from amends.runtime.flights import CALL_SPARE_SECONDS, Flights, call_of, classified, question_of
from amends.runtime.kit import Kit
from amends.runtime.listening import Listener
from amends.runtime.looking import Looker
from amends.runtime.places import Seat
from amends.runtime.results import CallResult, result_of
from amends.runtime.sessions import Session
from amends.spi.capability import Call

_S = ActionStatus


@dataclass(frozen=True, slots=True)
class _Unwritten:
    session: Session
    action_id: str
    attempt: int
    body: e.OutcomeRecorded


class Sending:
    """Makes forward calls, releases and corrections. An outcome that cannot be written is kept and retried; until it
    is written no new intent is accepted (rule 9).
    """

    def __init__(self, kit: Kit, book: Book, flights: Flights, looker: Looker, listener: Listener) -> None:
        self._kit = kit
        self._book = book
        self._flights = flights
        self._looker = looker
        self._listener = listener
        self._unwritten: deque[_Unwritten] = deque()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._in_flight: dict[str, Future[CallResult]] = {}

    def in_flight(self, action_id: str) -> Future[CallResult] | None:
        """The running call of an action of this process, to wait for instead of calling again."""
        with self._lock:
            return self._in_flight.get(action_id)

    def wait_for(self, action: ActionRow, seconds: float) -> None:
        """Wait for the call of an action of this process, if one is in flight."""
        flight = self.in_flight(action.action_id)
        if flight is not None:
            wait([flight], timeout=seconds)

    def drain(self, state: RunState, spare_seconds: float) -> None:
        """Wait for every call of a run in flight in this process, no longer than the longest may take."""
        flights = [(a, f) for a in state.actions.values() if (f := self.in_flight(a.action_id)) is not None]
        patience = max((a.contract.limits.timeout_seconds for a, _ in flights), default=0.0)
        wait([flight for _, flight in flights], timeout=patience + spare_seconds)

    def hear_out(self, seconds: float) -> None:
        """Wait for every call of this process that is in flight, but no longer than that."""
        with self._lock:
            flights = list(self._in_flight.values())
        wait(flights, timeout=seconds)

    def send(
        self, session: Session, action_id: str, wanted: Callable[[], bool], *, allowed: frozenset[RunStatus]
    ) -> Future[CallResult]:
        """Start the call of a durable intent. The future answers once its outcome is recorded; it never raises for
        what the call did.
        """
        action = self._book.state(session.run_id).actions[action_id]
        offer = self._kit.catalog.get(action.contract.capability)
        call = self._call(session, action, wanted, allowed)

        def work() -> CallResult:
            self._kit.progress.reached("before_call", session.run_id, action_id)
            body = classified(offer.capability.do, call, self._kit.clock.now_us, action, self._kit.secrets)
            self._kit.progress.reached("after_call", session.run_id, action_id)
            return self.landed(session, action_id, action.attempt, body)

        def not_made(why: str) -> CallResult:
            body = outcomes.not_sent(at_us=self._kit.clock.now_us(), code="no_place", detail=why)
            return self.landed(session, action_id, action.attempt, body)

        seat = Seat(offer.context.name, action_id, call.timeout_seconds + CALL_SPARE_SECONDS)
        flight: Future[CallResult] = Future()
        flight.add_done_callback(lambda _: self._gone(action_id))
        with self._lock:
            self._in_flight[action_id] = flight  # before it starts: an interrupt must find it
        return self._flights.launch(work, f"call-{action_id[-6:]}", seat, flight, instead=not_made)

    def landed(self, session: Session, action_id: str, attempt: int, body: e.OutcomeRecorded) -> CallResult:
        """Record an outcome, in time or late; then confirm it by a read where the answer itself is no proof."""
        self._kit.progress.reached("before_outcome", session.run_id, action_id)
        try:
            state = self._write(session, action_id, attempt, body)
        except SystemUnavailable:
            with self._lock:
                self._unwritten.append(_Unwritten(session, action_id, attempt, body))
            return _not_written(self._book, session.run_id, action_id)
        self._kit.progress.reached("after_outcome", session.run_id, action_id)
        action = state.actions[action_id]
        if self._to_confirm(action, body):
            with suppress(AmendsError):  # what is recorded stands; whoever drives the run looks again
                state = self._looker.reconcile(session.run_id, action_id, session.epoch, "confirm")
        return result_of(state.actions[action_id])

    def _write(self, session: Session, action_id: str, attempt: int, body: e.OutcomeRecorded) -> RunState:
        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            if action.status is _S.RUNNING and action.attempt == attempt:
                return [Draft(body, action_id)]
            if any((known.at_us, known.code) == (body.evidence.at_us, body.evidence.code) for known in action.evidence):
                return []  # it was written, and only the acknowledgement was lost
            return self._listener.heard(state, action, outcomes.late(_of_attempt(body, action, attempt)))

        try:
            state = self._book.record(session.run_id, decide, epoch=session.epoch)
        except Fenced:

            def late(state: RunState) -> list[Draft]:
                return [Draft(outcomes.late(_of_attempt(body, state.actions[action_id], attempt)), action_id)]

            state = self._book.record(session.run_id, late, event_epoch=session.epoch)
        if state.run.terminal:
            action = state.actions[action_id]
            late_body = outcomes.late(_of_attempt(body, action, attempt))
            self._listener.after_the_end(state, action, late_body, attempt=attempt)
        return state

    def send_and_wait(self, session: Session, action_id: str, *, allowed: frozenset[RunStatus]) -> None:
        """`send` for the engine's own steps: back once the outcome is recorded, or given up past the time limit."""
        flight = self.send(session, action_id, lambda: True, allowed=allowed)
        limits = self._book.last_known(session.run_id).actions[action_id].contract.limits
        try:
            flight.result(timeout=limits.timeout_seconds + CALL_SPARE_SECONDS)
        except TimeoutError:
            self.give_up_waiting(session, action_id, "timeout")

    def give_up_waiting(self, session: Session, action_id: str, code: str) -> CallResult:
        """The caller waits no longer: a call still in flight becomes `unknown`; its thread goes on (rule 3)."""

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            if action.status is not _S.RUNNING:
                return []
            detail = "the caller stopped waiting; the call may still land"
            return [Draft(outcomes.lost(at_us=self._kit.clock.now_us(), code=code, detail=detail), action_id)]

        try:
            state = self._book.record(session.run_id, decide, epoch=session.epoch)
        except (SystemUnavailable, Fenced):
            return _not_written(self._book, session.run_id, action_id)
        return result_of(state.actions[action_id])

    def flush(self) -> None:
        """Write the outcomes kept back. Raises `JournalUnavailable` or `JournalBusy` while that does not work."""
        with self._flushing:
            while True:
                with self._lock:
                    if not self._unwritten:
                        return
                    kept = self._unwritten[0]
                self._write(kept.session, kept.action_id, kept.attempt, kept.body)
                with self._lock:
                    self._unwritten.popleft()

    @property
    def unwritten(self) -> int:
        """How many outcomes wait for the journal."""
        with self._lock:
            return len(self._unwritten)

    def _gone(self, action_id: str) -> None:
        with self._lock:
            self._in_flight.pop(action_id, None)

    def _to_confirm(self, action: ActionRow, body: e.OutcomeRecorded) -> bool:
        probe = action.contract.probe
        if probe is None or action.kind is ActionKind.UNDO:
            return False
        if action.outcome is Outcome.SUCCEEDED:
            return probe.counts
        return action.outcome is Outcome.UNKNOWN and body.evidence.code == "answer_is_no_proof"

    # --- the call and its last check ----------------------------------------------------------------------

    def _call(
        self, session: Session, action: ActionRow, wanted: Callable[[], bool], allowed: frozenset[RunStatus]
    ) -> Call:
        offer = self._kit.catalog.get(action.contract.capability)
        return call_of(
            question_of(self._kit, action, offer),
            deadline_us=action.deadline_us or 0,
            still_wanted=lambda: wanted() and self.may_send(session, action, allowed),
        )

    def may_send(self, session: Session, action: ActionRow, allowed: frozenset[RunStatus]) -> bool:
        """The last check, immediately before the first byte: cancel, lease, deadline, freeze, pause (rule 3)."""
        try:
            return self._may_send(session, action, allowed)
        except SystemUnavailable:
            return False  # what cannot be recorded is not sent

    def _may_send(self, session: Session, action: ActionRow, allowed: frozenset[RunStatus]) -> bool:
        stored = self._kit.journal.row(RowKey("run", session.run_id))
        if stored is None or stored.epoch != session.epoch:
            return False
        run = RunRow.model_validate_json(stored.body)
        held_back = RunStatus.RECOVERING not in allowed and self.paused(run)  # recovery goes on (rule 15)
        if run.status not in allowed or held_back or session.cancelled.is_set():
            return False
        now = self._kit.clock.now_us()  # asked last: who was frozen while it read the journal is too late by now
        return now < (action.deadline_us or 0) and now < session.lease_until_us

    def paused(self, run: RunRow) -> bool:
        """True while a pause or quarantine holds forward calls of this run back (rule 15)."""
        rows = (self._kit.journal.row(key) for key in pause_keys(run))
        return any(row is not None and row.active for row in rows)


def pause_keys(run: RunRow) -> tuple[RowKey, ...]:
    """The rows that must not be active when a forward intent is written or sent (rule 15)."""
    return (
        RowKey("pause", "all"),
        RowKey("pause", f"tenant:{run.tenant}"),
        RowKey("pause", f"workflow:{run.workflow}"),
        RowKey("quarantine", run.run_id),
    )


def _of_attempt(body: e.OutcomeRecorded, action: ActionRow, attempt: int) -> e.OutcomeRecorded:
    """What an earlier attempt did not do says nothing about the present one; what it did exists all the same."""
    if action.attempt == attempt or body.outcome is not Outcome.FAILED:
        return body
    return body.model_copy(update={"evidence": body.evidence.model_copy(update={"strength": "weak"})})


def _not_written(book: Book, run_id: str, action_id: str) -> CallResult:
    """The caller is told `unknown`: what happened is known here, but not durably."""
    action = book.last_known(run_id).actions[action_id]
    return result_of(action.model_copy(update={"status": _S.UNKNOWN, "outcome": Outcome.UNKNOWN}))
