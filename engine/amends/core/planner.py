"""The planner of recovery: from a run's state and a few facts to the next steps, purely (rules 17 to 25).

`plan` answers what may be done *now*, what must wait until when, and whether the run has reached its fixpoint. It
never sees an adapter or a clock; the runtime carries the steps out, records them and asks again. A forward call is
never among the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from amends.core import schedule
from amends.core.canonical import Json
from amends.core.correction import corrections_due
from amends.core.events import Verb
from amends.core.order import dependents
from amends.core.outcomes import folded_late
from amends.core.rows import ActionRow, RunState
from amends.core.settling import (
    in_scope,
    looked_since_outcome,
    may_have_residue,
    rungs,
    settled,
    unexpired_rungs,
)
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.core.steps import Facts, Plan, Step

_S = ActionStatus


def plan(state: RunState, facts: Facts) -> Plan:
    """The next steps of a run that is recovering backwards, newest action first."""
    steps: list[Step] = []
    for action in reversed(state.forward_actions()):
        step = backward_step(state, action, facts)
        if step is not None and step.verb == "compensate" and state.pivot_passed:
            step = _escalate(action, ParkedCause.UNREGISTERED, "the_run_is_past_its_pivot")
        if step is not None:
            steps.append(step)
    steps.extend(_correction_steps(state, facts))
    due = [step.due_us for step in steps if step.due_us is not None]
    return Plan(steps=tuple(steps), finish=_finish(state, steps), due_us=min(due, default=None))


def _finish(state: RunState, steps: list[Step]) -> RunStatus | None:
    if any(step.verb != "wait" or step.due_us is not None for step in steps):
        return None
    if any(a.status is _S.NEEDS_HUMAN or _undeliverable(a) for a in state.actions.values()) or steps:
        return RunStatus.NEEDS_HUMAN
    if state.run.recover_to:
        return RunStatus.OPEN
    unheard = any(item.status != "resolved" for item in state.escalations.values())  # rule 23
    return RunStatus.NEEDS_HUMAN if unheard else RunStatus.RECOVERED


# --- one forward action -------------------------------------------------------------------------------------


def backward_step(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    """What recovery does about one forward action now; `None`: nothing, it is settled or a person's."""
    if settled(state, action):
        return None
    late = _late_evidence(action, facts)
    if late is not None:
        return late
    match action.status:
        case _S.PLANNED | _S.QUEUED | _S.AWAITING_APPROVAL:
            if not in_scope(state, action):
                return None
            return _unsent(action)
        case _S.RUNNING:
            return _in_flight(state, action, facts)
        case _S.UNKNOWN:
            return _unknown(state, action, facts)
        case _S.FAILED:
            return _usable(action, facts) or _residue(state, action, facts)
        case _S.SUCCEEDED:
            return _succeeded(state, action, facts)
        case _S.COMPENSATING:
            return _compensating(state, action, facts)
        case _S.COMPENSATED:
            return _late_check(action, facts)
        case _:
            return None  # needs_human: a person moves it (rule 22)


def _unsent(action: ActionRow) -> Step:
    """What waits is not sent any more; what was asked about again had been sent once, and came to nothing."""
    if not action.ever_sent:
        return Step("skip", action.action_id, "never_sent", {"status": action.status.value})
    if may_have_residue(action):
        return _escalate(action, ParkedCause.UNKNOWN, "a_failed_send_may_have_left_parts")
    return Step("skip", action.action_id, "nothing_landed", {"status": action.status.value})


def _usable(action: ActionRow, facts: Facts) -> Step | None:
    if action.action_id in facts.usable:
        return None
    return _escalate(action, ParkedCause.ADAPTER_UNAVAILABLE, "adapter_unavailable")


def _escalate(action: ActionRow, cause: ParkedCause, reason: str, **facts: Json) -> Step:
    return Step("escalate", action.action_id, reason, facts, cause=cause)


def _in_flight(state: RunState, action: ActionRow, facts: Facts) -> Step:
    over = schedule.flight_over_at_us(state.run, action, facts.skew_us)
    if facts.now_us < over:
        return Step("wait", action.action_id, "call_in_flight", {"until_us": over}, due_us=over)
    return Step("reconcile", action.action_id, "call_lost", {"since_us": over})


def _unknown(state: RunState, action: ActionRow, facts: Facts) -> Step:
    unusable = _usable(action, facts)
    if unusable is not None:
        return unusable
    if action.observation is not None and action.observation.seen == "diverged" and action.probes:
        return _escalate(action, ParkedCause.DIVERGED, "state_is_neither_before_nor_after")
    due = schedule.next_probe_us(action, state.run.dead_since_us)
    if due is None:
        return _unprovable(state, action, facts)
    if due > facts.now_us:
        return Step("wait", action.action_id, "next_probe", {"probes": action.probes}, due_us=due)
    return Step("reconcile", action.action_id, "outcome_unknown", {"probes": action.probes})


