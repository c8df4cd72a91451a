"""docs/spi.md is made from the code, and what it promises does not change without its version."""

import copy
import json
from pathlib import Path

import pytest

from amends.spi import SPI_VERSION
from amends.testing.spi_reference import record, reference, untold
from amends.testing.spi_surface import needed, surface

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "spi.md"
GOLDEN = ROOT / "tests" / "golden" / "spi.json"
AGAIN = "python -m amends.testing.spi_reference docs/spi.md tests/golden/spi.json"


@pytest.fixture(scope="module")
def names():
    return surface()


@pytest.fixture
def promise():
    """A surface of one of each kind, as it is recorded."""
    return {
        "amends.spi.Done": {
            "kind": "class",
            "text": "",
            "fields": {"effect": ["str", "''"], "seen": ['"applied" | "absent"', "required"]},
            "methods": {"undo": "(call: Call) -> Receipt"},
        },
        "amends.spi.http.judge": {"kind": "function", "text": "(answer: HttpAnswer) -> HttpAnswer", "fields": {}},
    }


def test_the_page_is_what_the_code_says():
    """If this fails: the command in `AGAIN`."""
    assert PAGE.read_text(encoding="utf-8") == reference(), AGAIN


def test_every_field_and_method_says_what_it_means(names):
    """A field in the comment behind it, a method in its docstring."""
    fields = [f"{path}.{name}" for path, one in names.items() for name, f in one.fields.items() if not f.meaning]
    methods = [f"{path}.{name}" for path, one in names.items() for name, m in one.methods.items() if not m.meaning]
    assert (fields, methods) == ([], [])


def test_what_is_promised_does_not_change_without_the_version():
    """A plugin of an earlier minor version works with every later one of the same major."""
    changes = untold(json.loads(GOLDEN.read_text(encoding="utf-8")), record())
    assert changes == [], f"raise SPI_VERSION (it is {SPI_VERSION}), then {AGAIN}"


def test_the_record_is_of_today():
    """What has been added, under a version that tells it, is recorded as promised."""
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == record(), AGAIN


BREAKING = {
    "a name goes": lambda s: s.pop("amends.spi.Done"),
    "a field goes": lambda s: s["amends.spi.Done"]["fields"].pop("effect"),
    "a type changes": lambda s: s["amends.spi.Done"]["fields"].update(effect=["int", "''"]),
    "a default changes": lambda s: s["amends.spi.Done"]["fields"].update(effect=["str", "'x'"]),
    "a default goes": lambda s: s["amends.spi.Done"]["fields"].update(effect=["str", "required"]),
    "a choice goes": lambda s: s["amends.spi.Done"]["fields"].update(seen=['"applied"', "required"]),
    "a required field comes": lambda s: s["amends.spi.Done"]["fields"].update(new=["str", "required"]),
    "a method goes": lambda s: s["amends.spi.Done"]["methods"].pop("undo"),
    "a parameter comes": lambda s: s["amends.spi.Done"]["methods"].update(undo="(call: Call, x: int) -> Receipt"),
    "a result changes": lambda s: s["amends.spi.http.judge"].update(text="(answer: HttpAnswer) -> None"),
}
ADDING = {
    "a name comes": lambda s: s.update({"amends.spi.New": {"kind": "class"}}),
    "a field with a default comes": lambda s: s["amends.spi.Done"]["fields"].update(new=["str", "''"]),
    "a choice comes": lambda s: s["amends.spi.Done"]["fields"].update(seen=['"applied" | "absent" | "x"', "required"]),
    "a type takes more": lambda s: s["amends.spi.Done"]["fields"].update(effect=["str | None", "''"]),
    "a method comes": lambda s: s["amends.spi.Done"]["methods"].update(redo="() -> None"),
    "a parameter with a default comes": lambda s: s["amends.spi.http.judge"].update(
        text="(answer: HttpAnswer, own: int=0) -> HttpAnswer"
    ),
}


@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING)
def test_what_breaks_a_plugin_is_major(promise, change):
    """A minor version does not tell it."""
    now = copy.deepcopy(promise)
    change(now)
    assert needed(promise, now)[0] == "major"
    assert untold({"version": "1.4", "names": promise}, {"version": "1.5", "names": now}) != []
    assert untold({"version": "1.4", "names": promise}, {"version": "2.0", "names": now}) == []


@pytest.mark.parametrize("change", ADDING.values(), ids=ADDING)
def test_what_a_plugin_may_leave_alone_is_minor(promise, change):
    """The same version does not tell it."""
    now = copy.deepcopy(promise)
    change(now)
    assert needed(promise, now)[0] == "minor"
    assert untold({"version": "1.4", "names": promise}, {"version": "1.4", "names": now}) != []
    assert untold({"version": "1.4", "names": promise}, {"version": "1.5", "names": now}) == []


def test_nothing_new_needs_no_version(promise):
    """Nor may the version go back."""
    assert needed(promise, copy.deepcopy(promise)) == ("none", [])
    assert untold({"version": "1.4", "names": promise}, {"version": "1.4", "names": promise}) == []
    assert untold({"version": "1.4", "names": promise}, {"version": "1.3", "names": promise}) == [
        "the version goes back"
    ]
