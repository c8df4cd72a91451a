"""Settling: which actions are done with in recovery, and which inverse may come next (rules 18 to 24)."""

from __future__ import annotations

from amends.core import schedule
from amends.core.canonical import Json
from amends.core.contract import Alternative
from amends.core.outcomes import folded_late
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionStatus, Outcome

_S = ActionStatus


def in_scope(state: RunState, action: ActionRow) -> bool:
    """False for what came before the checkpoint that recovery goes back to (rule 24)."""
    checkpoint = state.run.checkpoints.get(state.run.recover_to, 0)
    return action.seq > checkpoint


def settled(state: RunState, action: ActionRow) -> bool:
    """True if nothing more will happen to a forward action in recovery without new facts."""
    match action.status:
        case _S.DENIED | _S.WITHDRAWN:
            return folded_late(action, at_us=state.run.ledger_us) is None
        case _S.COMPENSATED:
            return action.late_check_due_us is None
        case _S.FAILED:
            quiet = not in_scope(state, action) or not may_have_residue(action)
            return quiet and folded_late(action, at_us=state.run.ledger_us) is None
        case _S.SUCCEEDED:
            return (
                bool(action.accepted_by)
                or action.gated_residue
                or not action.contract.consequential
                or _adopted(action)
                or not in_scope(state, action)
            )
        case _S.UNKNOWN:
            return bool(action.accepted_by)
        case _:
            return False


def _adopted(action: ActionRow) -> bool:
    return bool(action.evidence) and action.evidence[0].source == "adopted"


def may_have_residue(action: ActionRow) -> bool:
    """True while a failed call may have left parts behind that a registered inverse takes back (rule 17)."""
    if (
        not action.ever_sent
        or action.accepted_by
        or not any(Outcome.FAILED in rung.safe_when for rung in rungs(action))
    ):
        return False
    seen = action.observation.seen if looked_since_outcome(action) and action.observation else None
    return seen != "absent"


def looked_since_outcome(action: ActionRow) -> bool:
    """True if the system was looked at after the outcome was recorded."""
    return action.probed_us is not None and action.probed_us >= (action.outcome_us or 0)


def rungs(action: ActionRow) -> tuple[Alternative, ...]:
    """The compensation ladder registered with the intent."""
    return action.contract.compensation


def unexpired_rungs(action: ActionRow, now_us: int) -> tuple[Alternative, ...]:
    """The rungs whose time window is still open, counted from the first intent."""
    since = action.sent_us or action.created_us
    return tuple(
        rung
        for rung in rungs(action)
        if rung.expires_after_seconds is None or now_us <= since + schedule.microseconds(rung.expires_after_seconds)
    )


def next_rung(action: ActionRow, state_seen: dict[str, Json], now_us: int) -> Alternative | None:
    """The first rung, not tried yet, whose `when` matches the probed state and whose `safe_when` names the outcome."""
    for rung in unexpired_rungs(action, now_us):
        if rung.name in action.tried_rungs or action.outcome not in rung.safe_when:
            continue
        if all(state_seen.get(name) in accepted for name, accepted in rung.when.items()):
            return rung
    return None
