"""Worlds for field cases, and the list of all of them at the end of `pytest tests/field_cases`."""

import tomllib
from pathlib import Path

import pytest

from amends.testing.worlds import examined_worlds

HERE = Path(__file__).parent


@pytest.fixture
def build():
    """Make worlds; each is examined and closed at the end of the test."""
    with examined_worlds() as make:
        yield make


def pytest_terminal_summary(terminalreporter, config):
    """Which cases are covered by how many tests, and which wait for what."""
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if HERE not in asked and HERE / "test_manifest.py" not in asked:
        return
    cases = tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))["case"]
    terminalreporter.section("field cases")
    for case in cases:
        tests = len(case.get("covered_by", []))
        parts = [f"{tests} test{'' if tests == 1 else 's'}"] if tests else []
        parts += [f"waits for: {case['waits_for']} ({case['why']})"] if "waits_for" in case else []
        terminalreporter.write_line(f"{case['id']}  {case['kind']}: {'; '.join(parts)}")
    covered = sum(1 for case in cases if case.get("covered_by"))
    waiting = sum(1 for case in cases if "waits_for" in case)
    terminalreporter.write_line(f"{len(cases)} cases: {covered} covered, {waiting} wait for (more of) a later surface")
