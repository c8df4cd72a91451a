"""Adapters of tiny distributions, loaded by the real host."""

import textwrap

import pytest

from amends.backends import plugin_host
from amends.config import AdapterSettings, ProjectSettings
from amends.testing.distributions import MadeDistributions
from amends.testing.fakes import StaticSecrets

HEADER = """
from pathlib import Path
from amends.spi import Check, DoctorFinding, PolicyContribution, hookimpl
from amends.testing import tiny
def shop(contract): return tiny.TinyCapability(contract, Path())
"""


class Site(MadeDistributions):
    """Distributions whose modules begin with what all of them need."""

    def distribution(self, name, source, *, plugin=None):
        self.add(name, HEADER + textwrap.dedent(source), entry_point=plugin)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of distributions that this test's `load` finds; their modules are forgotten afterwards."""
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    made.forget()


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
