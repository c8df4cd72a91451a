"""`amends policy reload`: would the bundle in the site's folder decide, and if not, why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option
from amends.surfaces.cli.exits import Exit

if TYPE_CHECKING:
    from amends.bootstrap import Reloaded
    from amends.surfaces.cli.output import Output


@click.command("reload")
@output_option
def reload(session: Session) -> int:
    """Examine the site's bundle as a running engine would, and record what came of it.

    Guards, lint, strict validation, its label, its tests. Workers look at the folder at every round and take up a sound
    bundle by themselves; an engine inside an agent does when it calls `reload_policies`, or starts. Exits 1 if the
    bundle is refused: the last good one goes on deciding in every engine that runs, and a new one does not start.
    """
    with desk(session) as engine:
        reloaded = engine.reload_policies()
    if session.output.as_json:
        session.output.document(asdict(reloaded))
    else:
        _tell(session.output, reloaded)
    return Exit.FAILED if reloaded.outcome == "rejected" else Exit.OK


def _tell(output: Output, reloaded: Reloaded) -> None:
    match reloaded.outcome:
        case "unchanged":
            output.line(f"unchanged: {reloaded.version} decides")
        case "activated":
            output.line(f"sound: {reloaded.version} decides from now on", "green")
            output.say("workers take it up at their next look; agents when they start or reload")
        case _:
            kept = f"{reloaded.version} goes on deciding" if reloaded.version else "nothing decides yet"
            output.line(f"refused: {reloaded.candidate or 'the bundle'}; {kept}", "red")
            for problem in reloaded.problems:
                output.line(f"  {problem}")
