"""Paging: escalations delivered to people until somebody acknowledges, and reports to owners (rule 34).

A notifier may hang, raise or fail for days: each try is bounded in time, one that fails is left alone for a while, and
what it should have said is said later. Pages about one item come at growing distances, so that no item fills a ledger.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import ValidationError

from amends.core import events as e
from amends.core import public
from amends.core.rows import EscalationRow, QuarantineRow, RunState
from amends.core.schedule import microseconds
from amends.ports.journal import StoredRow
from amends.ports.services import Delivery, Notice, Notifier
from amends.runtime import quarantines
from amends.runtime.book import Book, Draft
from amends.runtime.flights import Flights, describe, landed, shortened
from amends.runtime.kit import Kit
from amends.runtime.places import Seat

LONGEST_DELIVERY_SECONDS = 60.0
LONGEST_SILENCE_SECONDS = 3600.0  # between two tries of a notifier that fails
_FIRST_SILENCE_SECONDS = 60.0
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class _Silence:
    """A notifier that failed: how often in a row, until when it is left alone (monotonic), and what it said."""

    failures: int
    until: float
    detail: str


@dataclass(frozen=True)
class Pager:
    """Delivers through every configured notifier; each try is recorded."""

    kit: Kit
    book: Book
    flights: Flights
    silent: dict[str, _Silence] = field(default_factory=dict[str, _Silence])

    def page(self, state: RunState) -> None:
        """Deliver a run's open escalations that are due: new ones, and those nobody has acknowledged for a while."""
        for item in state.escalations.values():
            if item.status == "open" and self._due(item):
                self._deliver(state, item)

    def is_due(self, stored: StoredRow) -> bool:
        """True if a stored item is to be delivered now, or cannot be read."""
        try:
            return self._due(EscalationRow.model_validate_json(stored.body))
        except ValidationError:
            return True

    def page_quarantines(self) -> None:
        """Tell people, once, of every quarantined run: until a notice of it has left, it is tried again."""
        for stored in quarantines.untold(self.kit.journal):
            with suppress(ValidationError):
                self._tell(QuarantineRow.model_validate_json(stored.body))

    def report(self, state: RunState) -> None:
        """Send the report of a run that has come to rest to its owner."""
        public_state = public.of_run(state)
        notice = Notice(
            notice_id=self.kit.ids.new(),
            kind="report",
            run_id=state.run.run_id,
            owner=state.run.owner,
            subject=f"run {state.run.run_key} of {state.run.workflow}: {state.run.status}",
            body=public.run_message(public_state),
            until_us=None,
            facts={"status": state.run.status.value, "public_state": public_state.value},
        )
        done = [
            e.ReportDelivered(
                reported_run=state.run.run_id,
                owner=state.run.owner,
                notifier=notifier.name,
                delivered=delivery.delivered,
                detail=delivery.detail,
            )
            for notifier in self.kit.notifiers
            for delivery in [self._tried(notifier, notice)]
        ]
        if done:
            self.book.record_system(done)

    def _due(self, item: EscalationRow) -> bool:
        """After `page_every_seconds`, then at distances that double up to a day; while it has reached nobody, up to an
        hour.
        """
        if item.notified_us is None:
            return True
        longest = microseconds(_SECONDS_PER_DAY if item.delivered else LONGEST_SILENCE_SECONDS)
        first = microseconds(self.kit.settings.page_every_seconds)
        again = max(first, min(item.notified_us - item.opened_us, longest))
        return self.kit.clock.now_us() >= item.notified_us + again

    def _deliver(self, state: RunState, item: EscalationRow) -> None:
        notice = Notice(
            notice_id=item.escalation_id,
            kind="escalation",
            run_id=item.run_id,
            owner=item.owner,
            subject=f"{item.cause}: {state.run.workflow} {state.run.run_key} needs a decision",
            body=f"Known: {item.known}\nIn doubt: {item.in_doubt}\nProposed: {item.proposed}",
            until_us=item.deadline_us,
            facts={"queue": item.queue, "choices": list(item.choices), **item.evidence},
        )
        for notifier in self.kit.notifiers:
            if self._left_alone(notifier) is not None:
                continue  # the item stays due: nothing is recorded, nothing is lost
            delivery = self._tried(notifier, notice)
            body = e.EscalationNotified(
                escalation_id=item.escalation_id,
                notifier=notifier.name,
                delivered=delivery.delivered,
                detail=delivery.detail,
            )
            self.book.record(state.run.run_id, lambda _, body=body: [Draft(body, item.action_id)])  # type: ignore[misc]

    def _tell(self, held: QuarantineRow) -> None:
        owner = quarantines.owner_of(self.kit, held.run_id)
        notice = Notice(
            notice_id=f"quarantine-{held.run_id}",
            kind="escalation",
            run_id=held.run_id,
            owner=owner,
            subject=f"run {held.run_id} cannot be read back and is quarantined",
            body=f"Known: {held.reason}\nIn doubt: everything the run did; nothing drives it, other runs go on\n"
            "Proposed: run `amends ledger verify` and put its rows right, then "
            f"`amends quarantine lift {held.run_id} --by YOU`",
            until_us=None,
            facts={"cause": "quarantined", "reason": held.reason, "choices": ["lift"], "since_us": held.since_us},
        )
        done = [
            e.QuarantineNotified(
                quarantined_run=held.run_id,
                owner=owner,
                notifier=notifier.name,
                delivered=delivery.delivered,
                detail=delivery.detail,
            )
            for notifier in self.kit.notifiers
            if self._left_alone(notifier) is None
            for delivery in [self._tried(notifier, notice)]
        ]
        if done:
            self.book.record_system(done)

    # --- one try ------------------------------------------------------------------------------------------

    def _left_alone(self, notifier: Notifier) -> _Silence | None:
        known = self.silent.get(notifier.name)
        return known if known is not None and self.kit.clock.monotonic() < known.until else None

    def _tried(self, notifier: Notifier, notice: Notice) -> Delivery:
        """One try, bounded in time, whatever the notifier does; a failing one is left alone for longer and longer."""
        silence = self._left_alone(notifier)
        if silence is not None:
            return Delivery(delivered=False, detail=f"not tried, it failed just now: {silence.detail}")
        delivery = self._asked(notifier, notice)
        if delivery.delivered:
            self.silent.pop(notifier.name, None)
            return delivery
        known = self.silent.get(notifier.name)
        failures = known.failures + 1 if known else 1
        seconds = min(_FIRST_SILENCE_SECONDS * 2.0 ** min(failures - 1, 20), LONGEST_SILENCE_SECONDS)
        self.silent[notifier.name] = _Silence(failures, self.kit.clock.monotonic() + seconds, delivery.detail)
        return delivery

    def _asked(self, notifier: Notifier, notice: Notice) -> Delivery:
        seat = Seat(f"notifier {notifier.name}", f"notifier {notifier.name}", LONGEST_DELIVERY_SECONDS)

        def deliver() -> Delivery:
            delivery = notifier.deliver(notice)
            detail = shortened(str(delivery.detail), self.kit.secrets)
            return Delivery(delivered=delivery.delivered is True, detail=detail)

        try:
            return landed(self.flights.launch(deliver, f"notify-{notifier.name}", seat), seat)
        except TimeoutError as error:
            return Delivery(delivered=False, detail=str(error) or f"no answer within {LONGEST_DELIVERY_SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - a notifier that breaks its port has delivered nothing
            return Delivery(delivered=False, detail=f"the notifier failed: {describe(error, self.kit.secrets)}")
