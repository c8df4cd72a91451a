"""Every numbered rule of the design is named by at least one test that would fail without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = range(1, 35)
_NAMED = re.compile(r"\brules? ((?:\d+(?:\s*(?:,|and|to)\s*)?)+)", re.IGNORECASE)


def _named_in(text: str) -> set[int]:
    found: set[int] = set()
    for match in _NAMED.finditer(text):
        span = re.findall(r"(\d+)\s*to\s*(\d+)", match.group(1))
        found |= {n for low, high in span for n in range(int(low), int(high) + 1)}
        found |= {int(n) for n in re.findall(r"\d+", match.group(1))}
    return found


def _test_files() -> list[Path]:
    own = Path(__file__).resolve()
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/**/test_*.py")]
    return [file for file in files if file.resolve() != own]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_named_by_a_test(rule: int) -> None:
    """ARCHITECTURE.md promises a test for each rule; the number in a test's words is how it is found."""
    assert any(rule in _named_in(file.read_text(encoding="utf-8")) for file in _test_files())


def test_the_architecture_lists_every_rule() -> None:
    """The map names all rules, so that a reader can look one up by its number."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split("## 7. Invariants")[1].split("## 8.")[0]
    assert {int(n) for n in re.findall(r"(?:^|\s)(\d+)\. [A-Z`]", section)} >= set(RULES)


@pytest.mark.parametrize("folder", ["core", "runtime"])
def test_the_architecture_names_every_module(folder: str) -> None:
    """The map of `core/` and `runtime/` has a word for each module, and for none that is gone."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split(f"### Inside `{folder}/`")[1].split("\n#")[0]
    named = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    there = {path.stem for path in (ROOT / "engine" / "amends" / folder).glob("*.py")} - {"__init__"}
    assert named == there
