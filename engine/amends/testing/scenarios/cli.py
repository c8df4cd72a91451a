"""`amends scenario list` and `amends scenario run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amends import _resources
from amends.core.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from amends.testing.scenarios.running import Verdict

_root = click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of scenarios; default: the shipped ones.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group()
def scenario() -> None:
    """Scripted runs with trouble, for real, and the end state that must hold."""


@scenario.command("list")
@_root
@_json
def list_command(root: Path | None, *, as_json: bool) -> None:
    """Every scenario and its variants."""
    from amends.testing.scenarios.loading import list_scenarios  # noqa: PLC0415 - `--help` stays quick

    found = list_scenarios(root or _resources.scenarios_path())
    if as_json:
        click.echo(json.dumps([{"id": s.id, "title": s.title, "variants": s.variants} for s in found], indent=2))
        return
    for one in found:
        click.echo(f"{one.id}: {one.title}")
        for name, title in one.variants.items():
            click.echo(f"  {name}: {title}")


@scenario.command("run")
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every scenario, every variant.")
@click.option("--variant", default="", help="One variant only; default: all of the scenario's.")
@_root
@_json
def run_command(ids: tuple[str, ...], variant: str, root: Path | None, *, everything: bool, as_json: bool) -> int:
    """Run scenarios. Exit 0 only if each one holds; with --json one document each (several: a list)."""
    from amends.testing.scenarios.running import run_scenario  # noqa: PLC0415 - same

    folder = root or _resources.scenarios_path()
    forms = _forms(folder, ids, variant, everything=everything)
    verdicts: list[Verdict] = []
    for scenario_id, form in forms:
        verdict = run_scenario(folder, scenario_id, form)
        verdicts.append(verdict)
        if not as_json:
            _show(verdict)
        for problem in verdict.problems:
            click.echo(f"{verdict.name}: {problem}", err=True)
    if as_json:
        documents = [verdict.document for verdict in verdicts]
        click.echo(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2, ensure_ascii=False))
    return 0 if all(verdict.ok for verdict in verdicts) else 1


def _forms(root: Path, ids: tuple[str, ...], variant: str, *, everything: bool) -> list[tuple[str, str]]:
    """Which (scenario, variant) to run. Raises `InvalidInput` or `UnknownName`."""
    from amends.testing.scenarios.running import every_form  # noqa: PLC0415 - same

    if everything == bool(ids) or (variant and len(ids) != 1):
        raise InvalidInput(
            "name scenarios or say `--all`, not both; `--variant` goes with one scenario",
            hint="`amends scenario list` shows them",
        )
    forms = every_form(root)
    if everything:
        return forms
    for scenario_id in ids:
        if scenario_id not in {known for known, _ in forms}:
            raise UnknownName(f"no scenario `{scenario_id}`", hint="`amends scenario list` shows them")
    return [(ids[0], variant)] if variant else [form for form in forms if form[0] in ids]


def _show(verdict: Verdict) -> None:
    """The document for people."""
    made = verdict.document
    ok = "ok    " if verdict.ok else "NOT OK"
    click.echo(f"{ok} {verdict.name}: run {made['run_status']}, people are told {made['public_state']}")
    for action in made["actions"]:
        click.echo(f"  {_line(action)}")
    for row in made["residual_effects"]:
        click.echo(f"  left at {row['system']}: {row['kind']} {row['resource']} ({row['reference']})")
    for correction in made["corrections"]:
        click.echo(f"  told {correction['place']}")
    for item in made["escalations"]:
        click.echo(f"  {item['status']} for {item['owner']}: {item['cause']}: {item['in_doubt']}")


def _line(action: dict[str, Any]) -> str:
    """An action in one line."""
    decision = action["decision"] or {"outcome": "-", "policy_version": "-"}
    evidence = ", ".join(f"{item['source']}:{item['code']}" for item in action["evidence"])
    what = f"{action['seq']:>4} {action['kind']:<9} {action['capability']:<32}"
    became = f"{action['status']:<13} {action['outcome']:<9} x{action['attempts']} sent {action['sent_seq'] or '-'}"
    decided = f"[{decision['outcome']} {decision['policy_version'].split('@')[0]}]"
    return f"{what} {became} {action['provider_reference']} {decided} {evidence}"