def _late_evidence(action: ActionRow, facts: Facts) -> Step | None:
    """Evidence that arrived late and proves something is folded before anything else is done (rule 13)."""
    if folded_late(action, at_us=facts.now_us) is None:
        return None
    return Step("reconcile", action.action_id, "late_evidence")


def _unprovable(state: RunState, action: ActionRow, facts: Facts) -> Step:
    harmless = [
        r for r in unexpired_rungs(action, facts.now_us) if Outcome.UNKNOWN in r.safe_when and r.harmless_when_absent
    ]
    if harmless and action.contract.probe is not None and in_scope(state, action):
        return (
            _only_parts(action)
            or _under_residue(state, action)
            or _blocked(state, action)
            or Step("compensate", action.action_id, "unknown_but_harmless", {"rung": harmless[0].name})
        )
    reason = "no_proof_by_deadline" if action.contract.probe else "no_way_to_look"
    return _escalate(action, ParkedCause.UNKNOWN, reason, probes=action.probes)


def _only_parts(action: ActionRow) -> Step | None:
    """Some parts exist, and no inverse is registered that takes back less than the whole (rule 7)."""
    observation = action.observation
    if action.contract.partial_inverse or observation is None or observation.seen not in {"applied", "many"}:
        return None
    if not set(action.contract.parts) - set(observation.parts or action.parts):
        return None
    return _escalate(action, ParkedCause.UNREGISTERED, "only_some_parts_exist", parts=list(observation.parts))


def _residue(state: RunState, action: ActionRow, facts: Facts) -> Step:
    observation = action.observation if looked_since_outcome(action) else None
    if observation is not None and observation.seen in {"applied", "many"}:
        return (
            _only_parts(action)
            or _under_residue(state, action)
            or _blocked(state, action)
            or Step("compensate", action.action_id, "a_failed_call_left_parts")
        )
    if observation is not None and observation.seen == "diverged":
        return _escalate(action, ParkedCause.DIVERGED, "state_is_neither_before_nor_after")
    return _look_again(action, facts) or Step("reconcile", action.action_id, "may_have_residue", purpose="residue")


def _look_again(action: ActionRow, facts: Facts) -> Step | None:
    """Waits or gives up after looks that could not tell; `None`: look now."""
    if action.observation is not None and action.observation.seen in {"applied", "many"}:
        return None  # the last look could tell, such as the one that counts after success
    due = schedule.next_look_us(action)
    if due is None:
        return _escalate(action, ParkedCause.UNKNOWN, "the_system_cannot_be_read", probes=action.probes)
    if due > facts.now_us:
        return Step("wait", action.action_id, "next_look", {"probes": action.probes}, due_us=due)
    return None


def _succeeded(state: RunState, action: ActionRow, facts: Facts) -> Step:
    if not rungs(action):
        return _escalate(action, ParkedCause.UNREGISTERED, "no_registered_compensation")
    unusable = _usable(action, facts)
    if unusable is not None:
        return unusable
    residue = _under_residue(state, action)
    if residue is not None:
        return residue
    if not unexpired_rungs(action, facts.now_us):
        return _escalate(action, ParkedCause.UNDO_FAILED, "compensation_window_expired")
    return (
        _blocked(state, action)
        or _look_again(action, facts)
        or Step("compensate", action.action_id, "run_is_recovering", {"rung": rungs(action)[0].name})
    )


def _under_residue(state: RunState, action: ActionRow) -> Step | None:
    """What an irreversible effect rests on is a person's to decide (rule 29)."""
    residue = [d for d in dependents(state, action.action_id) if d.gated_residue and not d.accepted_by]
    if not residue:
        return None
    return _escalate(
        action, ParkedCause.UNREGISTERED, "an_irreversible_effect_rests_on_it", residue=[d.slot for d in residue]
    )


def _blocked(state: RunState, action: ActionRow) -> Step | None:
    waiting = [d for d in dependents(state, action.action_id) if not settled(state, d)]
    if not waiting:
        return None
    return Step("wait", action.action_id, "dependents_first", {"on": [d.slot for d in waiting]})


def _compensating(state: RunState, action: ActionRow, facts: Facts) -> Step:
    undo = state.undo_of(action)
    unusable = _usable(action, facts)
    if undo is None or unusable is not None:
        return unusable or _escalate(action, ParkedCause.UNDO_FAILED, "undo_is_missing")
    match undo.status:
        case _S.RUNNING:
            step = _in_flight(state, undo, facts)
            return Step(step.verb, action.action_id, f"undo_{step.reason}", step.facts, step.due_us, "verify_undone")
        case _S.UNKNOWN | _S.SUCCEEDED:  # however sure the answer was: a separate read decides (rule 18)
            return _undo_unknown(state, action, undo, facts)
        case _S.FAILED:
            return _undo_failed(action, undo, facts)
        case _S.PLANNED | _S.QUEUED | _S.AWAITING_APPROVAL:
            held = _approval(state, undo, facts)
            if held is not None:
                return replace(held, action_id=action.action_id, reason=f"undo_{held.reason}")
            return _look_again(action, facts) or Step("compensate", action.action_id, "undo_ready")
        case _:
            return _escalate(action, ParkedCause.UNDO_FAILED, f"undo_is_{undo.status}")


