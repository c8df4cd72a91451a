"""A plugin for another major version of the SPI is refused by name, before any of its hooks is called."""

import pytest

from amends.spi import SPI_VERSION

LATER = """
from amends.spi import hookimpl

SPI = ">=99.0,<100"


@hookimpl
def amends_register_capabilities(context, registry):
    raise SystemExit("a hook of another version was called")
"""


@pytest.fixture
def later(distributions, project):
    """An installed plugin of tomorrow, which amends.toml asks for."""
    distributions.add("amends-later", LATER, entry_point="later")
    project.write_text(project.read_text() + "\n[adapters.later]\n")


@pytest.mark.parametrize("command", [("doctor",), ("plugins", "check")])
def test_it_is_told_in_one_line_with_both_versions_and_a_remedy(later, amends, command):
    """Which adapter, of which distribution, what it wants, what there is, and what to do."""
    told = amends(*command, code=1)
    [line] = [line for line in told.out.splitlines() if "later" in line]
    assert "amends-later 1.0" in line
    assert f"it supports the plugin interface `>=99.0,<100`, this engine has {SPI_VERSION}" in line
    assert "install versions of amends and the plugin that fit together" in line


def test_the_others_are_there(later, amends):
    """One that does not fit takes none with it."""
    told = amends("plugins", "check", "--json", code=1)
    assert [adapter["adapter"] for adapter in told.json["adapters"]] == ["shop"]
    assert [(problem["adapter"], problem["stage"]) for problem in told.json["problems"]] == [("later", "version")]
