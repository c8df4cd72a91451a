"""The reference tables of docs/python.md say what the code has, no less and no more."""

import re
from pathlib import Path

import pytest

import amends
from amends.runtime.runs import Run

ROOT = Path(__file__).parents[2]
PYTHON = (ROOT / "docs/python.md").read_text(encoding="utf-8").partition("## Reference")[2]


def names(table):
    """The names in the first column of a table, in order."""
    first = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in first for name in re.findall(r"`([\w.]+)`", cell)]


def table_under(page, head):
    """The table whose first head cell is `head`."""
    return page.partition(f"| `{head}` |")[2].partition("\n\n")[0].partition("\n")[2]


@pytest.mark.parametrize("kind", [amends.Engine, Run], ids=lambda kind: kind.__name__)
def test_the_page_has_every_method_of_the_python_api(kind):
    """Methods and properties that are public; nothing that is not there."""
    public = {
        name
        for one in kind.__mro__[:-1]
        for name, value in vars(one).items()
        if name[0] != "_" and (callable(value) or isinstance(value, classmethod | property))
    }
    assert sorted(names(table_under(PYTHON, kind.__name__))) == sorted(public)


def test_the_page_has_every_public_name():
    """Of the package `amends`, but its version."""
    assert sorted([*names(table_under(PYTHON, "amends")), "__version__"]) == sorted(amends.__all__)
