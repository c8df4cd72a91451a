"""The root command: quick, complete, and honest about errors."""

import gc
import json
import os
import subprocess
import sys
from dataclasses import replace

import click
import pytest

from amends.core import errors
from amends.core.rows import RunState
from amends.surfaces.cli import app, common
from amends.surfaces.cli.exits import BY_ERROR, MEANING, Exit, of_error, of_run_state, worst
from amends.surfaces.cli.output import Output
from amends.surfaces.cli.recover import show_recovered
from amends.testing.distributions import MadeDistributions
from amends.testing.run_builder import RunBuilder


def every_command(command=app.root, path=()):
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from every_command(command.get_command(context, name), (*path, name))


COMMANDS = list(every_command())


def heavy_modules(*arguments):
    code = (
        "import sys\n"
        "from amends.surfaces.cli.app import run\n"
        f"code = run({list(arguments)!r})\n"
        "heavy = ('duckdb', 'cedarpy', 'sqlite3', 'rich', 'alembic', 'amends.runtime', 'amends_git', 'amends_jira')\n"
        "print([m for m in heavy if m in sys.modules], code, file=sys.stderr)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("-h",), *((name, "--help") for name in app.COMMANDS)]
)
def test_help_imports_neither_duckdb_nor_cedar_nor_plugins(arguments):
    """So it is quick, and works whatever is broken."""
    told = heavy_modules(*arguments)
    assert told.stderr.strip().endswith("[] 0"), told.stderr


def test_help_of_the_root_names_every_command_and_what_it_does():
    """One line a command."""
    told = heavy_modules("--help").stdout
    for name, (_, sentence) in app.COMMANDS.items():
        assert name in told
        assert sentence.split()[0] in told


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) or "amends" for path, _ in COMMANDS])
def test_every_command_explains_itself(path, command):
    """A sentence for the command and for each of its options, and `--json` on each that answers."""
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.show_default, parameter.name
    if path and not isinstance(command, click.Group) and path[0] in app.COMMANDS:
        assert any("--json" in parameter.opts for parameter in command.params)


def test_the_sentence_of_the_table_is_that_of_the_command():
    """The root's list is written by hand, so that it needs no import; it may not drift."""
    context = click.Context(app.root)
    known = {name: sentence for name, (_, sentence) in app.COMMANDS.items()} | app.FOUND
    for name, sentence in known.items():
        command = app.root.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            assert (command.help or "").splitlines()[0] == sentence


def test_an_unknown_command_is_a_usage_error(capsys):
    """Exit 2, and nothing on standard output."""
    assert app.run(["nothing"]) == Exit.USAGE
    assert capsys.readouterr().out == ""


# --- exit codes ----------------------------------------------------------------------------------------------


def every_error(kind=errors.AmendsError):
    yield kind
    for child in kind.__subclasses__():
        yield from every_error(child)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UnknownName, 3),
        (errors.Denied, 4),
        (errors.Conflict, 5),
        (errors.Fenced, 5),
        (errors.JournalBusy, 8),
        (errors.JournalUnavailable, 8),
        (errors.SystemUnavailable, 8),
        (errors.CorruptLedger, 8),
        (errors.ConfigError, 2),
        (errors.InvalidInput, 2),
        (errors.Unidentified, 2),
        (errors.SystemRefused, 1),
        (errors.InternalError, 1),
    ],
)
def test_each_error_has_its_exit_code(kind, code):
    """Scripts rely on these numbers."""
    assert of_error(kind("x")) == code


def test_every_error_class_there_is_has_an_exit_code():
    """A new class falls into its family's code, and no entry of the table is out of reach."""
    assert {of_error(kind("x")) for kind in every_error()} <= set(Exit)
    reached = {next(i for i, (one, _) in enumerate(BY_ERROR) if issubclass(kind, one)) for kind in every_error()}
    assert reached == set(range(len(BY_ERROR)))


def test_every_exit_code_has_a_meaning():
    """The document is made from these."""
    assert set(MEANING) == set(Exit)


def test_runs_weigh_person_before_doubt_before_all_well():
    """6 if somebody has to decide, 7 if an outcome is open, else 0."""
    well, doubt = of_run_state(RunBuilder().state), of_run_state(RunBuilder().planned("a").intent().lost().state)
    person = of_run_state(RunBuilder().planned("a").intent().lost().parked().state)
    assert (worst([]), well) == (Exit.OK, Exit.OK)
    assert worst([well, doubt]) == doubt == Exit.UNKNOWN_OUTCOME
    assert worst([doubt, person, well]) == person == Exit.NEEDS_HUMAN


