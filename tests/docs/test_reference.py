"""The reference tables of docs/adapters.md and docs/python.md say what the code has, no less and no more."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import amends
from amends import spi
from amends.runtime.runs import Run
from amends.spi import Capability, hookspecs, http, process

ROOT = Path(__file__).parents[2]
ADAPTERS = (ROOT / "docs/adapters.md").read_text(encoding="utf-8").partition("## Reference")[2]
PYTHON = (ROOT / "docs/python.md").read_text(encoding="utf-8").partition("## Reference")[2]
FIELD = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)
VALUES = [
    name
    for name in spi.__all__
    if inspect.isclass(kind := getattr(spi, name)) and (dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel))
]


def section(name):
    return ADAPTERS.partition(f"### {name}\n")[2].partition("\n### ")[0]


def names(table):
    """The names in the first column of a table, in order."""
    first = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in first for name in re.findall(r"`([\w.]+)`", cell)]


def table_under(page, head):
    """The table whose first head cell is `head`."""
    return page.partition(f"| `{head}` |")[2].partition("\n\n")[0].partition("\n")[2]


def defaults(kind):
    """Field -> default as the page shows it, of a pydantic model or a dataclass."""
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield name, "required" if field.is_required() else shown(field.get_default(call_default_factory=True))
        return
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            yield field.name, shown(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            yield field.name, shown(field.default_factory())
        else:
            yield field.name, "required"


def shown(default):
    if default is None or default in ("", (), {}):
        return "–"
    if isinstance(default, BaseModel):
        given = ", ".join(f"{name}={value!r}" for name, value in default if name in default.model_fields_set)
        return f"`{type(default).__name__}({given})`"
    if isinstance(default, tuple):
        return f"`({', '.join(map(str, default))}{',' * (len(default) == 1)})`"
    return f"`{default}`"


@pytest.mark.parametrize("name", VALUES)
def test_the_page_has_every_field_with_its_default(name):
    """Of each contract part and each value that passes between engine and adapter, in order."""
    kind = getattr(spi, name)
    inherited = set(dict(defaults(spi.Question))) if name == "Call" else set()
    wanted = [(field, default) for field, default in defaults(kind) if field not in inherited]
    assert [row[:2] for row in FIELD.findall(section(f"`{name}`"))] == wanted


def test_the_page_has_every_hook():
    """Those of `amends.spi.hookspecs`, in order."""
    hooks = [name for name in vars(hookspecs) if name.startswith("amends_register_")]
    assert [name for name in names(section("Hooks")) if name.startswith("amends_")] == hooks


def test_the_page_has_every_way_to_register():
    """Each hook's row names the method of the registry it uses."""
    offered = re.findall(r"`registry\.(\w+)\(", section("Hooks"))
    assert sorted(offered) == sorted(n for n in vars(spi.Registry) if not n.startswith("_"))


def test_the_page_has_every_method_of_a_capability():
    """In the order of the class."""
    methods = [name for name, value in vars(Capability).items() if inspect.isfunction(value) and name[0] != "_"]
    assert names(section("`Capability` methods")) == methods


def test_the_page_has_every_name_of_the_spi():
    """Either as a section with its fields or in the table of names."""
    sections = re.findall(r"^### `(\w+)`$", ADAPTERS, re.MULTILINE)
    assert sorted([*sections, *names(section("Names of `amends.spi`"))]) == sorted(spi.__all__)


def test_the_page_has_every_helper():
    """What `amends.spi.http` exports, and what `amends.spi.process` defines."""
    helpers = section("Helpers")
    assert sorted(names(table_under(helpers, "amends.spi.http"))) == sorted(http.__all__)
    defined = [
        name
        for name, value in vars(process).items()
        if getattr(value, "__module__", "") == process.__name__ and name[0] != "_"
    ]
    assert sorted(names(table_under(helpers, "amends.spi.process"))) == sorted(defined)


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
