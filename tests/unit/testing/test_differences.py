"""The list of differences between two systems stays true."""

from __future__ import annotations

from amends.testing.differences import Difference, Site, problems

SITE = Site("http://127.0.0.1:9", "token")
LISTED = Difference("other", "it_differs", "known, and no harm")


def it_holds(site):
    assert site is SITE


def it_differs(site):
    raise AssertionError("no tombstone")


def it_breaks(site):
    raise KeyError("ts")


def told(behaviours, differences, system="other"):
    return problems(behaviours, differences, system=system, site=SITE)


def test_what_is_as_said_is_no_problem():
    """A behaviour that holds, and a listed difference that is there."""
    assert told([it_holds, it_differs], [LISTED]) == []


def test_a_difference_that_nobody_listed_is_a_problem():
    """With what was seen; a list for another system does not count."""
    (line,) = told([it_differs], [LISTED], system="this")
    assert "it_differs" in line
    assert "no tombstone" in line


def test_a_listed_difference_that_is_gone_is_a_problem():
    """Otherwise the list would rot."""
    (line,) = told([it_holds], [Difference("other", "it_holds", "used to differ")])
    assert "take it off the list" in line


def test_a_listed_difference_of_no_behaviour_is_a_problem():
    """A renamed behaviour takes its difference along."""
    (line,) = told([it_holds], [LISTED])
    assert "no such behaviour" in line


def test_an_answer_of_another_shape_is_a_difference_too():
    """A missing field is told as what it is."""
    (line,) = told([it_breaks], [])
    assert "KeyError" in line
    assert told([it_breaks], [Difference("other", "it_breaks", "has no ts")]) == []


def test_a_system_that_is_not_there_is_a_problem():
    """Refused connections are told, not raised."""
    (line,) = told([lambda site: site.call("GET", "x")], [])
    assert "Connection" in line
