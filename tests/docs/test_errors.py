"""`docs/errors.md` names every error there is, who acts, and the exit code it leads to."""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import amends
from amends.core.errors import AmendsError, Conflict
from amends.surfaces.cli.exits import of_error

PAGE = (Path(__file__).parents[2] / "docs/errors.md").read_text(encoding="utf-8")
CATALOGUE = PAGE.partition("## Catalogue")[2]
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \| (\d) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
ROWS = {code: (name, who, int(exit_code)) for code, name, who, exit_code, _, _ in ROW.findall(CATALOGUE)}


def errors():
    """Every class of error of the engine and its surfaces by code; one that adds no code is its parent to callers."""
    for module in pkgutil.walk_packages(amends.__path__, "amends."):
        if "testing" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, queue = {}, [AmendsError]
    while queue:
        kind = queue.pop(0)
        found.setdefault(kind.code, kind)
        queue += [one for one in kind.__subclasses__() if one.__module__.startswith("amends.")]
    return found


ERRORS = errors()


def test_the_page_has_every_code_and_no_other():
    """A new error needs its row; a row needs its error."""
    assert set(ROWS) == set(ERRORS)
    assert len(ROW.findall(CATALOGUE)) == len(ROWS)


@pytest.mark.parametrize("code", ERRORS)
def test_a_row_says_class_who_acts_and_exit_code(code):
    """As the code has them."""
    kind = ERRORS[code]
    assert ROWS[code] == (kind.__name__, kind.who_acts, int(of_error(kind("a sentence"))))


def test_the_page_says_who_acts_for_each_family():
    """Once per word, with the class that brings it."""
    table = PAGE.partition("## Who acts")[2].partition("##")[0]
    said = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", table, re.MULTILINE))
    assert set(said) == {kind.who_acts for kind in ERRORS.values()}
    names = {kind.__name__: kind for kind in ERRORS.values()}
    assert {names[name].who_acts: name for name in said.values()} == said


def test_the_shape_is_that_of_every_error():
    """The example has the keys of `as_dict`, in order."""
    (example,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    real = Conflict("somebody else has it", hint="wait", until_us=1).as_dict()
    assert list(json.loads(example)) == list(real)
