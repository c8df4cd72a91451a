"""Reports: what exists, what might, what can be undone, who decides — each line with its evidence."""

from __future__ import annotations

from amends.core import public
from amends.core.canonical import Json
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, Outcome

_S = ActionStatus


def run_report(state: RunState) -> dict[str, Json]:
    """The whole report of a run as one document."""
    public_state = public.of_run(state)
    forward = state.forward_actions()
    return {
        "run_id": state.run.run_id,
        "tenant": state.run.tenant,
        "workflow": state.run.workflow,
        "run_key": state.run.run_key,
        "run_status": state.run.status.value,
        "reason": state.run.reason,
        "owner": state.run.owner,
        "public_state": public_state.value,
        "message": public.run_message(public_state),
        "sealed": state.sealed,
        "exists": [_line(a, _evidence(a)) for a in forward if exists(a)],
        "might_exist": [_line(a, _evidence(a)) for a in forward if might_exist(a)],
        "can_be_undone": [_line(a, _way_back(a)) for a in forward if exists(a) or might_exist(a)],
        "who_decides": [*_escalated(state), *_asked(state)],
        "taken_back": [_line(a, a.compensated_how) for a in forward if a.status is _S.COMPENSATED],
        "never_sent": [_line(a, a.withdrawn_reason or a.status.value) for a in forward if not a.ever_sent],
        "corrections": [_correction(a) for a in state.actions.values() if a.kind is ActionKind.CORRECT],
    }


def exists(action: ActionRow) -> bool:
    """True if the effect exists on authoritative evidence."""
    return action.ever_sent and action.outcome is Outcome.SUCCEEDED and action.status is not _S.COMPENSATED


def might_exist(action: ActionRow) -> bool:
    """True if the effect may exist: sent, and neither proven nor disproven."""
    open_outcome = action.outcome in {Outcome.UNKNOWN, Outcome.NONE}
    return action.ever_sent and open_outcome and action.status is not _S.COMPENSATED


def _line(action: ActionRow, why: str) -> dict[str, Json]:
    return {
        "action_id": action.action_id,
        "capability": action.capability,
        "resource": action.resource,
        "status": action.status.value,
        "outcome": action.outcome.value,
        "reference": action.reference,
        "evidence": why,
    }


def _evidence(action: ActionRow) -> str:
    if not action.evidence:
        return "intent recorded, no answer yet"
    last = action.evidence[-1]
    words = f"{last.code} by {last.source}"
    return f"{words}: {last.detail}" if last.detail else words


def _way_back(action: ActionRow) -> str:
    if action.contract.irreversible:
        return "cannot be undone: it is listed and corrected"
    rungs = ", then ".join(f"{r.name} ({action.contract.undo_action_name(r)})" for r in action.contract.compensation)
    return f"{rungs}; cost: {action.contract.undo_cost or 'not stated'}"


def _escalated(state: RunState) -> list[Json]:
    return [
        {
            "escalation_id": item.escalation_id,
            "owner": item.owner,
            "queue": item.queue,
            "cause": item.cause,
            "in_doubt": item.in_doubt,
            "choices": list(item.choices),
            "evidence": item.known,
        }
        for item in state.escalations.values()
        if item.status != "resolved"
    ]


def _asked(state: RunState) -> list[Json]:
    return [
        {
            "approval_id": row.approval_id,
            "owner": f"tier {row.tier} {'/'.join(row.roles)}".strip(),
            "cause": f"{row.phase} approval",
            "in_doubt": "; ".join(row.reasons),
            "choices": ["approve", "reject"],
            "evidence": f"digest {row.digest}",
        }
        for row in state.approvals.values()
        if row.status == "pending"
    ]


def _correction(action: ActionRow) -> dict[str, Json]:
    return {
        "place": action.place,
        "revision": action.revision,
        "status": action.status.value,
        "text": action.args.get("text", ""),
    }
