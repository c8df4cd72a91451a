"""`docs/policy-cookbook.md`: every policy on it loads beside the baseline and the adapter's defaults, passes its tests,
and is seen to decide; no block is left out.
"""

import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from amends.backends.cedar.testing import check_policies, run_policy_tests
from amends.spi import AdapterContext

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy-cookbook.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (?P<number>\d+)\. (?P<title>[^\n]+)\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
INTRODUCTION = PAGE.partition("\n## ")[0]
PARTNER = {"base_url": "http://127.0.0.1:9", "contracts": "package:partner", "token": "env:T", "account": "acct_main"}


@dataclass(frozen=True)
class Recipe:
    """A section of the page: its policies, windows and tests."""

    title: str
    policies: str
    windows: str
    tests: str

    @property
    def ids(self):
        return re.findall(r'@id\("([^"]+)"\)', self.policies)


def recipes():
    for section in SECTION.finditer(PAGE):
        blocks = {}
        for fence in FENCE.finditer(section["body"]):
            assert fence["language"] not in blocks, f"{section['title']}: two blocks of {fence['language']}"
            blocks[fence["language"]] = fence["body"]
        assert blocks.keys() <= {"cedar", "toml", "json"}
        yield Recipe(section["title"], blocks["cedar"], blocks.get("toml", ""), blocks["json"])


RECIPES = list(recipes())
FIXTURES = json.loads(next(FENCE.finditer(INTRODUCTION))["body"])["fixtures"]


class Shelf:
    """Keeps what hooks hand over."""

    def __init__(self):
        self.contracts, self.contributions = [], []

    def capability(self, capability):
        self.contracts.append(capability.contract)

    def policies(self, contribution):
        self.contributions.append(contribution)


@pytest.fixture(scope="module")
def partner(tmp_path_factory):
    """What the adapter of the page brings."""
    context = AdapterContext("partner", "partner", "acme", "staging", PARTNER, str, str(tmp_path_factory.mktemp("p")))
    shelf = Shelf()
    plugin = importlib.import_module("amends_http.plugin")
    plugin.amends_register_capabilities(context, shelf)
    plugin.amends_register_policies(context, shelf)
    return {"contracts": shelf.contracts, "contributions": {"partner": shelf.contributions[0]}}


@pytest.fixture
def loaded(partner, tmp_path):
    """Write a recipe's bundle; what `check` and `test` are called with."""

    def written(recipe):
        (tmp_path / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
        (tmp_path / "site.cedar").write_text(recipe.policies, encoding="utf-8")
        (tmp_path / "tests").mkdir()
        tests = {"fixtures": FIXTURES, "tests": json.loads(recipe.tests)}
        (tmp_path / "tests" / "site.policytest.json").write_text(json.dumps(tests), encoding="utf-8")
        if recipe.windows:
            (tmp_path / "windows.toml").write_text(recipe.windows, encoding="utf-8")
        return {**partner, "site_bundle": tmp_path, "known_labels": {}}

    return written


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_recipe_holds(recipe, loaded):
    """Nothing to complain of, every test passes, and each policy decides in one of them."""
    bundle = loaded(recipe)
    assert [str(finding) for finding in check_policies(**bundle)] == []
    results = [result for result in run_policy_tests(**bundle) if result.file.startswith("site/")]
    assert [f"{r.name}: {r.problem}" for r in results if not r.passed] == []
    decided = {id_ for result in results for id_ in result.policy_ids}
    assert [id_ for id_ in recipe.ids if id_ not in decided] == []
    assert {r.outcome for r in results} > {"allow"}


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.windows], ids=lambda recipe: recipe.title)
def test_windows_of_a_recipe_are_the_names_its_policies_ask_for(recipe):
    """No window is left over, and none is missing."""
    named = set(re.findall(r'^name = "(\w+)"', recipe.windows, re.MULTILINE))
    assert named == set(re.findall(r'windows\.contains\("(\w+)"\)', recipe.policies))


def test_the_page_has_ten_recipes_and_no_block_beside_them():
    """What is on the page is tested."""
    assert len(RECIPES) == 11
    inside = sum(len(list(FENCE.finditer(section["body"]))) for section in SECTION.finditer(PAGE))
    assert len(list(FENCE.finditer(PAGE))) == inside + 1  # the fixtures
    assert PAGE.count("\n```") == 2 * (inside + 1)


def test_all_recipes_load_together(loaded):
    """One bundle of all ten: no id is taken twice."""
    together = Recipe(
        "all",
        "\n".join(recipe.policies for recipe in RECIPES),
        "\n".join(recipe.windows for recipe in RECIPES),
        "[" + json.dumps({"name": "x", "given": {"fixture": "look"}, "expect": {"outcome": "allow"}}) + "]",
    )
    assert [str(finding) for finding in check_policies(**loaded(together))] == []
