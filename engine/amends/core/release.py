"""Release: what the outbox may let go, and when a run commits, goes back or waits (rules 26 to 28).

The forward counterpart of the planner: pure, from a run that is `committing` to its next steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from amends.core import schedule
from amends.core.order import dependents
from amends.core.outcomes import folded_late
from amends.core.planner import backward_step
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.core.steps import Facts, Plan, Step

_S = ActionStatus
_LOOK_AGAIN_US = 15_000_000  # a pause is lifted by a person, who tells nobody


def plan_release(state: RunState, facts: Facts, *, check_fresh: bool) -> Plan:
    """The next steps of a committing run. `check_fresh`: its success check was answered since the last change that a
    release rests on, and not too long ago.
    """
    steps = list(_steps(state, facts, check_fresh=check_fresh))
    due = [step.due_us for step in steps if step.due_us is not None]
    return Plan(tuple(steps), _finish(state, steps), min(due, default=None))


def _finish(state: RunState, steps: list[Step]) -> RunStatus | None:
    if any(step.verb != "wait" or step.due_us is not None for step in steps):
        return None
    if steps or any(a.status is _S.NEEDS_HUMAN for a in state.actions.values()):
        return RunStatus.NEEDS_HUMAN
    return RunStatus.COMMITTED


def is_release(action: ActionRow) -> bool:
    """True for what leaves through the outbox (a gate is not the pivot, rule 29)."""
    return action.release_mode in {"on_success", "on_approval"}


def newest_of_slots(state: RunState) -> tuple[ActionRow, ...]:
    """The last generation of every slot, and every twin: what the run's success is judged by."""
    newest: dict[str, ActionRow] = {}
    for action in state.forward_actions():
        key = action.slot if action.kind is ActionKind.DO else action.action_id
        newest[key] = action
    return tuple(newest.values())


def all_actions_succeeded(state: RunState) -> bool:
    """The built-in success check: every compensatable action succeeded, or was never sent and is not required."""
    return not any(_in_trouble(state, a) or _undecided(a) for a in newest_of_slots(state) if not is_release(a))


