"""Finding and reading scenarios: folder, file, variant; an error names file, key and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from amends.core.errors import ConfigError, UnknownName
from amends.core.reading import toml_of
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.script_model import VERBS

FILE_NAME = "scenario.toml"
_EDITS = ("before", "after", "replace")

_Tables: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A scenario as it is offered: its id, words, and the names of its variants (none: it has just one form)."""

    id: str
    title: str
    variants: dict[str, str]
    folder: Path


class _Edited(BaseModel):
    """What is merged and edited before the whole is looked at."""

    model_config = ConfigDict(extra="allow", strict=True)

    script: _Tables = Field(default_factory=list[dict[str, Any]])
    before: dict[str, _Tables] = Field(default_factory=dict)
    after: dict[str, _Tables] = Field(default_factory=dict)
    replace: dict[str, _Tables] = Field(default_factory=dict)


class _File(_Edited):
    """A scenario file before its variant is chosen and what it extends is read."""

    extends: str = ""
    variants: dict[str, _Edited] = Field(default_factory=dict)


def list_scenarios(root: Path) -> list[Listed]:
    """Every scenario under `root`, by id. Raises `ConfigError` for a file that is no TOML or has no title."""
    return [_listed(path.parent, read_toml(path)) for path in sorted(root.glob(f"*/{FILE_NAME}"))]


def load_scenario(root: Path, scenario_id: str, variant: str = "") -> Scenario:
    """One scenario with one variant applied. Raises `UnknownName` or `ConfigError` (file, key, remedy)."""
    folder = root / scenario_id
    if not (folder / FILE_NAME).is_file():
        raise UnknownName(
            f"no scenario `{scenario_id}`",
            hint="`amends scenario list` shows them",
            known=[found.id for found in list_scenarios(root)],
        )
    return parse_scenario(read_toml(folder / FILE_NAME), folder / FILE_NAME, variant)


def parse_scenario(data: dict[str, Any], path: Path, variant: str = "") -> Scenario:
    """A scenario from parsed TOML (one that `extends` another: on top of that).

    Raises `UnknownName` for a variant it lacks, else one `ConfigError` with every wrong key.
    """
    _shaped(data, path)
    data, below = _extended(data, path)
    variants: dict[str, dict[str, Any]] = data.get("variants", {})
    if variant not in variants and (variant or variants):
        raise UnknownName(
            f"scenario `{data.get('id', path.parent.name)}` has no variant `{variant}`",
            hint=f"its variants are {', '.join(variants) or 'none'}",
        )
    base = {key: value for key, value in data.items() if key != "variants"}
    changes = dict(variants.get(variant, {}))
    edits = {name: changes.pop(name) for name in _EDITS if name in changes}
    merged = merge(base, changes)
    merged["script"] = _edited(merged.get("script", []), edits, path, variant)
    if merged.get("id", path.parent.name) != path.parent.name:
        raise ConfigError(f"`{path}`: `id` is `{merged['id']}`", hint=f"call it as its folder, `{path.parent.name}`")
    try:
        return Scenario.model_validate({**merged, "variant": variant, "folder": path.parent, "below": below})
    except ValidationError as error:
        raise explained(error, path, f" (variant `{variant}`)" if variant else "") from error


def _shaped(data: dict[str, Any], path: Path) -> None:
    """Raises `ConfigError` for what can be neither merged nor edited, before the whole is looked at."""
    try:
        _File.model_validate(data)
    except ValidationError as error:
        raise explained(error, path) from error


