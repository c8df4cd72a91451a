"""The short form of the crash matrix; `make crash` plays the whole of it."""

from itertools import product

import pytest

from amends.testing.crash.cases import (
    HOWS,
    MODES,
    POINTS,
    RECOVERERS,
    UNREACHED,
    all_cases,
    kind_of,
    short_cases,
)
from amends.testing.crash.matrix import run
from amends.testing.crash.project import ENVIRONMENT

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


def test_every_point_is_stopped_at_or_said_to_be_out_of_reach():
    """Each milestone is, in each mode, either in the matrix or listed with a reason; never both, never neither."""
    for mode in MODES:
        played = {case.point for case in all_cases() if case.mode == mode}
        assert played.isdisjoint(UNREACHED[mode])
        assert played | set(UNREACHED[mode]) == set(POINTS)
        assert all(UNREACHED[mode].values())


def test_the_short_form_leaves_out_no_kind():
    """Each kind of point is in it, both ways to stop in each mode, and each way with one recoverer and with three."""
    short = list(short_cases())
    assert {kind_of(case.point) for case in short} == set(map(kind_of, POINTS))
    assert {(case.mode, case.how) for case in short} == set(product(MODES, HOWS))
    assert {(case.how, case.recoverers) for case in short} == set(product(HOWS, RECOVERERS))
    assert set(short) <= set(all_cases())
    assert len(short) == len(set(short))


def test_the_short_matrix_shows_no_difference_and_the_control_duplicates(tmp_path, monkeypatch):
    """Stopped at each kind of point, in turn killed and frozen, with one recoverer and three: the systems show what is
    expected, and the same calls without a ledger leave duplicates.
    """
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    matrix = run(tmp_path, list(short_cases()), jobs=4)
    assert [p.case.name for p in matrix.played if not p.hit] == []
    assert matrix.differences == []
    assert matrix.control.duplicates
    assert matrix.control.seen > matrix.control.expected
