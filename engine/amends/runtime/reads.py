"""Reads: calls whose contract says that they change nothing. Authorized like every call, and not recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amends.core import outcomes
from amends.core.events import OutcomeRecorded
from amends.core.fold_actions import planned_row
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionStatus, Outcome
from amends.runtime import drafting
from amends.runtime.asking import Policy
from amends.runtime.flights import SPARE_SECONDS, Flights, call_of, classified, landed
from amends.runtime.kit import Kit
from amends.runtime.places import Seat
from amends.runtime.resolving import Request, Resolved
from amends.runtime.results import CallResult, result_of
from amends.spi.capability import Prepared


@dataclass(frozen=True)
class Reads:
    """Calls that change nothing: no slot, no intent, no outcome to be in doubt about."""

    kit: Kit
    policy: Policy
    flights: Flights

    def read(self, state: RunState, request: Request, resolved: Resolved, wanted: Callable[[], bool]) -> CallResult:
        """Ask policy, make the call, answer. A read that brings no answer has failed: there is nothing to find out."""
        planned = drafting.planned(state, resolved, request, Prepared(), 1)
        row = planned_row(state.run, self.kit.ids.new(), 0, self.kit.clock.now_us(), planned)
        if resolved.invalid:
            return result_of(row.model_copy(update={"status": ActionStatus.FAILED}), reason=resolved.invalid)
        decision = self.policy.forward(state.run, drafting.subject(resolved, Prepared()))
        if not decision.allowed:
            reason = "; ".join(decision.reasons) or decision.code
            return result_of(row.model_copy(update={"status": ActionStatus.DENIED}), reason=reason)
        return result_of(_answered(row, self._asked(resolved, row, wanted)))

    def _asked(self, resolved: Resolved, row: ActionRow, wanted: Callable[[], bool]) -> OutcomeRecorded:
        seconds = resolved.contract.limits.timeout_seconds
        question = drafting.question_before(self.kit, row.run_id, row.action_id, resolved.args, seconds)
        call = call_of(question, deadline_us=self.kit.clock.now_us() + microseconds(seconds), still_wanted=wanted)
        ask = resolved.offer.capability.do
        seat = Seat(resolved.offer.context.name, row.action_id, seconds + SPARE_SECONDS)
        flight = self.flights.launch(
            lambda: classified(ask, call, self.kit.clock.now_us, row, self.kit.secrets),
            f"read-{row.action_id[-6:]}",
            seat,
        )
        try:
            return landed(flight, seat)
        except TimeoutError as error:
            detail = str(error) or "no answer in time"
            return outcomes.lost(at_us=self.kit.clock.now_us(), code="timeout", detail=detail)


def _answered(row: ActionRow, body: OutcomeRecorded) -> ActionRow:
    done = body.outcome is Outcome.SUCCEEDED
    return row.model_copy(
        update={
            "status": ActionStatus.SUCCEEDED if done else ActionStatus.FAILED,
            "outcome": Outcome.SUCCEEDED if done else Outcome.FAILED,
            "effect": body.effect,
            "output": body.output,
            "reference": body.reference,
            "error": body.error,
        }
    )
