"""`amends inbox`: what waits for a person, and their decisions."""

from __future__ import annotations

import click

from amends.core import public
from amends.core.rows import ApprovalRow, EscalationRow, QuarantineRow, RunState
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import CHANNEL, by_option, comment_option, desk, one_of, output_option
from amends.surfaces.cli.output import Output, moment

_LIST = "amends inbox list"


@click.group()
def inbox() -> None:
    """What waits for a person: approvals and escalations."""


@inbox.command("list")
@output_option
def list_items(session: Session) -> None:
    """Every open item, with who may decide and until when; and the runs in quarantine."""
    with desk(session) as engine:
        approvals, escalations, held = engine.approvals(), engine.escalations(), engine.quarantines()
    if session.output.as_json:
        session.output.document(
            {
                "approvals": [row.model_dump(mode="json") for row in approvals],
                "escalations": [row.model_dump(mode="json") for row in escalations],
                "quarantines": [row.model_dump(mode="json") for row in held],
            }
        )
        return
    columns = ("item", "kind", "run", "what", "who", "until", "choices")
    session.output.table(columns, [*map(_approval, approvals), *map(_escalation, escalations), *map(_held, held)])
    if not approvals and not escalations and not held:
        session.output.say("nothing waits")


def _approval(row: ApprovalRow) -> tuple[object, ...]:
    who = row.who_may
    what = f"{row.shown.get('action')} on {row.shown.get('resource')}"
    return row.approval_id, f"approval ({row.phase})", row.run_id, what, who, moment(row.expires_us), "approve, reject"


def _escalation(row: EscalationRow) -> tuple[object, ...]:
    who = f"{row.owner} ({row.queue})"
    kind = f"escalation ({row.cause})"
    return row.escalation_id, kind, row.run_id, row.known, who, moment(row.deadline_us), row.choices


def _held(row: QuarantineRow) -> tuple[object, ...]:
    who = "a person of amends.toml"
    return row.run_id, "quarantine", row.run_id, row.reason, who, "", "amends quarantine lift"


@inbox.command("show")
@click.argument("item")
@output_option
def show(session: Session, item: str) -> None:
    """One item: exactly what is asked, with its evidence."""
    with desk(session) as engine:
        found = _found(item, engine.approvals(), engine.escalations())
    if session.output.as_json:
        session.output.document(found.model_dump(mode="json"))
    elif isinstance(found, ApprovalRow):
        _show_approval(session.output, found)
    else:
        _show_escalation(session.output, found)


def _found(
    item: str, approvals: tuple[ApprovalRow, ...], escalations: tuple[EscalationRow, ...]
) -> ApprovalRow | EscalationRow:
    rows: dict[str, ApprovalRow | EscalationRow] = {row.approval_id: row for row in approvals}
    rows |= {row.escalation_id: row for row in escalations}
    return rows[one_of(item, rows, "open item", _LIST)]


def _show_approval(output: Output, row: ApprovalRow) -> None:
    output.fields(
        {
            "approval": row.approval_id,
            "run": row.run_id,
            "asked": f"{moment(row.asked_us)}, expires {moment(row.expires_us)}: nothing happens then",
            "who may": row.who_may,
            "said yes": ", ".join(row.approvers) or "nobody yet",
            "asked of": ", ".join(row.asked_of) or "anybody who may",
            "question": row.question,
            "why": "; ".join(row.reasons),
            "digest": row.digest,
        }
    )
    output.heading("What a yes allows, exactly")
    output.fields({name: str(value) for name, value in row.shown.items()})


def _show_escalation(output: Output, row: EscalationRow) -> None:
    output.fields(
        {
            "escalation": row.escalation_id,
            "run": row.run_id,
            "cause": row.cause,
            "known": row.known,
            "in doubt": row.in_doubt,
            "proposed": row.proposed,
            "owner": f"{row.owner} (queue {row.queue}), until {moment(row.deadline_us)}",
            "delivered": f"{row.deliveries} times" if row.delivered else "not yet",
            "choices": row.choices,
        }
    )
    output.heading("Evidence")
    output.fields({name: str(value) for name, value in row.evidence.items()})


@inbox.command()
@click.argument("item")
@by_option
@comment_option
@click.option("--digest", default="", help="Refuse if this is not what waits now (`inbox show` prints it).")
@output_option
def approve(session: Session, item: str, by: str, comment: str, digest: str) -> None:
    """Say yes to exactly what `inbox show` shows."""
    with desk(session) as engine:
        approval_id = one_of(item, (row.approval_id for row in engine.approvals()), "approval", _LIST)
        state = engine.approve(approval_id, by=by, channel=CHANNEL, comment=comment, digest=digest)
    _decided(session.output, state, "approved")


@inbox.command()
@click.argument("item")
@by_option
@comment_option
@click.option("--roll-back", is_flag=True, help="Also take back what the run did, if it has not passed its pivot.")
@output_option
def reject(session: Session, item: str, by: str, comment: str, *, roll_back: bool) -> None:
    """Say no: the item is withdrawn, unsent."""
    with desk(session) as engine:
        approval_id = one_of(item, (row.approval_id for row in engine.approvals()), "approval", _LIST)
        state = engine.reject(approval_id, by=by, channel=CHANNEL, comment=comment, roll_back=roll_back)
    _decided(session.output, state, "rejected")


@inbox.command()
@click.argument("item")
@click.argument("choice")
@by_option
@comment_option
@click.option("--evidence", default="", help="Where you looked and what you saw; some choices need it.")
@click.option("--reference", default="", help="The provider's reference, if the effect exists.")
@output_option
def resolve(session: Session, item: str, choice: str, by: str, comment: str, evidence: str, reference: str) -> None:
    """Decide an escalation by one of the choices it names."""
    with desk(session) as engine:
        escalation_id = one_of(item, (row.escalation_id for row in engine.escalations()), "escalation", _LIST)
        state = engine.resolve(
            escalation_id,
            choice.replace("-", "_"),
            by=by,
            channel=CHANNEL,
            comment=comment,
            evidence=evidence,
            reference=reference,
        )
    _decided(session.output, state, f"resolved: {choice}")


@inbox.command()
@click.argument("item")
@by_option
@output_option
def acknowledge(session: Session, item: str, by: str) -> None:
    """Say that you have seen an escalation: paging stops, it stays open."""
    with desk(session) as engine:
        escalation_id = one_of(item, (row.escalation_id for row in engine.escalations()), "escalation", _LIST)
        state = engine.acknowledge(escalation_id, by=by, channel=CHANNEL)
    _decided(session.output, state, "acknowledged")


def _decided(output: Output, state: RunState, what: str) -> None:
    run = state.run
    if output.as_json:
        output.document({"decided": what, "run_id": run.run_id, "run_status": run.status.value})
        return
    output.line(f"{what}; run {run.run_id} is {run.status}")
    output.line(public.run_message(public.of_run(state)))
    if not run.terminal:
        output.say("the next `amends recover` or `amends worker` goes on with it")
