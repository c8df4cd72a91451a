"""`amends policy diff` and `amends policy replay`: what a change of policies changes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.output import moment
from amends.surfaces.cli.policy_ledger import RecordedDecision, count_decisions, decisions, since_us
from amends.surfaces.cli.policy_sources import ACTIVE, named_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from amends.backends.cedar.compile import Snapshot
    from amends.backends.cedar.replaying import Kind, Replayed
    from amends.bootstrap import Engine
    from amends.core.evidence import Decision

_WORTH_A_RATE = 100  # decisions; fewer are over before the policies are warm
_WORDS: dict[str, str] = {
    "same": "same",
    "same_by_others": "same outcome by other policies",
    "loosened": "loosened",
    "tightened": "tightened",
    "not_evaluable": "not evaluable",
}


@click.command()
@click.argument("a")
@click.argument("b", required=False, default=ACTIVE)
@click.option("--exit-code", is_flag=True, help="Exit 1 if the meaning differs.")
@output_option
def diff(session: Session, a: str, b: str, *, exit_code: bool) -> int:
    """What differs between two sets of policies, by id and by meaning.

    A and B are each a folder with a bundle, a version that the ledger knows, or `active` (the default of B). A policy
    is `changed` if its meaning is; comments, layout and reasons make it `reworded`.
    """
    from dataclasses import asdict

    from amends.backends.cedar.comparing import compare
    from amends.backends.cedar.recorded import semantic_digest

    before, old = named_snapshot(session, a)
    after, new = named_snapshot(session, b)
    found = compare(old, new)
    if session.output.as_json:
        ends = {
            name: {"version": version, "effective_digest": one.effective_digest, "meaning": semantic_digest(one)}
            for name, version, one in (("a", before, old), ("b", after, new))
        }
        session.output.document({**ends, **asdict(found)})
    else:
        session.output.fields({"a": before, "b": after})
        for change in found.policies:
            title = f"{change.change} {change.policy_id}"
            session.output.heading(title + (f" (was {change.before_id})" if change.before_id else ""))
            session.output.line(f"  {change.effect}, {change.file}:{change.line}")
            for line in change.lines:
                style = {"+": "green", "-": "red"}.get(line[:1], "dim")
                session.output.line(f"  {line}", style)
        for part in found.parts:
            session.output.heading(f"changed {part}")
        same = "the sources are the same" if found.same_sources else "the meaning is the same"
        session.output.line(same if found.same_meaning else "the meaning differs", "" if found.same_meaning else "bold")
    return Exit.FAILED if exit_code and not found.same_meaning else Exit.OK


@click.command()
@click.argument("candidate")
@click.option("--since", default="", help="Only decisions since then: 7d, 12h, 2026-03-02 or a time.")
@click.option(
    "--fail-on",
    default="loosened",
    show_default=True,
    help="Exit 1 if there are any of: loosened, tightened, same-by-others, not-evaluable (joined by commas); or none.",
)
@click.option("--examples", default=20, show_default=True, type=click.IntRange(0), help="Show so many of each kind.")
@output_option
def replay(session: Session, candidate: str, *, since: str, fail_on: str, examples: int) -> int:
    """Ask every recorded decision again under CANDIDATE, and say which would come out otherwise.

    CANDIDATE is a folder with a bundle, or a version that the ledger knows. The questions are those recorded; which
    time windows were open then is for the candidate's calendar to say. With --json every
    decision that changed is listed.
    """
    failing = _kinds(fail_on)
    version, snapshot = named_snapshot(session, candidate)
    with desk(session) as engine:
        begin = since_us(since, engine.kit.clock.now_us())
        tally = _Tally(None if session.output.as_json else examples)
        started = time.perf_counter()
        with _progress(session, count_decisions(engine, begin)) as advance:
            _replay_all(engine, snapshot, begin, tally, advance)
        seconds = time.perf_counter() - started
    failed = [kind for kind in failing if tally.counts[kind]]
    if session.output.as_json:
        session.output.document(_replay_document(version, snapshot, tally, failed))
    else:
        _show(session, version, tally)
        rate = f"{tally.total / seconds:,.0f} a second" if seconds and tally.total >= _WORTH_A_RATE else ""
        session.output.say(f"{tally.total} decisions in {seconds:.1f} s {rate}".rstrip())
        if failed:
            session.output.say(f"failed on: {', '.join(_WORDS[kind] for kind in failed)}", "bold red")
    return Exit.FAILED if failed else Exit.OK


@dataclass
class _Tally:
    """Counts, and the changed decisions that are shown (all if `limit` is None)."""

    limit: int | None
    counts: Counter[str] = field(default_factory=Counter[str])
    shown: dict[str, list[tuple[RecordedDecision, Replayed]]] = field(
        default_factory=dict[str, "list[tuple[RecordedDecision, Replayed]]"]
    )

    @property
    def total(self) -> int:
        return self.counts.total()

    def add(self, recorded: RecordedDecision, result: Replayed) -> None:
        self.counts[result.kind] += 1
        kept = self.shown.setdefault(result.kind, [])
        if result.kind != "same" and (self.limit is None or len(kept) < self.limit):
            kept.append((recorded, result))


def _replay_all(
    engine: Engine, snapshot: Snapshot, begin_us: int, tally: _Tally, advance: Callable[[int], None]
) -> None:
    from amends.backends.cedar.worker import Worker

    worker = Worker()
    for page in decisions(engine, begin_us):
        asked = [one.decision for one in page]
        results = worker.run(partial(_replayed, asked, snapshot))
        for recorded, result in zip(page, results, strict=True):
            tally.add(recorded, result)
        advance(len(page))


def _replayed(asked: list[Decision], snapshot: Snapshot) -> list[Replayed]:
    from amends.backends.cedar.replaying import replay as replayed

    return list(replayed(asked, snapshot))


@contextmanager
def _progress(session: Session, total: int) -> Generator[Callable[[int], None]]:
    """A bar on standard error, if that is a terminal."""
    console = session.output.talk
    if not console.is_terminal:
        yield lambda _count: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("replaying", total=total)
        yield lambda count: bar.advance(task, count)


def _kinds(text: str) -> list[Kind]:
    """Raises `click.UsageError` for a kind that does not exist."""
    from amends.backends.cedar.replaying import KINDS

    asked = {word.strip().replace("-", "_") for word in text.split(",")} - {"", "none"}
    unknown = sorted(asked - set(KINDS))
    if unknown:
        names = ", ".join(kind.replace("_", "-") for kind in KINDS)
        raise click.UsageError(f"--fail-on knows {names} and none, not `{unknown[0]}`")
    return [kind for kind in KINDS if kind in asked]


def _show(session: Session, version: str, tally: _Tally) -> None:
    session.output.line(f"under {version}:")
    session.output.table(("what", "decisions"), [(word, tally.counts[kind]) for kind, word in _WORDS.items()])
    for kind, word in _WORDS.items():
        shown = tally.shown.get(kind, [])
        if kind == "same" or not shown:
            continue
        session.output.heading(f"{word} ({len(shown)} of {tally.counts[kind]})")
        for recorded, result in shown:
            made = recorded.decision
            session.output.line(f"  {made.decision_id}  {moment(recorded.at_us)}  {made.action} of {made.resource}")
            was = _answer(made.verdict, made.tier, made.policy_ids)
            session.output.line(f"    was {was}; would be {_found(result)}")


def _answer(verdict: str, tier: int, policy_ids: tuple[str, ...]) -> str:
    head = f"{verdict} tier {tier}" if tier else verdict
    return f"{head} ({', '.join(policy_ids)})" if policy_ids else head


def _found(result: Replayed) -> str:
    if result.problem or result.found is None:
        return f"unknown: {result.problem}"
    return _answer(result.found.verdict, result.found.tier, result.found.policy_ids)


def _replay_document(version: str, snapshot: Snapshot, tally: _Tally, failed: Sequence[str]) -> dict[str, object]:
    from amends.backends.cedar.recorded import semantic_digest

    return {
        "candidate": {
            "version": version,
            "effective_digest": snapshot.effective_digest,
            "meaning": semantic_digest(snapshot),
        },
        "decisions": tally.total,
        "counts": {kind: tally.counts[kind] for kind in _WORDS},
        "failed_on": failed,
        "changed": [
            {
                "kind": kind,
                "decision_id": recorded.decision.decision_id,
                "run_id": recorded.run_id,
                "at_us": recorded.at_us,
                "action": recorded.decision.action,
                "resource": recorded.decision.resource,
                "was": _side(recorded.decision),
                "would_be": _side(result.found) if result.found else None,
                "problem": result.problem,
            }
            for kind, shown in tally.shown.items()
            for recorded, result in shown
        ],
    }


def _side(answer: object) -> dict[str, object]:
    names = ("verdict", "code", "tier", "approvers", "roles", "policy_ids", "reasons")
    return {name: getattr(answer, name) for name in names}