@pytest.mark.parametrize("as_json", [True, False])
def test_of_recovered_runs_a_line_is_kept_and_no_state(as_json, capsys):
    """However many are swept; of one that comes twice, where it stands at last."""
    first = RunBuilder().planned("a").intent().lost().parked().state
    most, before = 0, states_alive()

    def sweep():
        nonlocal most
        for n in [*range(300), 7]:
            yield replace(first, run=first.run.model_copy(update={"run_id": f"run-{n:03}"}))
            if n % 100 == 99:  # looking through all that is alive takes a while
                most = max(most, states_alive() - before)
        yield replace(RunBuilder().state, run=RunBuilder().state.run.model_copy(update={"run_id": "run-299"}))

    assert show_recovered(Output(as_json=as_json), None, sweep()) == Exit.NEEDS_HUMAN
    assert most <= 2
    said = capsys.readouterr().out
    assert all(said.count(f"run-{n:03}") >= 1 for n in range(300))
    if as_json:
        runs = json.loads(said)["runs"]
        assert len(runs) == 300
        assert {run["public_state"] for run in runs if run["run_id"] == "run-299"} == {"processing_safely"}


def states_alive():
    return sum(isinstance(thing, RunState) for thing in gc.get_objects())


# --- commands of others --------------------------------------------------------------------------------------


@pytest.fixture
def distributions(tmp_path, monkeypatch):
    """A folder of distributions that bring commands."""
    made = MadeDistributions(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    made.forget()


GREET = """
import click

@click.command()
def greet():
    "Greets."
    click.echo("hello")
"""


def test_a_command_of_another_distribution_is_there(distributions, capsys):
    """Listed with where it comes from, unimported; run like any other."""
    distributions.add("greeter", GREET, group="amends.commands", entry_point="greet", attribute="greet")
    assert app.run(["--help"]) == 0
    assert "(from greeter)" in capsys.readouterr().out
    assert app.run(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_an_entry_point_that_is_no_command_is_refused(distributions, capsys):
    """A module, or whatever else it names."""
    distributions.add("odd", "", group="amends.commands", entry_point="odd")
    assert app.run(["odd"]) == Exit.USAGE
    assert "is no command" in capsys.readouterr().err


def test_a_broken_command_names_its_distribution(distributions, capsys):
    """It harms no other."""
    distributions.add("broken", "raise SystemExit(3)", group="amends.commands", entry_point="broken")
    assert app.run(["broken"]) == Exit.USAGE
    assert "broken" in capsys.readouterr().err
    assert app.run(["--help"]) == 0


def test_a_command_offered_twice_is_refused(distributions, capsys):
    """Both distributions are named."""
    for name in ("one", "two"):
        distributions.add(name, GREET, group="amends.commands", entry_point="greet")
    assert app.run(["greet"]) == Exit.USAGE
    assert "one, two" in capsys.readouterr().err


# --- words ---------------------------------------------------------------------------------------------------


def test_an_error_under_json_is_the_document(tmp_path, capsys):
    """One shape on every surface."""
    assert app.run(["-c", str(tmp_path / "amends.toml"), "runs", "list", "--json"]) == Exit.USAGE
    told = capsys.readouterr()
    assert set(json.loads(told.out)["error"]) == {"code", "message", "hint", "who_acts", "data"}
    assert told.err == ""


def test_an_error_for_people_is_talk(tmp_path, capsys):
    """Sentence and remedy on standard error; nothing on standard output."""
    assert app.run(["-c", str(tmp_path / "amends.toml"), "runs", "list"]) == Exit.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert "amends init" in told.err


def test_no_colour_where_none_is_wanted(tmp_path):
    """`NO_COLOR` is obeyed, even on a forced terminal."""
    environment = os.environ | {"NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-m", "amends", "-c", str(tmp_path / "amends.toml"), "doctor"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert told.returncode == Exit.FAILED
    assert "\x1b[3" not in told.stdout


@pytest.mark.parametrize(("given", "found"), [("abc-1", "abc-1"), ("-2", "abc-2"), ("x", "xyz"), ("xyz", "xyz")])
def test_an_id_is_found_whole_or_by_start_or_end(given, found):
    """People copy what they see."""
    assert common.one_of(given, ["abc-1", "abc-2", "xyz"], "run", "amends runs list") == found


def test_an_id_that_fits_several_is_not_guessed():
    """Nor is one that fits none."""
    with pytest.raises(errors.InvalidInput, match="fits 2 runs"):
        common.one_of("abc", ["abc-1", "abc-2"], "run", "amends runs list")
    with pytest.raises(errors.UnknownName, match="amends runs list"):
        common.one_of("q", ["abc-1"], "run", "amends runs list")