def _twin(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    """A twin the provider made is undone by the ordinary path before the pivot, by a person after it (rule 7)."""
    if action.kind is not ActionKind.DUPLICATE:
        return None
    step = backward_step(state, action, facts)
    if step is not None and step.verb == "compensate" and state.pivot_passed:
        return Step("escalate", action.action_id, "the_provider_made_two", cause=ParkedCause.UNREGISTERED)
    return step


def _in_trouble(state: RunState, action: ActionRow) -> bool:
    if action.kind is ActionKind.DUPLICATE or _taken_back(state, action):
        return False
    if action.status in {_S.DENIED, _S.WITHDRAWN}:
        return action.required
    return action.status in {_S.FAILED, _S.NEEDS_HUMAN, _S.COMPENSATING, _S.COMPENSATED} and not action.accepted_by


def _taken_back(state: RunState, action: ActionRow) -> bool:
    """True for what a recovery to a checkpoint has settled: the run went on without it (rule 24)."""
    if action.status not in {_S.FAILED, _S.DENIED, _S.WITHDRAWN, _S.COMPENSATED}:
        return False
    return any(after < action.seq < until for after, until in state.run.taken_back)


def _undecided(action: ActionRow) -> bool:
    return action.status in {_S.RUNNING, _S.UNKNOWN, _S.PLANNED, _S.AWAITING_APPROVAL} and not action.accepted_by


def _steps(state: RunState, facts: Facts, *, check_fresh: bool) -> Iterator[Step]:
    prerequisites = [a for a in newest_of_slots(state) if not is_release(a)]
    late = [step for a in prerequisites if (step := _late_evidence(a, facts)) is not None]
    if late:
        yield from late
        return
    twins = [step for a in prerequisites if (step := _twin(state, a, facts)) is not None]
    if twins:
        yield from twins
        return
    trouble = [a for a in prerequisites if _in_trouble(state, a)]
    if trouble and not state.pivot_passed:
        yield Step("turn_back", "", "a_step_did_not_succeed", {"slots": [a.slot for a in trouble]})
        return
    open_steps = [step for a in prerequisites if (step := _undecided_step(state, a, facts)) is not None]
    open_steps += [step for a in prerequisites if (step := _provisional(state, a, facts)) is not None]
    if open_steps:
        yield from open_steps
        return
    yield from _outbox(state, facts, check_fresh=check_fresh)


def _undecided_step(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    """What to do about a prerequisite, or a released item, whose outcome is open."""
    late = _late_evidence(action, facts)
    if late is not None:
        return late
    if action.accepted_by and action.status is _S.UNKNOWN:
        return None
    match action.status:
        case _S.RUNNING:
            over = schedule.flight_over_at_us(state.run, action, facts.skew_us)
            if facts.now_us < over:
                return Step("wait", action.action_id, "call_in_flight", due_us=over)
            return Step("reconcile", action.action_id, "call_lost")
        case _S.UNKNOWN:
            return _unknown(state, action, facts)
        case _S.PLANNED | _S.QUEUED | _S.AWAITING_APPROVAL if not is_release(action):
            return Step("withdraw", action.action_id, "gate_was_not_passed")
        case _:
            return None


def _provisional(state: RunState, action: ActionRow, facts: Facts) -> Step | None:
    """A success the provider may still revoke is looked at once more before anything rests on it (rule 7)."""
    until = provisional_until_us(action)
    if until is None or facts.now_us >= until or action.status is not _S.SUCCEEDED or action.accepted_by:
        return None
    look = Step("reconcile", action.action_id, "success_is_provisional", purpose="still_there")
    if action.probed_us is None or action.probed_us < state.run.moved_us or action.observation is None:
        return look
    if action.observation.seen in {"applied", "many"}:
        return None
    due = absence_of_success_final_us(action) if action.observation.seen == "absent" else schedule.next_look_us(action)
    if due is None:
        return Step("escalate", action.action_id, "a_provisional_success_cannot_be_confirmed")
    return look if due <= facts.now_us else Step("wait", action.action_id, "success_is_provisional", due_us=due)


def provisional_until_us(action: ActionRow) -> int | None:
    """Until when the provider may revoke a success; `None`: it stands."""
    window = action.contract.provisional_for_seconds
    if window is None or action.contract.probe is None or action.outcome is not Outcome.SUCCEEDED:
        return None
    return (action.outcome_us or 0) + schedule.microseconds(window)


def absence_of_success_final_us(action: ActionRow) -> int | None:
    """From when `absent` proves that a recorded success was revoked: what was made may be seen late. `None`: never."""
    probe = action.contract.probe
    if probe is None or not probe.absence_can_be_final:
        return None
    return (action.outcome_us or 0) + schedule.microseconds(probe.absent_final_after_seconds or 0.0)


def _late_evidence(action: ActionRow, facts: Facts) -> Step | None:
    """Evidence that arrived late and proves something is folded before anything else is done (rule 13)."""
    if folded_late(action, at_us=facts.now_us) is None:
        return None
    return Step("reconcile", action.action_id, "late_evidence")


def _unknown(state: RunState, action: ActionRow, facts: Facts) -> Step:
    if action.action_id not in facts.usable:
        return Step("escalate", action.action_id, "adapter_unavailable", cause=ParkedCause.ADAPTER_UNAVAILABLE)
    if action.observation is not None and action.observation.seen == "diverged" and action.probes:
        return Step("escalate", action.action_id, "state_is_neither_before_nor_after", cause=ParkedCause.DIVERGED)
    due = schedule.next_probe_us(action, state.run.dead_since_us)
    if due is None:
        return Step("escalate", action.action_id, "no_proof_by_deadline", {"probes": action.probes})
    if due > facts.now_us:
        return Step("wait", action.action_id, "next_probe", {"probes": action.probes}, due_us=due)
    return Step("reconcile", action.action_id, "outcome_unknown", {"probes": action.probes})


def _outbox(state: RunState, facts: Facts, *, check_fresh: bool) -> Iterator[Step]:
    items = [a for a in state.forward_actions() if is_release(a)]
    waiting = [a for a in items if a.status in {_S.QUEUED, _S.AWAITING_APPROVAL} or _resendable(a)]
    if state.run.check and (waiting or not state.pivot_passed):  # a run that releases nothing must have succeeded too
        verdict = _check(state, facts, check_fresh=check_fresh)
        if verdict is not None:
            yield from (step for a in items if (step := _undecided_step(state, a, facts)) is not None)
            yield verdict
            return
    stopped: set[str] = set()
    for item in items:
        for dependent in dependents(state, item.action_id):
            if item.action_id in stopped or _stops(item):
                stopped.add(dependent.action_id)
        step = _item(state, item, facts, stopped=item.action_id in stopped)
        if step is None:
            continue
        if step.verb == "release" and facts.paused:
            step = Step("wait", item.action_id, "paused", due_us=facts.now_us + _LOOK_AGAIN_US)
        yield step
        if step.verb in {"release", "turn_back", "reconcile"}:
            return  # one send at a time, in the order declared; then look again


def _check(state: RunState, facts: Facts, *, check_fresh: bool) -> Step | None:
    if not check_fresh:
        return Step("check", "", "success_must_be_verified_at_release")
    if state.run.check_answer == "passed":
        return None
    if state.run.check_answer == "not_passed" and not state.pivot_passed:
        return Step("turn_back", "", "success_check_not_passed")
    return Step("wait", "", f"success_check_{state.run.check_answer}", due_us=facts.check_due_us)


def _stops(item: ActionRow) -> bool:
    """Trouble with an item stops what depends on it; a doubt that a person accepted does not."""
    if item.status is _S.UNKNOWN:
        return not item.accepted_by
    return item.status is not _S.SUCCEEDED


def _resendable(item: ActionRow) -> bool:
    return item.status is _S.FAILED and schedule.may_resend(item)


def _item(state: RunState, item: ActionRow, facts: Facts, *, stopped: bool) -> Step | None:
    match item.status:
        case _S.QUEUED if item.accepted_by:
            return Step("withdraw", item.action_id, "a_person_accepted_that_it_is_not_sent")
        case _S.QUEUED:
            return _queued(state, item, facts, stopped=stopped)
        case _S.AWAITING_APPROVAL:
            return _late_evidence(item, facts) or _awaiting(state, item, facts, stopped=stopped)
        case _S.DENIED | _S.WITHDRAWN:
            return _late_evidence(item, facts)
        case _S.FAILED:
            return _late_evidence(item, facts) or _failed(state, item, facts)
        case _:
            return _undecided_step(state, item, facts)


def _queued(state: RunState, item: ActionRow, facts: Facts, *, stopped: bool) -> Step:
    if stopped:
        return _stopped(state, item)
    if item.release_mode == "on_approval" and not _approved(state, item, facts):
        return Step("ask", item.action_id, "a_person_approves_this_item")
    return Step("release", item.action_id, "run_succeeded")


def _approved(state: RunState, item: ActionRow, facts: Facts) -> bool:
    """True while a yes to this very item is in force: single use, reused for re-sends until it expires (rule 30)."""
    approval = state.approvals.get(item.approval_id)
    return approval is not None and approval.status in {"approved", "consumed"} and facts.now_us < approval.expires_us


def _stopped(state: RunState, item: ActionRow) -> Step:
    before = [
        a for a in state.forward_actions() if item.action_id in {d.action_id for d in dependents(state, a.action_id)}
    ]
    if any(a.status in {_S.WITHDRAWN, _S.DENIED} or (a.status is _S.FAILED and a.accepted_by) for a in before):
        return Step("withdraw", item.action_id, "what_it_depends_on_was_withdrawn")
    return Step("wait", item.action_id, "what_it_depends_on_is_not_through")


def _awaiting(state: RunState, item: ActionRow, facts: Facts, *, stopped: bool) -> Step:
    if stopped:
        return _stopped(state, item)
    approval = state.approvals[item.approval_id]
    match approval.status:
        case "approved" if _approved(state, item, facts):
            return Step("release", item.action_id, "approved")
        case "approved":
            return Step("ask", item.action_id, "the_approval_has_expired")
        case "pending" if facts.now_us < approval.expires_us:
            return Step("wait", item.action_id, "awaits_approval", due_us=approval.expires_us)
        case "voided":
            return Step("ask", item.action_id, "what_was_approved_has_changed")
        case "refused" if approval.roll_back and not state.pivot_passed:
            return Step("turn_back", item.action_id, "a_person_said_roll_back")
        case "refused":
            return Step("withdraw", item.action_id, "refused")
        case _:
            return Step("escalate", item.action_id, "approval_expired", cause=ParkedCause.DENIED)


def _failed(state: RunState, item: ActionRow, facts: Facts) -> Step | None:
    if item.accepted_by:
        return None
    if schedule.may_resend(item):
        due = schedule.resend_us(item)
        if due > facts.now_us:
            return Step("wait", item.action_id, "send_again_later", due_us=due)
        if item.approval_id and not _approved(state, item, facts):
            return Step("ask", item.action_id, "the_approval_has_expired")
        return Step("release", item.action_id, "nothing_landed_send_again")
    if not state.pivot_passed:
        return Step("turn_back", item.action_id, "first_release_failed")
    code = item.error.code if item.error else ""
    return Step("escalate", item.action_id, "release_refused", {"code": code}, cause=ParkedCause.NOT_DELIVERED)


def outcome_open(action: ActionRow) -> bool:
    """True while it is not known what a sent action did."""
    return action.status in {_S.RUNNING, _S.UNKNOWN} or action.outcome is Outcome.UNKNOWN
