"""The reference of the command line, made from the commands themselves.

    python -m amends.surfaces.cli.reference > docs/cli.md

A test compares the file with what this makes, so neither can drift.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from amends.surfaces.cli.app import COMMANDS, FOUND, root
from amends.surfaces.cli.exits import MEANING

_WIDTH = 100
_HEAD = """\
# The command line

<!-- made by: python -m amends.surfaces.cli.reference > docs/cli.md -->

Data goes to standard output, talk to standard error. With `--json` the data is one JSON document, and so is an error:
`{"error": {"code", "message", "hint", "who_acts", "data"}}`. Colours go away with `NO_COLOR` or when nobody looks.
An id may be shortened to its start or end, as long as one thing fits.

Commands that read, decide or pause (`runs`, `inbox`, `outbox`, `pause`, `quarantine`, `ledger`, `sql`) load neither
adapters nor policies: they work while those are broken. `amends --sandbox COMMAND` looks at the project's
[sandbox](configuration.md#adaptersnamesandbox-where-calls-may-be-tried) in place of its production: its own runs, inbox
and ledger.
"""


def reference() -> str:
    """The whole document: exit codes, then the help of every command of this distribution."""
    # As a real run makes it: a command keeps the help option of the first context it sees.
    context = click.Context(
        root,
        info_name="amends",
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        help_option_names=root.context_settings["help_option_names"],
    )
    parts = [_HEAD, _exit_codes(), *(_section(context, name) for name in (*COMMANDS, *FOUND))]
    return "\n".join(parts)


def _exit_codes() -> str:
    rows = [f"| {int(code)} | {meaning} |" for code, meaning in MEANING.items()]
    return "\n".join(("## Exit codes", "", "| code | meaning |", "|---|---|", *rows, ""))


def _section(context: click.Context, name: str) -> str:
    command = root.get_command(context, name)
    if command is None:
        raise KeyError(f"no command `{name}`: install the distribution again")
    helps = "\n".join(_helps(click.Context(command, info_name=name, parent=context)))
    return f"## `amends {name}`\n\n{helps}"


def _helps(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _helps(click.Context(inner, info_name=name, parent=context))


if __name__ == "__main__":
    print(reference(), end="")
