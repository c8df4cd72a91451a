"""The project of one test: `amends.toml` with the adapters under test, people who may say yes, and short bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from amends.core.canonical import Json

STORAGE = ".amends"
_HEAD = f"""\
[project]
tenant = "acme"
environment = "sandbox"
owner = "maya"

[storage]
folder = "{STORAGE}"
mirror = false

[engine]
lease_seconds = 1e9
skew_seconds = 0.0

[people.maya]
roles = ["operations", "finance", "owner"]
tier = 3

[agents.agent]
roles = ["developer"]
"""


def write_project(folder: Path, adapters: Mapping[str, Mapping[str, Json]]) -> Path:
    """Write the project into `folder`, which is made; answers the folder. The system under test is its own sandbox."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [f"\n[adapters.{name}]\n{_lines({'sandbox': {}, **table})}" for name, table in adapters.items()]
    (folder / "amends.toml").write_text(_HEAD + "".join(tables), encoding="utf-8")
    return folder


def _lines(table: Mapping[str, Json]) -> str:
    return "".join(f"{json.dumps(name)} = {_toml(value)}\n" for name, value in table.items())


def _toml(value: Json) -> str:
    """A JSON value as TOML writes it in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if value is None:
        raise ValueError("an option cannot be null: leave it out")
    return json.dumps(value, ensure_ascii=False)
