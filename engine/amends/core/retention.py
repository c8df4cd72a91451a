"""When a run may leave the journal: long after the last moment at which anything of it could still change. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from amends.core.rows import ActionRow, RunState
from amends.core.schedule import microseconds


def sealable_at_us(state: RunState, keep_us: int) -> int | None:
    """From when a run may be sealed: `keep_us` after it became terminal and after every provisional and late-landing
    horizon of its actions. `None`: it is not terminal, or a person has still to answer something of it.
    """
    if not state.run.terminal or _waits_for_people(state):
        return None
    horizons = [at_us for action in state.actions.values() for at_us in _horizons(action)]
    return max(state.run.moved_us, state.run.updated_us, *horizons, 0) + keep_us


def _waits_for_people(state: RunState) -> bool:
    return any(item.status != "resolved" for item in state.escalations.values()) or any(
        row.status == "pending" for row in state.approvals.values()
    )


def _horizons(action: ActionRow) -> Iterator[int]:
    """Until when the provider may revoke the effect, or something may land late (rules 4, 7 and 18)."""
    if action.late_check_due_us is not None:
        yield action.late_check_due_us
    if action.sent_us is None:
        return
    contract = action.contract
    answered = max(action.outcome_us or 0, action.attempt_us or 0, action.sent_us)
    yield answered + microseconds(contract.provisional_for_seconds or 0.0)
    late = (contract.probe.absent_final_after_seconds or 0.0) if contract.probe else 0.0
    settle = max((rung.retry.settle_seconds for rung in contract.compensation), default=0.0)
    yield (action.deadline_us or answered) + microseconds(max(late, settle))
