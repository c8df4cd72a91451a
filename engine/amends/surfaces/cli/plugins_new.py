"""`amends plugins new`: a whole adapter to start from, as a distribution of its own, with its tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.abc import Traversable
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from amends import __version__
from amends.core.contract import namespace_of
from amends.core.errors import Conflict, InvalidInput
from amends.spi import SPI_VERSION
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST_NAME = 40
_RESERVED = frozenset({"amends", "conformance", "spi", "testing"})  # namespaces and words of the engine
_SUFFIX = ".tmpl"  # a template is not code until its names are filled in: no linter and no import sees it


@click.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to make.  [default: amends-NAME, in this one]",
)
@output_option
def new(session: Session, name: str, folder: Path | None) -> None:
    """Make a distribution `amends-NAME` with a working adapter, its policies, and tests wired to the fault matrix.

    NAME is the prefix of its capabilities: lower-case letters, digits and single underscores. Nothing that exists is
    overwritten.
    """
    _check_name(name)
    distribution = f"amends-{name.replace('_', '-')}"
    target = (folder or Path(distribution)).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Conflict(f"`{target}` exists already", hint="name another with --folder")
    written = _make(target, name, distribution)
    if session.output.as_json:
        session.output.document({"folder": str(target), "distribution": distribution, "written": written})
        return
    for path in written:
        session.output.line(path)
    session.output.say(f'next: cd {target} && python -m pip install --editable ".[test]" && python -m pytest')


def _check_name(name: str) -> None:
    """Raises `InvalidInput` for what cannot be a prefix, `Conflict` for a plugin that is there already."""
    from amends.backends.plugin_host import installed

    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InvalidInput(
            f"`{name}` cannot be an adapter's name",
            hint=f"lower-case letters, digits and single underscores, a letter first, at most {_LONGEST_NAME}",
        )
    if name in _RESERVED:
        raise InvalidInput(f"`{name}` is a word of the engine", hint="name the adapter after its system")
    if taken := installed().get(name):
        raise Conflict(
            f"the plugin `{name}` is installed already, by {', '.join(map(str, taken))}",
            hint="choose another name, or uninstall it: two plugins of one name are both refused",
        )


def _make(target: Path, name: str, distribution: str) -> list[str]:
    """Fill in every template; the paths written, relative to `target`."""
    package = f"amends_{name}"
    values = {
        "name": name,
        "namespace": namespace_of(name),
        "package": package,
        "distribution": distribution,
        "variable": f"{name.upper()}_TOKEN",
        "amends_range": _until_next(__version__),
        "spi_range": _until_next(SPI_VERSION, majors=True),
    }
    written: list[str] = []
    for path, text in sorted(_templates(files("amends.surfaces.cli") / "templates" / "plugin")):
        place = path.removesuffix(_SUFFIX).replace("amends_NAME", package).replace("NAME", name)
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        with (target / place).open("x", encoding="utf-8") as file:
            file.write(Template(text).substitute(values))
        written.append(place)
    return written


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """Path and text of every template."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield f"{above}{entry.name}", entry.read_text(encoding="utf-8")


def _until_next(version: str, *, majors: bool = False) -> str:
    """The range of versions that keep what this one promises: up to the next major, before 1.0 the next minor."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if majors or major:
        return f">={major}.{minor},<{major + 1}"
    return f">={major}.{minor},<{major}.{minor + 1}"
