"""`amends ledger`: the journal, which is the truth, and the DuckDB ledger, which is made from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from amends.core.errors import InvalidInput
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option
from amends.surfaces.cli.exits import Exit


@click.group()
def ledger() -> None:
    """Journal and ledger: state, verification, rebuild, backup."""


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
    """Check the chain of every run, that rows are what their events say, and that the ledger is equal."""
    from amends.runtime.verifying import differences

    with desk(session) as engine:
        events = engine.kit.journal.info().events
        journal = engine.kit.journal
        problems = [*journal.verify(), *differences(journal), *engine.ledger.refresh().problems]
    if session.output.as_json:
        session.output.document({"ok": not problems, "events": events, "problems": problems})
    elif problems:
        for problem in problems:
            session.output.line(problem, "red")
    else:
        session.output.line(f"{events} events: sound", "green")
    return Exit.FAILED if problems else Exit.OK


@ledger.command()
@output_option
def rebuild(session: Session) -> None:
    """Throw the DuckDB ledger away and make it anew from the journal."""
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
    """Copy the journal, while it is in use, and its digest key into FOLDER, which must not exist yet."""
    if folder.exists():
        raise InvalidInput(f"`{folder}` exists already", hint="name a new folder: a backup is never overwritten")
    with desk(session) as engine:
        folder.mkdir(mode=0o700, parents=True)
        copied = engine.kit.journal.backup(str(folder / "journal.sqlite"))
        key = engine.settings.folder / "digest.key"
        shutil.copy2(key, folder / key.name)
    if session.output.as_json:
        session.output.document({"folder": str(folder), "events": copied.events, "max_seq": copied.max_seq})
        return
    session.output.line(f"{copied.events} events in {folder}")
    session.output.say("the ledger is not copied: it is made anew from the journal")
