"""A command that a document or a hint names exists, with the options it is shown with."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from amends.surfaces.cli.app import root

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "policies/*.md", "scenarios/*.md", "plugins/*/README.md")
    for path in ROOT.glob(pattern)
)
SOURCES = sorted([*ROOT.glob("engine/amends/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")])
SPAN = re.compile(r"`(amends [^`]+)`")
SHELL = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
MADE = {"docs/cli.md"}  # made from the commands themselves


def shown(path):
    """Every command line of a document, or of the texts of a source file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        texts = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        return [line for one in texts for line in SPAN.findall(one)]
    lines = [line for block in SHELL.findall(text) for line in block.splitlines()]
    commands = [part.strip() for line in lines for part in re.split(r"&&|#", line.lstrip("$ "))]
    return [*SPAN.findall(text), *(command for command in commands if command.startswith("amends "))]


def explain(line):
    """What is wrong with a command line, or nothing."""
    command, options = root, set(_options(root))
    words = shlex.split(line.replace("'…'", "x"))[1:]
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return f"`{line}`: there is no `{words[0]}`"
        command = found
        options |= set(_options(command))
        words = words[1:]
    flags = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    missing = sorted(flags - options - {"--help", "-h", "--version"})
    return f"`{line}`: no option {', '.join(missing)}" if missing else None


def _options(command):
    return [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path.relative_to(ROOT).as_posix() not in MADE],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_documents_name_commands_that_exist(path):
    """Whoever types what is written gets an answer."""
    assert [wrong for line in shown(path) if (wrong := explain(line))] == []


def test_hints_name_commands_that_exist():
    """A remedy that does not work is worse than none."""
    wrong = {path.relative_to(ROOT).as_posix(): [w for line in shown(path) if (w := explain(line))] for path in SOURCES}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_a_command_that_does_not_exist_is_noticed():
    """The check itself can fail, for a command and for an option."""
    assert explain("amends undo") == "`amends undo`: there is no `undo`"
    assert explain("amends recover RUN --backwards") == "`amends recover RUN --backwards`: no option --backwards"
    assert explain("amends recover RUN --to NAME") is None
