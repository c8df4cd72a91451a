"""The short form of the chaos campaign; `make chaos` stops a thousand and more."""

import pytest

from amends.testing.crash.chaos import run
from amends.testing.crash.project import ENVIRONMENT

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


def test_kills_and_freezes_at_random_leave_nothing_twice(tmp_path, monkeypatch):
    """Agents and those who recover are killed and frozen at moments of a seed, with systems that take a key, that can
    be looked at, and that offer neither: nothing is made or taken back twice, and the control makes duplicates.
    """
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    chaos = run(tmp_path, kills=8, freezes=3, seed=7, jobs=2)
    assert len(chaos.deaths) >= 8
    assert len(chaos.frozen) + len(chaos.slept) >= 3
    assert chaos.differences == []
    assert chaos.undone_twice == []
    assert {cause for _, cause in chaos.twice} <= {"between"}
    assert chaos.control.duplicates > 0
    assert chaos.sound
