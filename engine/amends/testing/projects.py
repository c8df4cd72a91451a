"""A project in a folder, for tests that open a whole engine or run commands."""

from __future__ import annotations

from pathlib import Path

SETTINGS = """
[project]
tenant = "acme"
environment = "staging"
owner = "maya"

[storage]
mirror = false

[engine]
lease_seconds = 2.0
skew_seconds = 0.0

[people.maya]
roles = ["operations"]
tier = 2

[people.noah]
tier = 1

[agents.coder]
roles = ["developer"]

[adapters.shop]
folder = "shop"
refuse = ["nothing-left"]
"""


def make_project(folder: Path, *, extra: str = "") -> Path:
    """Write `amends.toml` with the adapter of `amends.testing.tiny` into `folder`; the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "amends.toml"
    path.write_text(SETTINGS + extra, encoding="utf-8")
    return path
