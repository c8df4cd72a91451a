"""What commands share: `--json`, opening the project, and finding things by the start or end of an id."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from amends.core.errors import InvalidInput, UnknownName
from amends.surfaces.cli.app import Session

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.config import Settings
    from amends.core.rows import RunRow, RunState
    from amends.ports.services import Progress

P = ParamSpec("P")
R = TypeVar("R")

by_option = click.option(
    "--by", required=True, envvar="AMENDS_PERSON", help="Who decides: a person of amends.toml.  [env: AMENDS_PERSON]"
)
comment_option = click.option("--comment", default="", help="Why, in words; it is recorded.")
CHANNEL = "cli"


def output_option(command: Callable[Concatenate[Session, P], R]) -> Callable[..., R]:
    """Add `--json`, and hand the command its `Session` as the first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        session = click.get_current_context().ensure_object(Session)
        session.output.as_json = bool(kwargs.pop("as_json"))
        return command(session, *args, **kwargs)

    return wrapped


def settings_of(session: Session) -> Settings:
    """The project's settings. Raises `ConfigError`."""
    from amends import bootstrap

    settings = bootstrap.settings_of(session.config)
    return bootstrap.sandboxed(settings) if session.sandbox else settings


@contextmanager
def whole_engine(session: Session, *, progress: Progress | None = None, mirror: bool = False) -> Generator[Engine]:
    """An engine with adapters and policies; adapters that are left out are said."""
    from amends.bootstrap import Engine

    opening = Engine.sandbox if session.sandbox else Engine.open
    with opening(session.config, progress=progress, mirror=mirror) as engine:
        for problem in engine.plugins.problems:
            session.output.say(f"left out: {problem}; {problem.remedy}", "yellow")
        yield engine


@contextmanager
def desk(session: Session) -> Generator[Engine]:
    """An engine for questions and decisions: no adapters, no policies."""
    from amends.bootstrap import Engine

    with Engine.desk(session.config, sandbox=session.sandbox) as engine:
        yield engine


def one_of(given: str, known: Iterable[str], kind: str, where: str) -> str:
    """The one id that `given` names: whole, or by its start or end. Raises `UnknownName`, or `InvalidInput` if several
    fit.
    """
    names = list(known)
    if given in names:
        return given
    fitting = [name for name in names if name.startswith(given) or name.endswith(given)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise InvalidInput(
            f"`{given}` fits {len(fitting)} {kind}s",
            hint=f"give the whole id: {', '.join(fitting[:5])}",
            fitting=fitting,
        )
    raise UnknownName(f"no {kind} `{given}`", hint=f"`{where}` shows them")


def every_run(engine: Engine, statuses: Iterable[str] = ()) -> Generator[RunRow]:
    """Every run the journal can read back, oldest first."""
    after = ""
    wanted = frozenset(statuses) or None
    while rows := engine.kit.journal.rows("run", statuses=wanted, after_key=after):
        after = rows[-1].key.key
        yield from engine.book.runs(rows)


def run_state(engine: Engine, name: str) -> RunState:
    """A run by id, by the start or end of it, by its key, or as `workflow/key`; a sealed one by its whole id or as
    `workflow/key`. Raises `UnknownName`, or `InvalidInput` if several fit.
    """
    from amends.ports.journal import RowKey

    workflow, slash, key = name.partition("/")
    if slash:
        found = engine.find(workflow, key)
        if found is None:
            raise UnknownName(f"no run `{key}` of workflow `{workflow}`", hint="`amends runs list` shows them")
        return found
    if engine.kit.journal.row(RowKey("sealed", name)) is not None:
        return engine.state(name)
    runs = list(every_run(engine))
    keyed = [run.run_id for run in runs if run.run_key == name]
    if len(keyed) > 1:
        raise InvalidInput(
            f"`{name}` is the key of {len(keyed)} runs", hint="give WORKFLOW/KEY, or an id", fitting=keyed
        )
    return engine.state(keyed[0] if keyed else one_of(name, (run.run_id for run in runs), "run", "amends runs list"))