def _undo_unknown(state: RunState, action: ActionRow, undo: ActionRow, facts: Facts) -> Step:
    due = schedule.next_probe_us(undo, state.run.dead_since_us)
    settle = schedule.settle_over_at_us(action, undo)
    if undo.probed_us is None or settle > undo.probed_us:
        due = min(settle, due or settle)
    if due is None:
        return _escalate(action, ParkedCause.UNDO_FAILED, "undo_cannot_be_verified", probes=undo.probes)
    if due > facts.now_us:
        return Step("wait", action.action_id, "undo_settling", {"probes": undo.probes}, due_us=due)
    return Step("reconcile", action.action_id, "undo_unverified", {"probes": undo.probes}, purpose="verify_undone")


def _undo_failed(action: ActionRow, undo: ActionRow, facts: Facts) -> Step:
    retry = action.contract.undo_alternative(undo.rung).retry
    resendable = undo.error is not None and undo.error.resendable
    if resendable and undo.attempt < retry.attempts:
        due = schedule.undo_retry_us(action, undo)
        if due > facts.now_us:
            return Step("wait", action.action_id, "undo_retry", {"attempts": undo.attempt}, due_us=due)
        return _look_again(action, facts) or Step(
            "compensate", action.action_id, "undo_retry", {"attempts": undo.attempt}
        )
    if any(r.name not in action.tried_rungs for r in unexpired_rungs(action, facts.now_us)):
        return _look_again(action, facts) or Step(
            "compensate", action.action_id, "next_alternative", {"tried": list(action.tried_rungs)}
        )
    code = undo.error.code if undo.error else "failed"
    return _escalate(action, ParkedCause.UNDO_FAILED, "undo_exhausted", attempts=undo.attempt, code=code)


def _approval(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    """What an unsent action waits for from people; `None`: it may be tried (policy is asked again at the send)."""
    approval = state.approvals.get(action.approval_id)
    if approval is None or approval.status in {"approved", "voided"}:
        return None
    if approval.status == "pending" and facts.now_us < approval.expires_us:
        return Step("wait", action.action_id, "awaits_approval", due_us=approval.expires_us)
    how = "expired" if approval.status == "pending" else approval.status
    return _escalate(action, ParkedCause.DENIED, f"approval_{how}")


def _late_check(action: ActionRow, facts: Facts) -> Step:
    due = action.late_check_due_us or 0
    if action.action_id not in facts.usable:
        return _escalate(action, ParkedCause.ADAPTER_UNAVAILABLE, "adapter_unavailable")
    if action.probes:
        due = max(due, schedule.next_look_us(action) or due)
    if due > facts.now_us:
        return Step("wait", action.action_id, "late_landing_possible", due_us=due, purpose="late_check")
    return Step("reconcile", action.action_id, "late_landing_possible", purpose="late_check")


# --- corrections --------------------------------------------------------------------------------------------


def _correction_steps(state: RunState, facts: Facts) -> Iterator[Step]:
    for place in corrections_due(state, settled_or_parked(state)):
        yield Step("correct", "", "people_saw_it", {"place": place}, place=place)
    for action in state.actions.values():
        if action.kind is ActionKind.CORRECT:
            step = _posting(state, action, facts)
            if step is not None:
                yield step


def settled_or_parked(state: RunState) -> frozenset[str]:
    """Forward actions that will not change by themselves."""
    return frozenset(
        a.action_id
        for a in state.forward_actions()
        if settled(state, a) or a.status is _S.NEEDS_HUMAN or not in_scope(state, a)
    )


def _posting(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    late = _late_evidence(action, facts)
    if late is not None or action.accepted_by:
        return late
    match action.status:
        case _S.RUNNING:
            return _in_flight(state, action, facts)
        case _S.UNKNOWN:
            return _unknown(state, action, facts)
        case _S.FAILED if schedule.may_resend(action):
            due = schedule.resend_us(action)
            verb: Verb = "wait" if due > facts.now_us else "correct"
            return Step(
                verb, action.action_id, "post_again", due_us=due if verb == "wait" else None, place=action.place
            )
        case _S.FAILED:
            return _escalate(action, ParkedCause.NOT_DELIVERED, "correction_undeliverable", place=action.place)
        case _S.PLANNED | _S.QUEUED | _S.AWAITING_APPROVAL:
            return _approval(state, action, facts) or Step("correct", action.action_id, "post", place=action.place)
        case _:
            return None


def _undeliverable(action: ActionRow) -> bool:
    """A correction that will never be posted: it blocks `recovered` (rule 32)."""
    return action.kind is ActionKind.CORRECT and action.status in {_S.DENIED, _S.WITHDRAWN} and not action.accepted_by
