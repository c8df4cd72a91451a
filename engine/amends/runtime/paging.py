"""Paging: escalations delivered to people until somebody acknowledges, and reports to owners (rule 34)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import public
from amends.core.rows import EscalationRow, RunState
from amends.core.schedule import microseconds
from amends.ports.services import Notice
from amends.runtime.book import Book, Draft
from amends.runtime.kit import Kit


@dataclass(frozen=True)
class Pager:
    """Delivers through every configured notifier; each try is recorded."""

    kit: Kit
    book: Book

    def page(self, state: RunState) -> None:
        """Deliver a run's open escalations that are due: new ones, and those nobody has acknowledged for a while."""
        for item in state.escalations.values():
            if item.status == "open" and self._due(item):
                self._deliver(state, item)

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
            for delivery in [notifier.deliver(notice)]
        ]
        if done:
            self.book.record_system(done)

    def _due(self, item: EscalationRow) -> bool:
        if item.notified_us is None:
            return True
        again = microseconds(self.kit.settings.page_every_seconds)
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
            delivery = notifier.deliver(notice)
            body = e.EscalationNotified(
                escalation_id=item.escalation_id,
                notifier=notifier.name,
                delivered=delivery.delivered,
                detail=delivery.detail,
            )
            self.book.record(state.run.run_id, lambda _, body=body: [Draft(body, item.action_id)])  # type: ignore[misc]
