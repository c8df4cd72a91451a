"""What the public packages export is what exists, and what the documents describe."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import amends
from amends import spi

ROOT = Path(__file__).parents[2]
PUBLIC = {"amends": amends, "amends.spi": spi}
DOCUMENTS = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/*.md")))


def imported(tree):
    """Name -> module of every `from … import …` among these statements."""
    found = {}
    for node in tree:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found.update({alias.asname or alias.name: node.module for alias in node.names})
    return found


def source(module):
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body


@pytest.mark.parametrize("name", PUBLIC)
def test_a_name_is_exported_once_and_listed_by_dir(name):
    """`from amends import *` works, and so does completion."""
    exported = PUBLIC[name].__all__
    assert len(set(exported)) == len(exported)
    assert set(exported) <= set(dir(PUBLIC[name]))


def test_what_amends_shows_to_type_checkers_is_what_it_imports():
    """The lazy names, the names under TYPE_CHECKING and `__all__` are one list."""
    guarded = next(node for node in source(amends) if isinstance(node, ast.If)).body
    assert imported(guarded) == amends._HOMES
    assert sorted([*amends._HOMES, "__version__"]) == sorted(amends.__all__)


def test_the_spi_exports_all_that_it_imports():
    """Nothing that a plugin could reach through `amends.spi` is left out of its list."""
    assert sorted(imported(source(spi))) == sorted(spi.__all__)


def test_a_public_name_is_the_object_of_its_home():
    """And a name that is not there says so."""
    for name, home in amends._HOMES.items():
        assert getattr(amends, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="`Engin`"):
        amends.Engin  # noqa: B018 - looking is the point


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    """Somewhere in docs/, as code."""
    words = set(re.findall(r"`([\w.]+)`", DOCUMENTS))
    assert [one for one in PUBLIC[name].__all__ if one not in words | {"__version__"}] == []


def test_every_list_of_exports_is_true():
    """`__all__` of any module names what is there."""
    wrong = []
    for found in pkgutil.walk_packages(amends.__path__, "amends."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        wrong += [f"{found.name}.{name}" for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert wrong == []
