"""The suites that also run on independent systems, on the loopback ones: the two must answer alike."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SUITES = Path(__file__).parents[1] / "systems" / "suites"


def suite(name: str) -> ModuleType:
    """A suite by its file: tests do not import each other."""
    spec = importlib.util.spec_from_file_location(f"suite_{name}", SUITES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["slack", "slack_adapter"])
def test_the_slack_loopback_answers_as_the_suite_says(slack, name):
    """Every behaviour that the adapter relies on, and every life of an effect."""
    slack.system.control("seed_user", id="U0MAYA", name="maya", email="maya@example.test")
    slack.system.control("seed_channel", id="C0AMENDS", name="amends", members=["U0AGENT", "U0MAYA"])
    assert suite(name).problems("loopback", f"{slack.system.url}/api", "xoxb-loopback") == []
