"""`amends runs`: which runs there are, and the four questions about one."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, cast

import click

from amends.core import public
from amends.core.canonical import Json, JsonMap
from amends.core.rows import ActionRow, RunRow, RunState
from amends.core.status import ActionKind, ActionStatus, RunStatus
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, every_run, output_option, run_state
from amends.surfaces.cli.output import Output, moment

QUESTIONS = {
    "exists": "Which effects exist",
    "might_exist": "Which might",
    "can_be_undone": "What can be undone",
    "who_decides": "Who decides",
    "taken_back": "Taken back",
}
_COLORS = {
    ActionStatus.SUCCEEDED: "green",
    ActionStatus.COMPENSATED: "cyan",
    ActionStatus.UNKNOWN: "yellow",
    ActionStatus.NEEDS_HUMAN: "bold red",
    ActionStatus.FAILED: "red",
    ActionStatus.DENIED: "red",
}


@click.group()
def runs() -> None:
    """Runs: list them, show one, report on one."""


@runs.command("list")
@click.option(
    "--status", "statuses", multiple=True, type=click.Choice([s.value for s in RunStatus]), help="Only these."
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="The newest so many.")
@output_option
def list_runs(session: Session, statuses: Sequence[str], limit: int) -> None:
    """The newest runs, oldest of them first."""
    with desk(session) as engine:
        rows = deque(every_run(engine, statuses), maxlen=limit)
        held = engine.quarantines()
    if session.output.as_json:
        session.output.document({"runs": [row.model_dump(mode="json") for row in rows]})
        return
    columns = ("run", "workflow/key", "status", "agent", "owner", "opened", "why")
    session.output.table(columns, [_row(row) for row in rows])
    if held:
        session.output.say(f"{len(held)} in quarantine: `amends quarantine list`", "yellow")


def _row(row: RunRow) -> Sequence[object]:
    identity = f"{row.workflow}/{row.run_key}"
    return row.run_id, identity, row.status, row.agent, row.owner, moment(row.opened_us), row.reason


@runs.command("show")
@click.argument("run")
@output_option
def show(session: Session, run: str) -> None:
    """One run: its actions, and which effects exist, which might, what can be undone, who decides.

    RUN is an id, the start or end of one, a run key, or WORKFLOW/KEY.
    """
    with desk(session) as engine:
        state = run_state(engine, run)
        report = engine.run_report(state.run.run_id)
    if session.output.as_json:
        actions: list[Json] = [_action_document(action) for action in state.actions.values()]
        session.output.document({**report, "actions": actions})
        return
    _show_head(session.output, state, report)
    show_actions(session.output, state)
    show_answers(session.output, report)


@runs.command("report")
@click.argument("run")
@output_option
def report(session: Session, run: str) -> None:
    """The report that a run's owner gets."""
    with desk(session) as engine:
        state = run_state(engine, run)
        told = engine.run_report(state.run.run_id)
    if session.output.as_json:
        session.output.document(told)
        return
    _show_head(session.output, state, told)
    show_answers(session.output, told)
    for correction in _maps(told.get("corrections")):
        session.output.heading(f"Correction at {correction['place']} ({correction['status']})")
        session.output.line(str(correction["text"]))


def _show_head(output: Output, state: RunState, report: Mapping[str, Json]) -> None:
    run = state.run
    output.fields(
        {
            "run": run.run_id,
            "identity": f"{run.tenant} / {run.workflow} / {run.run_key}",
            "status": f"{run.status}: {run.reason}" if run.reason else run.status,
            "people are told": report["message"],
            "agent": run.agent,
            "initiator": run.initiator,
            "owner": run.owner,
            "opened": moment(run.opened_us),
            "driver": f"{run.holder_host} pid {run.holder_pid}, lease until {moment(run.lease_until_us)}"
            if run.holder_id and not run.terminal
            else "nobody",
            "next due": moment(run.due_us),
            "follows": run.caused_by,
        }
    )


def show_actions(output: Output, state: RunState) -> None:
    """The actions of a run as a table, in order of registration."""
    from rich.text import Text

    output.heading("Actions")
    columns = ("seq", "kind", "action", "resource", "status", "outcome", "sent", "evidence", "decision")
    output.table(
        columns,
        [
            (
                action.seq,
                action.kind,
                f"{action.capability}{f' ({action.rung})' if action.rung else ''}",
                action.place or action.resource,
                Text(action.status, style=_COLORS.get(action.status, "")),
                action.outcome,
                f"{action.attempt}×" if action.attempt else "–",
                _evidence(action),
                _decision(action),
            )
            for action in state.actions.values()
        ],
    )


def show_answers(output: Output, report: Mapping[str, Json]) -> None:
    """The four questions of a report, each line with its evidence."""
    for key, question in QUESTIONS.items():
        lines = _maps(report.get(key))
        if not lines and key == "taken_back":
            continue
        output.heading(f"{question}?" if key != "taken_back" else question)
        if not lines:
            output.line("  nothing" if key != "who_decides" else "  nobody has to")
            continue
        if key == "who_decides":
            columns: tuple[str, ...] = ("who", "about", "choices", "evidence")
            rows: list[Sequence[object]] = [
                (i["owner"], f"{i['cause']}: {i['in_doubt']}", i["choices"], i["evidence"]) for i in lines
            ]
        else:
            columns = ("action", "resource", "status", "reference", "evidence")
            rows = [(i["capability"], i["resource"], i["status"], i["reference"], i["evidence"]) for i in lines]
        output.table(columns, rows)


def _evidence(action: ActionRow) -> str:
    if not action.evidence:
        return "" if not action.ever_sent else "intent, no answer"
    last = action.evidence[-1]
    return f"{last.source}: {last.code}"


def _decision(action: ActionRow) -> str:
    if action.decided is None:
        return ""
    return f"{action.decided.verdict} ({', '.join(action.decided.policy_ids) or action.decided.code})"


def _action_document(action: ActionRow) -> JsonMap:
    """What a script wants of an action: no payloads but ids, states and evidence."""
    decided = action.decided
    return {
        "action_id": action.action_id,
        "seq": action.seq,
        "kind": action.kind.value,
        "of": action.of,
        "rung": action.rung,
        "capability": action.capability,
        "slot": action.slot,
        "resource": action.resource,
        "place": action.place,
        "status": action.status.value,
        "outcome": action.outcome.value,
        "attempts": action.attempt,
        "registered_seq": action.seq,
        "sent_seq": action.sent_seq,
        "provider_reference": action.reference,
        "evidence": [one.model_dump(mode="json") for one in action.evidence],
        "decision": None
        if decided is None
        else {
            "outcome": decided.verdict,
            "policy_version": decided.policy_version,
            "policy_ids": list(decided.policy_ids),
        },
        "user_message": public.message(action) if action.kind is ActionKind.DO else "",
    }


def _maps(value: Json) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", value) if isinstance(value, list) else []
