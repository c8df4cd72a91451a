"""A plugin is cheap to import: every command that loads adapters pays for all of them, whether they are used or not."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from amends.backends.plugin_host import ranges
from amends.spi import SPI_VERSION

ROOT = Path(__file__).parents[2]
HEAVY = ("alembic", "cedarpy", "duckdb", "httpx2", "psycopg", "sqlalchemy")
PROJECTS = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
MODULES = sorted(module for one in PROJECTS for module in one["project"]["entry-points"]["amends"].values())


def loaded(module):
    """The top-level packages that a fresh interpreter has after importing the module."""
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(told.stdout.split())


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_plugin_loads_no_heavy_library(module):
    """Drivers, migration tools and HTTP clients are imported by the first call that needs them."""
    assert loaded(module) & set(HEAVY) == set()


def test_a_heavy_library_would_be_noticed():
    """The check itself can fail."""
    assert loaded("httpx2") & set(HEAVY) == {"httpx2"}


@pytest.mark.parametrize("module", MODULES)
def test_a_plugin_says_which_versions_of_the_spi_it_works_with(module):
    """From a minor version on, and never the next major."""
    wanted = import_module(module).SPI
    assert ranges.supports(wanted, SPI_VERSION)
    assert not ranges.supports(wanted, f"{int(SPI_VERSION.partition('.')[0]) + 1}.0")