def _extended(data: dict[str, Any], path: Path) -> tuple[dict[str, Any], Path | None]:
    """A scenario with all that the one it `extends` says beneath it, and that one's folder. Raises `ConfigError`."""
    name = data.get("extends", "")
    if not name:
        return data, None
    other = path.parent.parent / str(name) / FILE_NAME
    if not other.is_file():
        raise ConfigError(
            f"`{path}`: `extends` names `{name}`, which is not there", hint="name a scenario beside this one"
        )
    _shaped(read_toml(other), other)
    changes = {key: value for key, value in data.items() if key not in {"extends", *_EDITS}}
    edits = {key: data[key] for key in _EDITS if key in data}
    merged = merge({**read_toml(other), "id": path.parent.name}, changes)
    merged["script"] = _edited(merged.get("script", []), edits, path, "")
    return merged, other.parent


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes`: tables merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value)
    return merged


def _merged(old: Any, value: Any) -> Any:
    if isinstance(old, dict) and isinstance(value, dict):
        return merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
    return value


def _edited(script: _Tables, edits: dict[str, dict[str, _Tables]], path: Path, variant: str) -> _Tables:
    """The script with entries put before, after or in place of named steps."""
    names = {str(entry.get("as", "")) for entry in script} - {""}
    for kind, changes in edits.items():
        for step in changes:
            if step not in names:
                raise ConfigError(
                    f"`{path}`: `variants.{variant}.{kind}.{step}`: no step is called `{step}`",
                    hint=f"the steps are {', '.join(sorted(names))}",
                )
    made: _Tables = []
    for entry in script:
        step = str(entry.get("as", ""))
        made += edits.get("before", {}).get(step, [])
        made += edits.get("replace", {}).get(step, [entry])
        made += edits.get("after", {}).get(step, [])
    return made


def read_toml(path: Path) -> dict[str, Any]:
    """The parsed file. Raises `ConfigError` for one that is no TOML."""
    try:
        return toml_of(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"`{path}` is not valid TOML: {error}", hint="fix the line it names") from error


def _listed(folder: Path, data: dict[str, Any]) -> Listed:
    _shaped(data, folder / FILE_NAME)
    variants = {name: str(change.get("title", name)) for name, change in data.get("variants", {}).items()}
    return Listed(folder.name, str(data.get("title", "")), variants, folder)


def explained(
    error: ValidationError,
    path: Path,
    form: str = "",
    *,
    page: str = "docs/scenarios.md",
    verbs: tuple[str, ...] = VERBS,
) -> ConfigError:
    """Every wrong key of a file that holds a script, each with what is wrong and the remedy."""
    wrong = [_wrong(item, page, verbs) for item in error.errors(include_url=False)]
    listed = "; ".join(f"`{key}`: {what} ({remedy})" for key, what, remedy in wrong)
    return ConfigError(
        f"`{path}`{form} has wrong keys: {listed}",
        hint=f"correct each key; {page} has them all",
        file=str(path),
        keys=[{"key": key, "message": what, "remedy": remedy} for key, what, remedy in wrong],
    )


def _wrong(item: ErrorDetails, page: str, verbs: tuple[str, ...]) -> tuple[str, str, str]:
    key = ".".join(_places(item["loc"])) or "the file"
    given = item["input"]
    match item["type"]:
        case "extra_forbidden":
            return key, "there is no such key", f"take it out, or look for its right name in {page}"
        case "missing":
            return key, "is missing", "add it"
        case "verb":
            names = [str(name) for name in cast("dict[str, Any]", given)] if isinstance(given, dict) else []
            has = [name for name in names if name in verbs]
            near = [m for name in names for m in get_close_matches(name, verbs, n=1)]
            remedy = f"did you mean `{near[0]}`?" if near and not has else f"give it one of {', '.join(verbs)}"
            return key, f"has {len(has) or 'no'} verbs", remedy
        case "value_error":
            return key, item["msg"].removeprefix("Value error, "), "correct it"
        case _:
            return key, item["msg"].lower(), f"it is `{str(given)[:60]}`: change it"


def _places(loc: tuple[int | str, ...]) -> Iterator[str]:
    """The key's path, without the tags that tell script entries apart."""
    for place, part in enumerate(loc):
        after_number = place >= 2 and isinstance(loc[place - 1], int) and loc[place - 2] == "script"  # noqa: PLR2004
        if not after_number:
            yield str(part)
