"""The loopback flag server answers what the product answers: the suite that also runs on the real one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from amends.testing.loopback import LoopbackSystem

_SUITES = Path(__file__).parents[1] / "systems" / "suites"
TOKEN = "*:*.unleash-admin"


def _loaded(name):
    """Tests are no package, so a suite is loaded by its path."""
    spec = importlib.util.spec_from_file_location(f"{name}_suite", _SUITES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SUITE = _loaded("unleash")


@pytest.fixture(scope="module")
def server():
    with LoopbackSystem.start("unleash") as system:
        yield system


@pytest.mark.parametrize("case", SUITE.CASES, ids=lambda case: case.__name__)
def test_the_loopback_holds(server, case):
    """Each case of the suite, over a real socket."""
    case(server.url, TOKEN)


def test_every_effect_of_the_adapter_goes_its_whole_way(server):
    """Made, found without its answer, taken back, looked at: the lives that also run on the real server."""
    assert _loaded("unleash_adapter").problems("loopback", server.url, TOKEN) == []
