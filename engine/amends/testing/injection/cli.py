"""`amends inject`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import AmendsError, InvalidInput, UnknownName

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.core.rows import RunState
    from amends.testing.injection.workflow import Workflow
    from amends.testing.injection.world import Tried

_FAILED, _NEEDS_HUMAN = 1, 6


@click.command()
@click.argument("workflow", type=click.Path(path_type=Path), required=False)
@click.option("--run", "run_name", default="", help="A recorded run of this project instead: its id, or WORKFLOW/KEY.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND[@STEP]",
    help="Only this fault, at one step or at every one; may be repeated: lost_answer, late_answer, undo_rejected, "
    "bundle_changed, crash.  [default: all, at each step where they apply]",
)
@click.option(
    "--candidate-bundle",
    "candidate",
    type=click.Path(path_type=Path),
    help="The bundle that is there when a run is taken back, for `bundle_changed`.",
)
@click.option(
    "--wait-seconds", default=60.0, show_default=True, help="How long recovery may wait for what is due, in each world."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def inject(
    context: click.Context,
    workflow: Path | None,
    run_name: str,
    faults: tuple[str, ...],
    candidate: Path | None,
    wait_seconds: float,
    *,
    as_json: bool,
) -> int:
    """Try your workflow on the sandbox with a fault in each world, and see what is left.

    WORKFLOW is a file of calls (docs/inject.md). Every world makes them on the adapters that have a table
    `[adapters.NAME.sandbox]`, meets one fault, is recovered, and is looked at through fresh adapters: `held`, `waits`
    (for a person), or `left` (something is there that the ledger says is not). Exit codes: 0 held, 6 a person is
    needed, 1 something was overstated or a fault did not fire.
    """
    root = context.find_root().params
    config: Path | None = root.get("config")
    try:
        made = _workflow(config, workflow, run_name, sandbox=bool(root.get("sandbox")))
        return _injected(config, made, faults, candidate, wait_seconds, as_json=as_json)
    except AmendsError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"error": error.as_dict()}, indent=2, ensure_ascii=False))
        raise


def _injected(
    config: Path | None,
    workflow: Workflow,
    texts: tuple[str, ...],
    candidate: Path | None,
    wait_seconds: float,
    *,
    as_json: bool,
) -> int:
    import tempfile  # noqa: PLC0415 - `--help` stays quick

    from amends.testing.injection import faults, sandbox, telling, trying  # noqa: PLC0415 - same
    from amends.testing.injection.world import Setting  # noqa: PLC0415 - same

    asked = faults.asked_for(texts, workflow)
    with sandbox.open_sandbox(config) as engine:
        for problem in engine.plugins.problems:
            click.echo(f"left out: {problem}; {problem.remedy}", err=True)
        contracts = sandbox.contracts_of(engine, config, workflow)
        word = f"w{engine.kit.ids.new()[-6:]}"
    if candidate is not None:
        sandbox.open_sandbox(config, bundle=candidate).close()  # a bad bundle is said before anything is sent

    def tell(number: int, total: int, tried: Tried) -> None:
        click.echo(f"[{number}/{total}] {telling.name_of(tried)}: {tried.verdict}", err=True)

    with tempfile.TemporaryDirectory(prefix="amends-inject-") as folder:
        setting = Setting(config, workflow, Path(folder), candidate, wait_seconds)
        report = trying.try_all(setting, contracts, asked, word, tell)
    if as_json:
        click.echo(json.dumps(telling.document(report), indent=2, ensure_ascii=False))
    else:
        for line in telling.lines(report):
            click.echo(line)
    if report.failed:
        return _FAILED
    return _NEEDS_HUMAN if report.verdict == "waits" else 0


def _workflow(config: Path | None, path: Path | None, run_name: str, *, sandbox: bool) -> Workflow:
    """The workflow of the file, or of the recorded run. Raises `InvalidInput`, `ConfigError` or `UnknownName`."""
    from amends.bootstrap import Engine  # noqa: PLC0415 - `--help` stays quick
    from amends.testing.injection.recorded import workflow_of  # noqa: PLC0415 - same
    from amends.testing.injection.workflow import load_workflow  # noqa: PLC0415 - same

    if (path is None) == (not run_name):
        raise InvalidInput("name a workflow file or `--run`, not both", hint="`amends inject --help` shows how")
    if path is not None:
        return load_workflow(path)
    with Engine.desk(config, sandbox=sandbox) as desk:
        return workflow_of(_recorded(desk, run_name))


def _recorded(desk: Engine, name: str) -> RunState:
    """A run by id, or the end or start of it, or as WORKFLOW/KEY. Raises `UnknownName`."""
    workflow, slash, key = name.partition("/")
    found = desk.find(workflow, key) if slash else None
    if found is not None:
        return found
    fitting = [run.run_id for run in desk.runs() if name and (run.run_id.startswith(name) or run.run_id.endswith(name))]
    if slash or len(fitting) > 1:
        raise UnknownName(f"no one run is `{name}`", hint="`amends runs list` shows them", known=fitting)
    return desk.state(fitting[0] if fitting else name)
