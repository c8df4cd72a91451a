"""What the demo prints: plain tables of recorded facts. Colours stand where they say something; `NO_COLOR` ends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from amends.core import events as e
from amends.core.events import decode
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus
from amends.ports.journal import EventRecord
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.running import Verdict

EFFECTS = {  # system and kind of effect -> what it is, and who reads it
    ("repo", "ref"): ("branch on the remote", "CI and whoever fetches"),
    ("staging", "schema"): ("schema of shared staging", "programs, other developers"),
    ("unleash", "strategy"): ("flag strategy", "the QA cohort sees the panel"),
    ("jira", "issue_status"): ("ticket status", "the client, the account lead"),
    ("portal", "notice"): ("notice in the client portal", "the client"),
    ("slack", "message"): ("message", "whoever reads it"),
    ("partner", "notification"): ("notification", "the partner's sandbox"),
}
_STYLES = {ActionStatus.COMPENSATED: "green", ActionStatus.SUCCEEDED: "yellow", ActionStatus.NEEDS_HUMAN: "red"}
_DIRECT = "slack:D"


def opening(console: Console, scenario: Scenario) -> None:
    """The story in a few lines."""
    console.print(Text("Amends: an agent run dies half-way, and is recovered for real", style="bold"))
    console.print(Text(f"scenario {scenario.id}: {scenario.title}"))
    console.print(Text(" ".join(scenario.summary.split()), style="dim"))


def heading(console: Console, number: str, words: str) -> None:
    """A numbered part of the story."""
    console.print()
    console.rule(Text(f"{number}  {words}", style="bold"), align="left", style="dim")


def systems(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """What agents left at the systems, counted at the systems' own side."""
    if not rows:
        console.print(Text("\nAt the systems, by their own account: nothing of the run is left.", style="green"))
        return
    table = _table(
        "\nAt the systems, by their own account", "system", "what is there", "where", "reference", "who reads it"
    )
    for row in rows:
        what, readers = _words(row)
        table.add_row(*map(Text, (str(row["system"]), what, str(row["resource"]), str(row["reference"])[:40], readers)))
    console.print(table)


def _words(row: Mapping[str, Any]) -> tuple[str, str]:
    if str(row["resource"]).startswith(_DIRECT):
        return "the correction, a direct message", "maya, who owns the QA cohort"
    return EFFECTS.get((str(row["system"]), str(row["kind"])), (str(row["kind"]), ""))


def corrections(console: Console, verdict: Verdict) -> None:
    """What people were told, word for word."""
    for posted in verdict.document["corrections"]:
        console.print(Panel(Text(posted["text"]), title=Text(posted["place"]), title_align="left", expand=False))


def timeline(console: Console, state: RunState, events: Iterable[EventRecord], killed_us: int) -> None:
    """The run's events that a reader wants: when, in which process, what; and the kill, which no ledger sees."""
    rows = [
        (event.ts_us, Text("agent") if event.epoch == 1 else Text("recovery", style="cyan"), words)
        for event in events
        if (words := _happened(state, event)) is not None
    ]
    rows.append((killed_us, Text("outside"), Text("SIGKILL, while CI runs", style="bold red")))
    table = _table("", "second", "process", "what happened")
    for at_us, process, words in sorted(rows, key=lambda row: row[0]):
        table.add_row(Text(f"{(at_us - state.run.opened_us) / 1_000_000:6.2f}"), process, words)
    console.print(table)


def _happened(state: RunState, event: EventRecord) -> Text | None:
    action = state.actions.get(event.action_id)
    match decode(event.payload, event.kind):
        case e.RunOpened(agent=agent, intent_ref=ref):
            return Text(f"`{agent}` opens a run for {ref}")
        case e.ActionQueued() if action is not None:
            return Text(f"{action.capability} waits in the outbox; the agent is told `queued`", style="yellow")
        case e.OutcomeRecorded(outcome=outcome) if action is not None and action.kind is ActionKind.DO:
            return Text(f"{action.capability} {outcome}: {action.resource}")
        case e.OutcomeRecorded(outcome=outcome) if action is not None and action.kind is ActionKind.CORRECT:
            return Text(f"correction to {action.place}: {outcome}", style="yellow")
        case e.RunMoved(to=to, reason=reason):
            return Text(f"the run is {to}: {reason.replace('_', ' ')}", style="bold")
        case e.RunClaimed(proof=proof, holder=holder):
            return Text(f"process {holder.pid} takes the run over: {proof.replace('_', ' ')}", style="bold")
        case e.CheckAnswered(check=check, answer=answer, detail=detail):
            return Text(
                f"check `{check}`: {answer.replace('_', ' ')} ({detail})", style="red" if answer != "passed" else ""
            )
        case e.ActionWithdrawn() if action is not None:
            return Text(f"{action.capability} is withdrawn, never sent")
        case e.CompensationStarted(rung=rung) if action is not None:
            return Text(f"undo of {action.capability} by `{rung}`")
        case e.CompensationVerified(how=how) if action is not None:
            return Text(f"{action.capability} read again at the system: {how.replace('_', ' ')}", style="green")
        case _:
            return None


def audit(console: Console, state: RunState) -> None:
    """The blast-radius audit of the run's own steps, from the contracts as they were recorded."""
    table = _table("", "step", "where the effect lives", "who reads it", "class", "way back", "in this run")
    for action in state.forward_actions():
        contract = action.contract
        table.add_row(
            Text(action.capability),
            Text(action.resource),
            Text(f"{contract.readers.audience}: {contract.readers.where}"),
            Text(contract.reversibility),
            Text(contract.undo_cost),
            _became(action),
        )
    console.print(table)


def _became(action: ActionRow) -> Text:
    said = "never sent" if action.status is ActionStatus.WITHDRAWN else action.status.value
    return Text(said, style=_STYLES.get(action.status, ""))


def reverted(console: Console, branch: str) -> None:
    """What the person of the story did, and what that covers."""
    console.print(Text("\n$ git revert --no-edit HEAD && git push", style="bold cyan"))
    console.print(Text(f"the files on `{branch}` are as they were; what had left the repository is not"))


def closing(
    console: Console,
    verdict: Verdict,
    left: Sequence[Mapping[str, Any]],
    seconds: float,
    problems: Sequence[str],
) -> None:
    """Both runs side by side, and the verdict."""
    heading(console, "8", "Both runs, counted at the systems' side")
    with_amends = verdict.document["residual_effects"]
    table = _table("", "what is left of the run", "with Amends", "without")
    for (system, kind), (what, readers) in EFFECTS.items():
        mine = _count(with_amends, system, kind)
        theirs = _count(left, system, kind)
        table.add_row(Text(f"{what} ({readers})"), _number(mine), _number(theirs))
    table.add_row(
        Text("corrections, each to the one person concerned"),
        Text(str(len(verdict.document["corrections"]))),
        Text("0"),
    )
    console.print(table)
    for problem in problems:
        console.print(Text(f"does not hold: {problem}", style="bold red"))
    if not problems:
        console.print(Text(f"\nEverything holds. Run and recovery took {seconds:.1f} s.", style="bold green"))


def _count(rows: Sequence[Mapping[str, Any]], system: str, kind: str) -> int:
    """How many are left; the correction itself is counted apart."""
    return sum(
        row["system"] == system and row["kind"] == kind and not str(row["resource"]).startswith(_DIRECT) for row in rows
    )


def _number(count: int) -> Text:
    return Text(str(count), style="red" if count else "green")


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title or None, title_justify="left", title_style="", box=None, pad_edge=False, header_style="bold"
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
