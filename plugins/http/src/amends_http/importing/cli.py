"""`amends contracts import`: drafts of contracts from an OpenAPI document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.spi import ConfigError

if TYPE_CHECKING:
    from amends_http.importing.drafting import Draft


@click.group()
def contracts() -> None:
    """Contract files for partner APIs: draft them from an OpenAPI document."""


@contracts.command("import")
@click.argument("spec", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("contracts"),
    show_default=True,
    help="A folder for one file per operation, or a .toml file for one operation.",
)
@click.option("--only", multiple=True, metavar="METHOD:PATH", help="Only these operations, such as POST:/v1/charges.")
@click.option("--force", is_flag=True, help="Write over files that are there and differ.")
def import_command(spec: Path, out: Path, only: tuple[str, ...], *, force: bool) -> int:
    """Draft a contract for every operation of SPEC (OpenAPI 3, JSON or YAML) that changes something.

    What the document cannot know (who reads it, the way back, how it is found) is listed in each draft under [blanks],
    and the draft is refused until a person has written it. Nothing that is there is written over without --force.
    """
    from amends_http.importing.drafting import drafts  # noqa: PLC0415 - `--help` stays quick
    from amends_http.importing.openapi import read_document  # noqa: PLC0415 - same

    made = chosen(drafts(read_document(spec)), only)
    files = placed(made, out)
    written = write(files, force=force)
    for path, draft in zip(files, made, strict=True):
        click.echo(f"{path}: {'drafted' if path in written else 'unchanged'}, {draft.operation}")
        for warning in draft.warnings:
            click.echo(f"{path}: {warning}", err=True)
    click.echo(f"{len(made)} drafts: write what [blanks] of each asks for, and delete its line there", err=True)
    return 0


def chosen(made: list[Draft], only: tuple[str, ...]) -> list[Draft]:
    """The drafts of the named operations, or all. Raises `ConfigError` for a name that is not in the document."""
    wanted = {_spoken(name): name for name in only}
    there = {draft.operation for draft in made}
    for spoken, name in wanted.items():
        if spoken not in there:
            raise ConfigError(
                f"the document has no operation `{name}` that changes something",
                hint="say METHOD:PATH as it stands there, such as POST:/v1/charges",
            )
    found = [draft for draft in made if not wanted or draft.operation in wanted]
    if not found:
        raise ConfigError("the document has no operation that changes something", hint="reads need no contract")
    return found


def placed(made: list[Draft], out: Path) -> dict[Path, str]:
    """Where each draft goes, and its text. Raises `ConfigError` if several would go into one file."""
    from amends_http.importing.toml_text import toml_text  # noqa: PLC0415 - same

    if out.suffix != ".toml":
        return {out / f"{draft.name}.toml": _head(draft) + toml_text(draft.document) for draft in made}
    if len(made) > 1:
        raise ConfigError(
            f"`{out}` is one file, and {len(made)} operations were drafted", hint="name a folder, or one `--only`"
        )
    return {out: _head(made[0]) + toml_text(made[0].document)}


def write(files: dict[Path, str], *, force: bool) -> set[Path]:
    """Write what is new or different; all or nothing. Raises `ConfigError` for what is there and differs."""
    changed = {path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text}
    standing = sorted(str(path) for path in changed if path.exists())
    if standing and not force:
        raise ConfigError(
            f"nothing was written: {', '.join(f'`{name}`' for name in standing)} would be written over",
            hint="say `--force`, or another `--out`",
        )
    for path in sorted(changed):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    return changed


def _spoken(only: str) -> str:
    method, _, path = only.partition(":")
    return f"{method.upper()} {path}"


def _head(draft: Draft) -> str:
    return f"# Drafted from {draft.operation}. Refused until each line of [blanks] is written and deleted.\n"
