"""Fold, people: approvals and escalations. Each is decided once; what was decided stays decided (rules 30 and 31)."""

from __future__ import annotations

from dataclasses import replace

from amends.core import events as e
from amends.core.errors import IllegalTransition
from amends.core.fold_actions import action_of, corrupt, moved, with_action
from amends.core.rows import ApprovalRow, EscalationRow, RunState
from amends.core.status import Move


def approval(state: RunState, event: e.Event, body: e.ApprovalAsked | e.ApprovalGiven | e.ApprovalClosed) -> RunState:
    """The state after a question to people was asked, answered or closed."""
    match body:
        case e.ApprovalAsked():
            if body.approval_id in state.approvals:
                raise corrupt(event, f"asks for approval `{body.approval_id}` twice")
            row = ApprovalRow(
                run_id=event.run_id,
                action_id=event.action_id,
                asked_us=event.ts_us,
                **body.model_dump(exclude={"kind", "content_digest"}),
            )
            action = action_of(state, event)
            asked = action.model_copy(
                update=moved(action, Move.ASK)
                | {
                    "approval_id": body.approval_id,
                    "content_digest": body.content_digest or action.content_digest,
                    "updated_us": event.ts_us,
                }
            )
            state = with_action(state, asked)
        case e.ApprovalGiven():
            row = _given(_approval_named(state, event, body.approval_id), event, body)
        case _:
            row = _closed(_approval_named(state, event, body.approval_id), event, body)
    return replace(state, approvals={**state.approvals, row.approval_id: row})


def consumed(state: RunState, event: e.Event, approval_id: str) -> RunState:
    """The state after an intent used an approval (rule 30). Raises `IllegalTransition` if nobody had said yes."""
    row = _approval_named(state, event, approval_id)
    if row.status not in {"approved", "consumed"}:
        raise _decided_already(event, row)
    used = row.model_copy(update={"status": "consumed"})
    return replace(state, approvals={**state.approvals, approval_id: used})


def _approval_named(state: RunState, event: e.Event, approval_id: str) -> ApprovalRow:
    if approval_id not in state.approvals:
        raise corrupt(event, f"speaks of approval `{approval_id}`, which was never asked for")
    return state.approvals[approval_id]


def _decided_already(event: e.Event, row: ApprovalRow) -> IllegalTransition:
    return IllegalTransition(
        f"`{event.body.kind}` cannot follow: approval `{row.approval_id}` is `{row.status}`",
        hint="somebody decided first: read the item again",
        approval_id=row.approval_id,
    )


def _given(row: ApprovalRow, event: e.Event, body: e.ApprovalGiven) -> ApprovalRow:
    if row.status not in {"pending", "approved"}:
        raise _decided_already(event, row)
    if row.digest != body.digest:
        raise IllegalTransition(
            f"approval `{row.approval_id}` was asked for other content than what was approved",
            hint="show the item again and ask anew",
        )
    approvers = row.approvers if body.by in row.approvers else (*row.approvers, body.by)
    roles = tuple(sorted({*row.approver_roles, *body.roles}))
    return row.model_copy(
        update={
            "status": "approved" if row.complete(approvers, roles) else "pending",
            "approvers": approvers,
            "approver_roles": roles,
            "granted_tier": max(row.granted_tier, body.tier),
            "granted_us": event.ts_us,
            "by": body.by,
            "channel": body.channel,
            "comment": body.comment,
        }
    )


def _closed(row: ApprovalRow, event: e.Event, body: e.ApprovalClosed) -> ApprovalRow:
    if row.status not in {"pending", "approved", "consumed"}:
        raise _decided_already(event, row)
    return row.model_copy(
        update={
            "status": body.how,
            "by": body.by,
            "channel": body.channel,
            "comment": body.comment,
            "roll_back": body.roll_back,
        }
    )


def escalation(
    state: RunState,
    event: e.Event,
    body: e.EscalationOpened | e.EscalationNotified | e.EscalationAcknowledged | e.EscalationResolved,
) -> RunState:
    """The state after a work item was opened, delivered, seen or resolved."""
    match body:
        case e.EscalationOpened():
            if body.escalation_id in state.escalations:
                raise corrupt(event, f"opens escalation `{body.escalation_id}` twice")
            if event.action_id:
                action_of(state, event)
            row = EscalationRow(
                run_id=event.run_id,
                action_id=event.action_id,
                opened_us=event.ts_us,
                **body.model_dump(exclude={"kind"}),
            )
        case e.EscalationNotified():
            row = _escalation_named(state, event, body.escalation_id)
            row = row.model_copy(
                update={
                    "notified_us": event.ts_us,
                    "deliveries": row.deliveries + 1,
                    "delivered": row.delivered or body.delivered,
                }
            )
        case e.EscalationAcknowledged():
            row = _open_escalation(state, event, body.escalation_id).model_copy(
                update={"status": "acknowledged", "by": body.by}
            )
        case _:
            row = _open_escalation(state, event, body.escalation_id).model_copy(
                update={
                    "status": "resolved",
                    "choice": body.choice,
                    "by": body.by,
                    "comment": body.comment,
                    "resolved_us": event.ts_us,
                }
            )
    return replace(state, escalations={**state.escalations, row.escalation_id: row})


def _escalation_named(state: RunState, event: e.Event, escalation_id: str) -> EscalationRow:
    if escalation_id not in state.escalations:
        raise corrupt(event, f"speaks of escalation `{escalation_id}`, which was never opened")
    return state.escalations[escalation_id]


def _open_escalation(state: RunState, event: e.Event, escalation_id: str) -> EscalationRow:
    row = _escalation_named(state, event, escalation_id)
    if row.status == "resolved":
        raise IllegalTransition(
            f"`{event.body.kind}` cannot follow: `{row.by}` resolved escalation `{escalation_id}` (`{row.choice}`)",
            hint="somebody decided first: read the item again",
            escalation_id=escalation_id,
        )
    return row
