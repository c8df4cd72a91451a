"""The loopback flag server answers what the product answers: the suite that also runs on the real one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from amends.testing.loopback import LoopbackSystem

_PATH = Path(__file__).parents[1] / "systems" / "suites" / "unleash.py"


def _loaded():
    """Tests are no package, so the suite is loaded by its path."""
    spec = importlib.util.spec_from_file_location("unleash_suite", _PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SUITE = _loaded()


@pytest.fixture(scope="module")
def server():
    with LoopbackSystem.start("unleash") as system:
        yield system


@pytest.mark.parametrize("case", SUITE.CASES, ids=lambda case: case.__name__)
def test_the_loopback_holds(server, case):
    """Each case of the suite, over a real socket."""
    case(server.url, "*:*.unleash-admin")
