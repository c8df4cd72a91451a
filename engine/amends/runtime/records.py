"""Records: what a journal is given and gives back, made from and into what the core knows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel

from amends.core import events as e
from amends.core.errors import InternalError
from amends.core.rows import (
    ActionRow,
    ApprovalRow,
    BundleRow,
    CertificateRow,
    ClaimRow,
    EscalationRow,
    PauseRow,
    PolicyRow,
    QuarantineRow,
    Row,
    RowKind,
    RunRow,
    RunState,
)
from amends.ports.journal import EventRecord, RowKey, RowWrite, StoredRow, seal

_Model = TypeVar("_Model", bound=BaseModel)


def record_of(event: e.Event, state: RunState | None) -> EventRecord:
    """The event as columns, sealed; `state` is the run after it, `None` for the system stream."""
    action = state.actions.get(event.action_id) if state else None
    run = state.run if state else None
    return seal(
        EventRecord(
            event_id=event.event_id,
            ts_us=event.ts_us,
            run_id=event.run_id,
            run_seq=event.run_seq,
            action_id=event.action_id,
            slot=action.slot if action else "",
            generation=action.generation if action else 0,
            attempt=action.attempt if action else 0,
            epoch=event.epoch,
            kind=event.body.kind,
            status=action.status.value if action else (run.status.value if run else ""),
            outcome=action.outcome.value if action else "",
            capability=action.capability if action else "",
            system=action.contract.effect.system if action else "",
            provider=action.instance if action else "",
            tenant=run.tenant if run else "",
            workflow=run.workflow if run else "",
            policy_version=_policy_version(event.body, action),
            decision_id=_decision_id(event.body, action),
            payload=e.encode(event.body),
            digest="",
        )
    )


def rows_of(state: RunState) -> Iterator[Row]:
    """Every row of a run."""
    yield from _own_rows(state)
    yield from state.claims.values()


def changed(before: RunState, after: RunState) -> Iterator[Row]:
    """The rows that `after` has and `before` has not, but for claims: those are shared between runs."""
    known = {id(row) for row in _own_rows(before)}
    return (row for row in _own_rows(after) if id(row) not in known)


def key_of(row: Row) -> RowKey:
    """The key a row is stored under."""
    kind, key, *_ = _facts_of(row)
    return RowKey(kind, key)


def _own_rows(state: RunState) -> Iterator[Row]:
    yield state.run
    yield from state.actions.values()
    yield from state.approvals.values()
    yield from state.escalations.values()


def _policy_version(body: e.Body, action: ActionRow | None) -> str:
    if isinstance(body, e.DecisionRecorded):
        return body.decision.policy_version
    if isinstance(body, e.BundleRecorded | e.BundleActivated | e.BundleRejected):
        return body.policy_version
    if action is None:
        return ""
    return action.forward_policy_version or (action.decided.policy_version if action.decided else "")


def _decision_id(body: e.Body, action: ActionRow | None) -> str:
    if isinstance(body, e.DecisionRecorded):
        return body.decision.decision_id
    return action.decided.decision_id if action and action.decided else ""


def state_of(rows: Sequence[StoredRow]) -> RunState:
    """A run from its stored rows. Raises `ValidationError` or `StopIteration` for rows that cannot be read."""
    actions = _decoded(rows, "action", ActionRow)
    return RunState(
        run=next(iter(_decoded(rows, "run", RunRow).values())),
        actions=dict(sorted(actions.items(), key=lambda item: item[1].seq)),
        approvals=_decoded(rows, "approval", ApprovalRow),
        escalations=_decoded(rows, "escalation", EscalationRow),
        claims=_decoded(rows, "claim", ClaimRow),
    )


def _decoded(rows: Sequence[StoredRow], kind: RowKind, model: type[_Model]) -> dict[str, _Model]:
    return {row.key.key: model.model_validate_json(row.body) for row in rows if row.key.kind == kind}


def write_of(row: Row) -> RowWrite:
    """The row as a journal stores it: key, and the few columns it may look at."""
    kind, key, run_id, status, active = _facts_of(row)
    return RowWrite(
        key=RowKey(kind, key),
        run_id=run_id,
        status=status,
        body=row.model_dump_json(),
        epoch=row.epoch if isinstance(row, RunRow) else 0,
        due_us=row.due_us if isinstance(row, RunRow) else None,
        active=active,
    )


def _facts_of(row: Row) -> tuple[RowKind, str, str, str, bool]:
    match row:
        case RunRow():
            return "run", row.run_id, row.run_id, row.status.value, not row.terminal
        case ActionRow():
            return "action", row.action_id, row.run_id, row.status.value, True
        case ApprovalRow():
            return "approval", row.approval_id, row.run_id, row.status, row.status == "pending"
        case EscalationRow():
            return "escalation", row.escalation_id, row.run_id, row.status, row.status != "resolved"
        case ClaimRow():
            return "claim", row.claim, row.run_id, "held" if row.held else "released", row.held
        case _:
            return _system_facts(row)


def _system_facts(row: Row) -> tuple[RowKind, str, str, str, bool]:
    match row:
        case PauseRow():
            return "pause", row.scope, e.SYSTEM_STREAM, "", row.active
        case BundleRow():
            return "bundle", row.effective_digest, e.SYSTEM_STREAM, row.policy_version, True
        case PolicyRow():
            return "policy", row.key, e.SYSTEM_STREAM, row.policy_version, True
        case QuarantineRow():
            return "quarantine", row.run_id, e.SYSTEM_STREAM, row.status, row.active
        case CertificateRow():
            return "certificate", row.key, e.SYSTEM_STREAM, "", True
        case _:
            raise InternalError(f"a `{type(row).__name__}` is no row of the system stream", hint="report this")
