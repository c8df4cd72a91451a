"""People's decisions in a script: which question or work item is meant, and the answer through the public API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.core.rows import ApprovalRow, EscalationRow
from amends.testing.scenarios import script_model as s

Decision: TypeAlias = s.Approve | s.Reject | s.Resolve


class ScriptError(Exception):
    """The script did not go as it says: which entry, what was expected, what was found."""


def decide(engine: Engine, entry: Decision) -> None:
    """A person answers the newest question or work item that fits. Raises `ScriptError` if none does."""
    item = _item(entry)
    kind = "escalation" if isinstance(entry, s.Resolve) else "question"
    waiting: Sequence[ApprovalRow | EscalationRow] = (
        engine.escalations() if isinstance(entry, s.Resolve) else engine.approvals()
    )
    fitting = [row for row in waiting if _fits(engine, row, item)]
    if not fitting:
        found = [_words(engine, row) for row in waiting]
        raise ScriptError(f"no {kind} fits {item.model_dump(exclude_defaults=True)}; there are {found}")
    row = fitting[-1]
    try:
        _answer(engine, entry, row, item)
    except AmendsError as error:
        if type(error).__name__ != item.raises:
            raise ScriptError(f"raised {type(error).__name__}: {error}") from error
        return
    if item.raises:
        raise ScriptError(f"must raise {item.raises}, but was recorded")


def _item(entry: Decision) -> s.Item:
    match entry:
        case s.Approve():
            return entry.approve
        case s.Reject():
            return entry.reject
        case s.Resolve():
            return entry.resolve


def _answer(engine: Engine, entry: Decision, row: ApprovalRow | EscalationRow, item: s.Item) -> None:
    match entry, row:
        case s.Approve(), ApprovalRow():
            engine.approve(row.approval_id, by=item.by, channel="scenario", comment=item.comment, digest=row.digest)
        case s.Reject(), ApprovalRow():
            engine.reject(
                row.approval_id, by=item.by, channel="scenario", comment=item.comment, roll_back=item.roll_back
            )
        case _, EscalationRow():
            engine.resolve(
                row.escalation_id,
                item.choice,
                by=item.by,
                channel="scenario",
                comment=item.comment,
                evidence=item.evidence,
                reference=item.reference,
            )
        case _:
            raise ScriptError("this cannot be answered so")


def _fits(engine: Engine, row: ApprovalRow | EscalationRow, item: s.Item) -> bool:
    action = engine.state(row.run_id).actions[row.action_id]
    if item.capability and action.capability != item.capability:
        return False
    if isinstance(row, ApprovalRow):
        return item.phase is None or row.phase == item.phase
    return not item.cause or row.cause == item.cause


def _words(engine: Engine, row: ApprovalRow | EscalationRow) -> str:
    action = engine.state(row.run_id).actions[row.action_id]
    return f"{action.capability}: {row.phase if isinstance(row, ApprovalRow) else row.cause}"
