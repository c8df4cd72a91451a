"""The list of field cases is whole: each is held by tests that exist, or waits for a surface that is still to come."""

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = tomllib.loads((Path(__file__).parent / "manifest.toml").read_text(encoding="utf-8"))["case"]
LATER = {"HTTP API", "LangGraph surface", "MCP gateway", "OpenAI Agents surface", "Pydantic AI surface"}


@cache
def collectable(name: str) -> frozenset[str]:
    """The tests of a file as pytest names them. What the matrix runs stands in classes of the shipped kit."""
    found = set()
    for node in ast.parse((ROOT / name).read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        functions = [item for item in inner if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
        found |= {f"{prefix}{item.name}" for item in functions if item.name.startswith("test_")}
    return frozenset(found)


def problems(case) -> list[str]:
    """What is wrong with one entry; empty if nothing is."""
    told = set(case)
    wrong = [f"`{key}` is no key of a case" for key in told - {"id", "kind", "covered_by", "waits_for", "why"}]
    covering = case.get("covered_by", [])
    if not case.get("kind"):
        wrong.append("it has no kind")
    if not covering and "waits_for" not in told:
        wrong.append("it is neither covered nor waiting")
    if ("waits_for" in told) != bool(case.get("why")):
        wrong.append("`waits_for` and `why` go together")
    if "waits_for" in told and case["waits_for"] not in LATER:
        wrong.append(f"`{case['waits_for']}` is none of the surfaces to come")
    wrong += [f"`{test}` is named twice" for test, count in Counter(covering).items() if count > 1]
    for test in covering:
        name, _, function = test.partition("::")
        if not name.startswith(("tests/", "plugins/", "engine/amends/testing/conformance/about_")):
            wrong.append(f"`{name}` is no file of tests")
        elif not (ROOT / name).is_file() or function not in collectable(name):
            wrong.append(f"`{test}` does not exist")
    return wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_is_covered_or_waits_with_a_reason(case):
    """Every test that is named can be collected, and what waits says for which surface and why."""
    assert problems(case) == []


def test_no_case_is_listed_twice():
    """One entry an id, in the order of the letters' first appearance."""
    assert [id_ for id_, count in Counter(case["id"] for case in CASES).items() if count > 1] == []
    letters = [case["id"].partition("-")[0] for case in CASES]
    assert letters == sorted(letters, key=letters.index)


def test_what_is_tested_here_is_listed_under_its_id():
    """A test that bears an id in its name is one of those that cover it, and no other case claims it."""
    named = {case["id"]: set(case.get("covered_by", [])) for case in CASES}
    for path in sorted(Path(__file__).parent.glob("test_?.py")):
        for test in collectable(path.relative_to(ROOT).as_posix()):
            _, letter, number, *_ = test.split("_")
            holder = f"{letter.upper()}-{number}"
            assert letter == path.stem[-1], test
            assert [id_ for id_, tests in named.items() if f"tests/field_cases/{path.name}::{test}" in tests] == [
                holder
            ]


def test_the_matrix_runs_what_is_named_of_it():
    """Tests of the kit are collected through the class that an adapter's tests derive from."""
    from amends.testing.conformance import AdapterMatrix

    kit = [test.rpartition("::")[2] for case in CASES for test in case.get("covered_by", []) if test.startswith("eng")]
    assert kit
    assert [test for test in kit if not hasattr(AdapterMatrix, test)] == []


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({}, "neither covered nor waiting"),
        ({"covered_by": ["tests/field_cases/test_manifest.py::test_of_nobody"]}, "does not exist"),
        ({"covered_by": ["tests/field_cases/gone.py::test_a"]}, "does not exist"),
        ({"covered_by": ["README.md::test_a"]}, "is no file of tests"),
        ({"waits_for": "better times", "why": "soon"}, "none of the surfaces"),
        ({"waits_for": "MCP gateway"}, "go together"),
        ({"covered_by": [], "hope": 1}, "no key"),
    ],
)
def test_a_wrong_entry_is_noticed(entry, word):
    """The check itself can fail."""
    assert word in " ".join(problems({"id": "A-99", "kind": "something", **entry}))
