"""`amends ledger`: the journal, which is the truth, and the DuckDB ledger, which is made from it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import InvalidInput
from amends.core.events import SYSTEM_STREAM
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option, run_state, settings_of
from amends.surfaces.cli.exits import Exit

if TYPE_CHECKING:
    from amends.bootstrap import Engine


@click.group()
def ledger() -> None:
    """Journal and ledger: state, verification, rebuild, backup, sealing."""


@ledger.command()
@output_option
def info(session: Session) -> None:
    """How much there is, and how far the ledger has come."""
    with desk(session) as engine:
        journal = engine.kit.journal.info()
        state = engine.ledger.refresh()
    if session.output.as_json:
        session.output.document(
            {
                "journal": {
                    "location": journal.location,
                    "generation": journal.generation,
                    "format": journal.format,
                    "events": journal.events,
                    "max_seq": journal.max_seq,
                    "max_hash": journal.max_hash,
                },
                "ledger": {
                    "location": state.location,
                    "events": state.events,
                    "max_seq": state.max_seq,
                    "rebuilt": state.rebuilt,
                    "problems": list(state.problems),
                },
            }
        )
        return
    session.output.fields(
        {
            "journal": journal.location,
            "format": journal.format,
            "generation": journal.generation,
            "events": f"{journal.events}, last seq {journal.max_seq}",
            "last hash": journal.max_hash,
            "ledger": state.location,
            "mirrored": f"{state.events} events, last seq {state.max_seq}",
            "made anew": "yes" if state.rebuilt else "",
            "problems": "; ".join(state.problems),
        }
    )


@ledger.command()
@output_option
def verify(session: Session) -> int:
    """Check the chain of every run, that rows are what their events say, sealed files, and that the ledger is equal."""
    with desk(session) as engine:
        events = engine.kit.journal.info().events
        problems = engine.verify()
    if session.output.as_json:
        session.output.document({"ok": not problems, "events": events, "problems": list(problems)})
    elif problems:
        for problem in problems:
            session.output.line(problem, "red")
    else:
        session.output.line(f"{events} events: sound", "green")
    return Exit.FAILED if problems else Exit.OK


@ledger.command()
@output_option
def rebuild(session: Session) -> None:
    """Throw the DuckDB ledger away and make it anew from the journal and the sealed files."""
    with desk(session) as engine:
        state = engine.ledger.rebuild()
    if session.output.as_json:
        session.output.document({"location": state.location, "events": state.events, "problems": list(state.problems)})
        return
    session.output.line(f"{state.events} events in {state.location}")
    for problem in state.problems:
        session.output.line(problem, "red")


@ledger.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@output_option
def backup(session: Session, folder: Path) -> None:
    """Copy journal, sealed files and digest key, while they are in use, into FOLDER, which must not exist yet."""
    from amends import bootstrap

    with desk(session) as engine:
        copied = bootstrap.back_up(engine, folder)
    _told(session, folder, copied.events, copied.max_seq)
    session.output.say("the ledger is not copied: it is made anew from the journal and the sealed files")


@ledger.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@output_option
def restore(session: Session, folder: Path) -> None:
    """Make the project's storage folder from the backup in FOLDER, once all of it is verified.

    The storage folder must be empty or not there: a journal is never overwritten.
    """
    from amends import bootstrap

    settings = settings_of(session)
    restored = bootstrap.restore(settings, folder)
    _told(session, settings.folder, restored.events, restored.max_seq)


def _told(session: Session, folder: Path, events: int, max_seq: int) -> None:
    if session.output.as_json:
        session.output.document({"folder": str(folder), "events": events, "max_seq": max_seq})
    else:
        session.output.line(f"{events} events in {folder}")


@ledger.command()
@click.option("--keep-days", type=click.FloatRange(0), help="Instead of `[storage] keep_days`.")
@output_option
def seal(session: Session, keep_days: float | None) -> None:
    """Move old runs, whole, from the journal into sealed Parquet files.

    A run goes once it has been terminal, and past every time at which a provider could still change something of it,
    for so many days. The ledger keeps its rows, and `runs show` still finds it.
    """
    with desk(session) as engine, session.output.talk.status("sealing"):
        done = engine.seal(keep_days=keep_days)
    if session.output.as_json:
        session.output.document({"sealed": [asdict(seal) for seal in done.seals], "left": done.left})
        return
    events, runs = sum(s.events for s in done.seals), sum(s.runs for s in done.seals)
    session.output.line(f"{runs} runs ({events} events) sealed in {len(done.seals)} files")
    for run_id, why in done.left.items():
        session.output.line(f"run {run_id} stays: {why}", "yellow")


@ledger.command()
@click.argument("run", required=False)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="A new file instead of standard output."
)
@output_option
def export(session: Session, run: str | None, output: Path | None) -> None:
    """Every event of RUN, or of all runs, as JSON lines; redacted as they are stored, chains and all.

    RUN is as for `runs show`; `system` is what belongs to no run.
    """
    from amends.ports.lines import to_line

    with desk(session) as engine:
        lines = (to_line(stored) for stored in engine.export(_run_id(engine, run) if run else ""))
        if output is None:
            for line in lines:
                click.echo(line)
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                count = sum(1 for line in lines if file.write(f"{line}\n"))
        except FileExistsError:
            raise InvalidInput(f"`{output}` exists already", hint="name a new file") from None
    if session.output.as_json:
        session.output.document({"file": str(output), "events": count})
    else:
        session.output.say(f"{count} events in {output}")


def _run_id(engine: Engine, name: str) -> str:
    return name if name == SYSTEM_STREAM else run_state(engine, name).run.run_id
