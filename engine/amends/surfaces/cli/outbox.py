"""`amends outbox`: irreversible actions that wait to be released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amends.core.rows import ActionRow
from amends.core.status import ActionStatus
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import by_option, desk, one_of, output_option
from amends.surfaces.cli.output import moment

if TYPE_CHECKING:
    from amends.bootstrap import Engine

_WAITING = frozenset({ActionStatus.QUEUED.value, ActionStatus.AWAITING_APPROVAL.value})


@click.group()
def outbox() -> None:
    """Irreversible actions that wait to be released."""


@outbox.command("list")
@output_option
def list_items(session: Session) -> None:
    """What waits, and for what."""
    with desk(session) as engine:
        waiting = list(_waiting(engine).values())
    if session.output.as_json:
        session.output.document({"items": [_document(action) for action in waiting]})
        return
    columns = ("action", "run", "what", "resource", "status", "released", "since")
    rows = [
        (a.action_id, a.run_id, a.capability, a.resource, a.status, a.release_mode, moment(a.created_us))
        for a in waiting
    ]
    session.output.table(columns, rows)
    if not waiting:
        session.output.say("the outbox is empty")


@outbox.command()
@click.argument("action")
@by_option
@output_option
def withdraw(session: Session, action: str, by: str) -> None:
    """Take an item out of the outbox, unsent."""
    with desk(session) as engine:
        waiting = _waiting(engine)
        chosen = waiting[one_of(action, waiting, "waiting action", "amends outbox list")]
        result = engine.withdraw(chosen.run_id, chosen.action_id, by=by)
    if session.output.as_json:
        session.output.document(result.as_dict())
        return
    session.output.line(result.message)


def _waiting(engine: Engine) -> dict[str, ActionRow]:
    """Forward actions that were never sent and wait, in order of their registration."""
    from amends.runtime.listing import readable

    found: dict[str, ActionRow] = {}
    after = ""
    while rows := engine.kit.journal.rows("action", statuses=_WAITING, after_key=after):
        after = rows[-1].key.key
        found |= {action.action_id: action for action in readable(rows, ActionRow)}
    return {key: action for key, action in found.items() if action.forward and action.contract.irreversible}


def _document(action: ActionRow) -> dict[str, object]:
    return {
        "action_id": action.action_id,
        "run_id": action.run_id,
        "capability": action.capability,
        "resource": action.resource,
        "status": action.status.value,
        "release_mode": action.release_mode,
        "approval_id": action.approval_id,
        "created_us": action.created_us,
    }
