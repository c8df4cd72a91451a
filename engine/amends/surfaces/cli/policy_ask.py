"""`amends policy eval` and `amends policy explain`: one question, its answer, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import InvalidInput
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.output import moment
from amends.surfaces.cli.policy_ledger import RecordedDecision, bundle_of, decision_named
from amends.surfaces.cli.policy_sources import sources_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amends.backends.cedar.compile import Snapshot
    from amends.backends.cedar.explaining import Explanation, PolicySaid
    from amends.backends.cedar.question import Question
    from amends.config import PersonSettings
    from amends.core.canonical import JsonMap
    from amends.core.evidence import Decision

_CODES: dict[str, Exit] = {"allow": Exit.OK, "needs_approval": Exit.NEEDS_HUMAN, "deny": Exit.DENIED}


@click.command(name="eval")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option("--action", help="A policy action, such as partner.reserve.undo; the rest is unremarkable.")
@click.option("--decision", help="The question of a recorded decision (id, or its start or end).")
@click.option("--principal", help="Who asks: Agent:bot, Service:recovery or Human:maya.")
@click.option("--resource", help="About what: kind:id, such as reservation:res-1.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Such as time.age=3h or input.quantity=3.")
@click.option(
    "--bundle", type=click.Path(path_type=Path, file_okay=False), help="Ask the bundle in this folder instead."
)
@output_option
def evaluate(
    session: Session,
    file: Path | None,
    *,
    action: str | None,
    decision: str | None,
    principal: str | None,
    resource: str | None,
    settings: tuple[str, ...],
    bundle: Path | None,
) -> int:
    """Ask the policies one question, and say why they answer so.

    The question is FILE (JSON; `-`: standard input), --action or --decision, changed by the other options. FILE holds a
    recorded decision's context, a request of `cedar run-tests`, or {"fixture": …, "overrides": …} as in a policy test.
    With --json the question is printed, too, as any Cedar tool takes it. Exit 0: allow, 4: deny, 6: a person is needed.
    """
    from amends.backends.cedar import requests
    from amends.backends.cedar.testing import loaded

    if sum(given is not None for given in (file, action, decision)) != 1:
        raise click.UsageError("name one of FILE, --action and --decision")
    whole = sources_of(session, bundle).whole
    snapshot = loaded(whole)
    if file is not None:
        record = requests.from_text(_text_of(file))
    elif action is not None:
        record = requests.about(whole.vocabulary, action)
    else:
        with desk(session) as engine:
            record = dict(decision_named(engine, decision or "").decision.context)
    if principal:
        record = requests.with_principal(record, principal)
    if resource:
        record = requests.with_resource(record, resource)
    record = requests.with_settings(record, settings)
    if action is not None and not any(one.startswith(("time.windows", "context.time.windows")) for one in settings):
        record = requests.with_open_windows(record, snapshot)
    question = requests.question(record)
    told = _explained(snapshot, question)
    if session.output.as_json:
        session.output.document({**_document(told), "request": requests.stock(question)})
    else:
        _show(session, told)
    return _CODES[told.verdict]


@click.command()
@click.argument("decision")
@output_option
def explain(session: Session, decision: str) -> int:
    """Why a recorded decision came out as it did: which condition was false, in words, and who could approve.

    DECISION is a decision's id, or an action's: then its latest decision. Everything comes from the ledger: the
    question and the sources of the policies as they were, whatever adapters and policies there are today.
    """
    from amends.backends.cedar.recorded import snapshot_of
    from amends.backends.cedar.replaying import question_of

    with desk(session) as engine:
        recorded = decision_named(engine, decision)
        made = recorded.decision
        told = None
        if made.context:
            told = _explained(snapshot_of(bundle_of(engine, made).sources()), question_of(made))
        people = _who(made, engine.settings.people)
    if session.output.as_json:
        session.output.document(_decision_document(recorded, told, people))
        return Exit.OK
    session.output.fields(
        {
            "decision": made.decision_id,
            "at": moment(recorded.at_us),
            "asked": f"{made.action} ({recorded.phase}) of {made.resource} by {made.principal}",
            "run": recorded.run_id,
            "policies": made.policy_version,
            "policies of the effect": told.forward_policy_version if told and told.policy_changed else "",
        }
    )
    if told is None:
        session.output.line(f"{made.verdict}: {'; '.join(made.reasons)}", "bold")
        return Exit.OK
    if told.verdict != made.verdict:
        session.output.say(f"recorded was {made.verdict}; this engine answers {told.verdict}", "yellow")
    _show(session, told)
    if made.verdict == "needs_approval":
        session.output.line(f"who could approve: {', '.join(people) or 'nobody of this project'}")
    return Exit.OK


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"`{file}` cannot be read: {problem}", hint="name a JSON file in UTF-8") from None


def _explained(snapshot: Snapshot, question: Question) -> Explanation:
    from amends.backends.cedar.explaining import explain as explained
    from amends.backends.cedar.worker import Worker

    return Worker().run(lambda: explained(snapshot, question))


def _who(made: Decision, people: Mapping[str, PersonSettings]) -> list[str]:
    """The people of the project whose yes would count (the one on whose behalf the run was started never does)."""
    from amends.core.evidence import as_map

    initiator = as_map(as_map(made.context.get("run")).get("initiator")).get("id")
    asked = set(made.roles)

    def counts(person: PersonSettings) -> bool:
        held = asked & set(person.roles)
        return person.tier >= made.tier and (not asked or bool(held))

    return sorted(name for name, person in people.items() if name != initiator and counts(person))


def _show(session: Session, told: Explanation) -> None:
    head = told.verdict.replace("_", " ")
    if told.verdict == "needs_approval":
        joined = (" and " if told.roles_together else " or ").join(told.roles)
        head += f" of tier {told.tier}" + (f" by {told.approvers} people" if told.approvers > 1 else "")
        head += f", role {joined}" if joined else ""
    session.output.line(head, {"allow": "green", "deny": "red"}.get(told.verdict, "yellow"))
    for reason in told.reasons:
        session.output.line(f"  {reason}")
    for said in told.policies:
        _show_policy(session, said)


def _show_policy(session: Session, said: PolicySaid) -> None:
    session.output.heading(f"{said.policy_id} {said.say}")
    session.output.line(f"  {said.file}:{said.line}  {said.reason}")
    for condition in said.conditions:
        session.output.line(f"  because {condition.words}")
        session.output.line(f"          {condition.clause} {condition.text}", "dim")


def _document(told: Explanation) -> JsonMap:
    from dataclasses import asdict
    from typing import cast

    return {**cast("JsonMap", asdict(told)), "policy_changed": told.policy_changed}


def _decision_document(recorded: RecordedDecision, told: Explanation | None, people: list[str]) -> JsonMap:
    made = recorded.decision
    return {
        "decision_id": made.decision_id,
        "at_us": recorded.at_us,
        "phase": recorded.phase,
        "action": made.action,
        "principal": made.principal,
        "resource": made.resource,
        "run_id": recorded.run_id,
        "action_id": recorded.action_id,
        "verdict": made.verdict,
        "code": made.code,
        "reasons": list(made.reasons),
        "policy_version": made.policy_version,
        "who_could_approve": list(people) if made.verdict == "needs_approval" else [],
        "why": _document(told) if told else None,
    }
