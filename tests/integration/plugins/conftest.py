"""Tiny distributions, made on the fly: a module and a `.dist-info` folder on `sys.path`."""

import sys
import textwrap

import pytest

from amends.backends import plugin_host
from amends.config import AdapterSettings, ProjectSettings
from amends.testing.fakes import StaticSecrets

HEADER = """
from amends.spi import Check, DoctorFinding, PolicyContribution, hookimpl
from amends.testing.contracts import reversible
from amends.testing.tiny import TinyCapability
"""


class Site:
    """A folder on `sys.path` that distributions are put into."""

    def __init__(self, folder):
        self.folder = folder
        self.modules = set()

    def distribution(self, name, source, *, plugin=None, target=None, header=HEADER, version="1.0"):
        """Install distribution `name`, offering `plugin` (default: its name) with `source` as its module of hooks."""
        module = f"made_{name.replace('-', '_')}"
        self.modules.add(module)
        (self.folder / f"{module}.py").write_text(header + textwrap.dedent(source), encoding="utf-8")
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        points = f"[amends]\n{plugin or name} = {target or module}\n"
        (info / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site whose distributions this test's `load` finds; their modules are forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    made = Site(folder)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)


@pytest.fixture
def load(site, tmp_path):
    """Load adapters by name; keyword: the section's keys."""

    def loading(*names, secrets=None, **sections):
        adapters = {name: AdapterSettings() for name in names}
        adapters |= {name: AdapterSettings.model_validate(keys) for name, keys in sections.items()}
        return plugin_host.load(
            adapters,
            project=ProjectSettings(tenant="acme", environment="staging"),
            base=tmp_path,
            secrets=secrets or StaticSecrets({}),
        )

    return loading
