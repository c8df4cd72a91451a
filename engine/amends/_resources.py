"""Where the data that travels with Amends lies: in the checkout (editable install) or inside the wheel."""

from __future__ import annotations

from pathlib import Path

from amends.core.errors import ConfigError


def policies_path() -> Path:
    """The folder of the baseline policy bundle. Raises `ConfigError` if the installation lacks it."""
    return _data("policies", "bundle.toml")


def scenarios_path() -> Path:
    """The folder of the shipped scenarios. Raises `ConfigError` if the installation lacks it."""
    return _data("scenarios", "README.md")


def _data(name: str, witness: str) -> Path:
    package = Path(__file__).resolve().parent
    for folder in (package / "_data" / name, package.parents[1] / name):
        if (folder / witness).is_file():
            return folder
    raise ConfigError(
        f"the installation has no `{name}` folder", hint="install the amends wheel again, or run from a full checkout"
    )
