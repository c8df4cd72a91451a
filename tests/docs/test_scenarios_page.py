"""`docs/scenarios.md`: its example runs, each block of TOML loads, and no verb or key of the format is left out."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from amends.testing.scenarios.loading import merge, parse_scenario
from amends.testing.scenarios.model import Expectation
from amends.testing.scenarios.running import run_scenario
from amends.testing.scenarios.script_model import VERBS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scenarios.md").read_text(encoding="utf-8")
EXAMPLE, *PARTS = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILE = Path("/scenarios/order-example/scenario.toml")


@pytest.mark.parametrize("part", PARTS, ids=range(len(PARTS)))
def test_each_part_loads_on_top_of_the_example(part):
    """What a reader copies from the page is valid."""
    data = merge(tomllib.loads(EXAMPLE), tomllib.loads(part))
    for variant in data.get("variants", {"": {}}):
        assert parse_scenario(data, FILE, variant).title


def test_the_example_runs(tmp_path):
    """With the configuration and bundle of a shipped scenario around it."""
    folder = tmp_path / "order-example"
    folder.mkdir()
    (folder / "scenario.toml").write_text(EXAMPLE)
    shipped = (ROOT / "scenarios/resume/amends.toml").read_text()
    (folder / "amends.toml").write_text(shipped.replace('contracts = "contracts"', 'contracts = "package:partner"'))
    shutil.copytree(ROOT / "scenarios/resume/bundle-1", folder / "bundle-v1")
    assert run_scenario(tmp_path, "order-example").problems == ()


def test_every_verb_and_expectation_is_on_the_page():
    """The format has no undocumented words."""
    assert [verb for verb in VERBS if f"`{verb}" not in PAGE] == []
    assert [key for key in Expectation.model_fields if f"`{key}`" not in PAGE] == []
