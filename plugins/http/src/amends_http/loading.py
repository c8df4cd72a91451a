"""Contract files read and checked when the adapter is loaded; an error names file, key and remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from amends.spi import ConfigError
from amends_http.checking import problems
from amends_http.declaration import Declaration
from amends_http.settings import sentence

_VALUE = re.compile(r"\{values\.([A-Za-z0-9_]+)\}")


def load_declarations(folder: Path) -> dict[str, Declaration]:
    """Every operation declared in `folder`, by file name. Raises `ConfigError` naming file, key and remedy."""
    found: dict[str, Declaration] = {}
    names: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        declaration = read_declaration(path)
        _refuse_draft(path, declaration)
        problem = next(problems(declaration), None)
        if problem is not None:
            raise ConfigError(f"contract file `{path.name}`, key `{problem[0]}`: {problem[1]}", hint=problem[2])
        if declaration.name in names:
            raise ConfigError(
                f"contract file `{path.name}`, key `name`: `{declaration.name}` is declared in"
                f" `{names[declaration.name]}` already",
                hint="rename one of the two operations",
            )
        names[declaration.name] = path.name
        found[path.name] = declaration
    if not found:
        raise ConfigError(f"no contract files in `{folder.name}`", hint="add one .toml file per operation")
    return found


def known_values(file: str, declaration: Declaration, given: Mapping[str, str]) -> dict[str, str]:
    """The file's default values with the adapter's own over them. Raises `ConfigError` for one that nobody gives."""
    values = {**declaration.values, **given}
    for name in sorted(set(_VALUE.findall(declaration.model_dump_json()))):
        if name not in values:
            raise ConfigError(
                f"contract file `{file}` uses `{{values.{name}}}`, which has no value",
                hint=f"set `{name}` in the adapter's `values`" + (", or its `account`" if name == "account" else ""),
            )
    return values


def read_declaration(path: Path) -> Declaration:
    """What one file declares, unchecked beyond its types. Raises `ConfigError` naming file, key and remedy."""
    try:
        return Declaration.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"contract file `{path.name}`, key `{key}`: {sentence(first['msg'])}",
            hint="see `Write a contract` in the amends-http README",
            file=path.name,
            key=key,
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"contract file `{path.name}` is not TOML: {error}", hint="correct the file") from None


def _refuse_draft(path: Path, declaration: Declaration) -> None:
    """A draft is no contract: whoever imported it has to say how it is found again and taken back."""
    if declaration.blanks:
        listed = "; ".join(f"`{key}`: {text}" for key, text in declaration.blanks.items())
        raise ConfigError(
            f"contract file `{path.name}` is a draft with {len(declaration.blanks)} blanks: {listed}",
            hint="write each one and delete its line in `[blanks]`",
            blanks=dict(declaration.blanks),
        )
