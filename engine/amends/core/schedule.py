"""When things are due: waits for a call in flight, probe schedules, retries of an undo. Pure arithmetic on facts."""

from __future__ import annotations

from amends.core.outcomes import absence_final_at_us
from amends.core.reading import LONGEST_SECONDS
from amends.core.rows import ActionRow, RunRow
from amends.core.status import Outcome

_FINAL_LOOK_AFTER_US = 1_000


def microseconds(seconds: float) -> int:
    """Seconds as whole microseconds; more than three decades are three decades, so that a ledger holds any sum."""
    return round(min(seconds, LONGEST_SECONDS) * 1_000_000)


def flight_over_at_us(run: RunRow, action: ActionRow, skew_us: int) -> int:
    """From when a call in flight counts as lost: at once if its driver was taken over, else deadline + skew
    (rule 14).
    """
    if action.sent_epoch < run.epoch and run.dead_since_us is not None:
        return run.dead_since_us
    return (action.deadline_us or 0) + skew_us


def next_probe_us(action: ActionRow, dead_since_us: int | None) -> int | None:
    """When to look next at an unknown action; `None`: the schedule is over and no look can prove more (rule 17)."""
    probe = action.contract.probe
    if probe is None or (action.contract.keying.kind == "blind" and probe.strength == "search"):
        return None
    since = action.unknown_since_us or action.outcome_us or action.created_us
    looks = sorted({microseconds(s) for s in probe.schedule_seconds} | {microseconds(probe.deadline_seconds)})
    times = [since + look for look in looks if look <= microseconds(probe.deadline_seconds)]
    final_at = absence_final_at_us(action, dead_since_us)
    if final_at is not None:
        times.append(max(since, final_at + _FINAL_LOOK_AFTER_US))
    last = action.probed_us if action.probes else None
    pending = [time for time in times if last is None or time > last]
    return max(min(pending), _asked_us(action)) if pending else None


def next_look_us(action: ActionRow) -> int | None:
    """When to look again after a look that could not tell, following the probe schedule; `None`: often enough."""
    probe = action.contract.probe
    if probe is None or action.probes >= len(probe.schedule_seconds):
        return None
    if action.probes == 0:
        return 0
    times = probe.schedule_seconds
    due = (action.probed_us or 0) + microseconds(max(0.0, times[action.probes] - times[action.probes - 1]))
    return max(due, _asked_us(action))


def _asked_us(action: ActionRow) -> int:
    """Before when the provider asked not to be asked again; never longer than the probe's deadline."""
    probe, seen = action.contract.probe, action.observation
    if probe is None or seen is None or seen.retry_after_seconds is None or not action.probes:
        return 0
    return (action.probed_us or 0) + microseconds(min(seen.retry_after_seconds, probe.deadline_seconds))


def undo_retry_us(forward: ActionRow, undo: ActionRow) -> int:
    """When an undo that provably did nothing may be sent again, by its own retry policy (rule 19)."""
    retry = forward.contract.undo_alternative(undo.rung).retry
    wait = retry.backoff_seconds * retry.backoff_factor ** max(0, undo.attempt - 1)
    if undo.error is not None and undo.error.retry_after_seconds is not None:
        wait = max(wait, undo.error.retry_after_seconds)
    return (undo.outcome_us or undo.updated_us) + microseconds(wait)


def settle_over_at_us(forward: ActionRow, undo: ActionRow) -> int:
    """From when an effect that is still seen proves that the undo did nothing (rule 19)."""
    retry = forward.contract.undo_alternative(undo.rung).retry
    answered = undo.evidence[-1].code in {"answered", "answer_is_no_proof"} if undo.evidence else False
    start = (undo.outcome_us or undo.updated_us) if answered else (undo.deadline_us or undo.updated_us)
    return start + microseconds(retry.settle_seconds)


def resend_us(action: ActionRow) -> int:
    """When a send that provably did not land may be repeated under the same key."""
    wait = 1.0 * 2.0 ** max(0, action.attempt - 1)
    if action.error is not None and action.error.retry_after_seconds is not None:
        wait = max(wait, action.error.retry_after_seconds)
    return (action.outcome_us or action.updated_us) + microseconds(wait)


def may_resend(action: ActionRow) -> bool:
    """True if the same generation and key may be sent again (rule 5): NotSent, 429, or final absence."""
    return (
        action.outcome is Outcome.FAILED
        and action.error is not None
        and action.error.resendable
        and action.attempt < action.contract.limits.max_attempts
    )
