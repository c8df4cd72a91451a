"""The root command: names and sentences of every command, and how an error leaves the program.

A command's module is imported when the command is called, so that `amends --help` is quick and works whatever is
broken: it imports neither DuckDB nor Cedar nor any plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

import click

from amends import __version__
from amends.core.errors import AmendsError, ConfigError
from amends.surfaces.cli.exits import Exit, of_error
from amends.surfaces.cli.output import Output

COMMANDS_GROUP = "amends.commands"

# name -> (module:command, what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init:init", "Make a working project in a folder."),
    "doctor": ("doctor:doctor", "Examine settings, plugins, policies, journal, ledger and secrets."),
    "audit": ("audit:audit", "What each capability changes, how it is undone, and who allows it."),
    "inventory": ("inventory:inventory", "Adapters, capabilities, checks, notifiers, people."),
    "runs": ("runs:runs", "Runs: list them, show one, report on one."),
    "recover": ("recover:recover", "Recover dead runs, or one run."),
    "inbox": ("inbox:inbox", "What waits for a person: approvals and escalations."),
    "outbox": ("outbox:outbox", "Irreversible actions that wait to be released."),
    "policy": ("policy:policy", "Policies: check, format, test, ask, explain, compare, replay."),
    "sql": ("sql:sql", "Ask the ledger."),
    "plugins": ("plugins:plugins", "Installed adapters, what is wrong with them, and a new one to start from."),
    "ledger": ("ledger:ledger", "Journal and ledger: state, verification, rebuild, backup, sealing."),
    "journal": ("journal:journal", "The journal's format."),
    "pause": ("pause:pause", "Stop new effects of a tenant, a workflow or all."),
    "quarantine": ("quarantine:quarantine", "Runs that could not be read back, and that nothing drives."),
    "drill": ("drill:drill", "Do, verify, undo, verify on a sandbox, for a certificate."),
    "worker": ("worker:worker", "Recover dead runs for as long as it lives."),
}

# Ours too, but found through entry points, because surfaces are blind to the test kit and to adapters.
FOUND: dict[str, str] = {
    "contracts": "Contract files for partner APIs: draft them from an OpenAPI document.",
    "inject": "Try your workflow on the sandbox with a fault in each world, and see what is left.",
    "scenario": "Scripted runs with trouble, for real, and the end state that must hold.",
}


@dataclass
class Session:
    """What every command shares: where the project is and where words go."""

    config: Path | None = None
    sandbox: bool = False  # the project's sandbox in place of its production
    output: Output = field(default_factory=Output)


class LazyGroup(click.Group):
    """A group that knows its commands' names and sentences, and imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(set(_extra()) - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name][0].partition(":")
            return cast("click.Command", getattr(import_module(f"amends.surfaces.cli.{module}"), attribute))
        return _loaded(cmd_name, _extra().get(cmd_name, ()))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        extra = _extra()
        known = {name: sentence for name, (_, sentence) in COMMANDS.items()} | FOUND
        rows = [(n, known.get(n) or f"(from {_distribution(extra[n][0])})") for n in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _extra() -> dict[str, list[EntryPoint]]:
    """Commands that other distributions bring, unimported."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=COMMANDS_GROUP):
        found.setdefault(point.name, []).append(point)
    return found


def _loaded(name: str, points: Sequence[EntryPoint]) -> click.Command | None:
    """The command of an entry point. Raises `ConfigError` if it is broken or offered twice."""
    if not points:
        return None
    if len(points) > 1:
        names = ", ".join(sorted(_distribution(point) for point in points))
        raise ConfigError(f"the command `{name}` is offered by {names}", hint="uninstall all but one")
    try:
        command = points[0].load()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the command `{name}` of {_distribution(points[0])} cannot be loaded: {type(error).__name__}: {error}",
            hint="repair or uninstall that distribution",
        ) from error
    if not isinstance(command, click.Command):
        raise ConfigError(f"`{name}` of {_distribution(points[0])} is no command", hint="uninstall that distribution")
    return command


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="AMENDS_CONFIG",
    help="amends.toml, or a folder at or below it.  [env: AMENDS_CONFIG; default: the current folder]",
)
@click.option("--sandbox", is_flag=True, help="Look at the project's sandbox: its own runs, inbox and ledger.")
@click.version_option(__version__, prog_name="amends")
@click.pass_context
def root(ctx: click.Context, config: Path | None, *, sandbox: bool) -> None:
    """Recover AI-agent runs: know what they changed, undo what may be undone, ask people about the rest.

    Data goes to standard output, talk to standard error; `--json` makes the data one document. Exit codes: 0 ok,
    1 failed, 2 usage, 3 not found, 4 denied, 5 conflict, 6 needs a human, 7 unknown outcome, 8 journal or ledger
    unreachable.
    """
    session = ctx.ensure_object(Session)
    session.config, session.sandbox = config, sandbox


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    session = Session()
    try:
        answer = root.main(args=list(arguments), prog_name="amends", standalone_mode=False, obj=session)
    except AmendsError as error:
        session.output.error(error)
        return int(of_error(error))
    except click.ClickException as error:
        error.show()
        return int(Exit.USAGE) if isinstance(error, click.UsageError) else int(Exit.FAILED)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:  # whoever read our output has enough
        sys.stderr.close()
        return int(Exit.FAILED)
    return int(answer) if isinstance(answer, int) else int(Exit.OK)
