"""Errors: a family says who must act, and every error has one shape on every surface."""

from __future__ import annotations

import inspect
import json

from amends.core import errors
from amends.core.errors import AmendsError, CallerError, Conflict, InternalError, PolicyError, SystemUnavailable
from amends.core.evidence import Decision, as_map
from amends.testing.run_builder import RunBuilder

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]


def test_every_error_has_a_code_of_its_own_and_somebody_who_acts():
    """Codes are what callers match on."""
    assert len({c.code for c in CLASSES}) == len(CLASSES)
    assert {c.who_acts for c in CLASSES} == {"caller", "policy", "system_for_now", "system_for_good", "us"}
    for family in (CallerError, PolicyError, SystemUnavailable, InternalError):
        assert {c.who_acts for c in CLASSES if issubclass(c, family)} == {family.who_acts}


def test_an_error_reads_as_sentence_and_remedy_and_as_json():
    """The same facts in both."""
    error = Conflict("run `r1` is held", hint="wait until 12:00", holder="owner-1")
    assert str(error) == "run `r1` is held; wait until 12:00"
    assert json.loads(json.dumps(error.as_dict())) == {
        "code": "conflict",
        "message": "run `r1` is held",
        "hint": "wait until 12:00",
        "who_acts": "caller",
        "data": {"holder": "owner-1"},
    }
    assert str(AmendsError("no remedy known")) == "no remedy known"


def test_only_a_clean_allow_is_allowed():
    """`needs_approval` is no weaker form of yes."""
    base = {"decision_id": "d", "action": "x", "policy_version": "v", "effective_digest": "e"}
    assert [Decision(verdict=v, **base).allowed for v in ("allow", "deny", "needs_approval")] == [True, False, False]


def test_a_json_object_is_a_map_and_nothing_else_is():
    """Foreign answers are read defensively."""
    assert as_map({"a": 1}) == {"a": 1}
    assert as_map([1]) == as_map(None) == as_map("x") == {}


def test_the_newest_action_of_a_slot_is_found():
    """Whatever its status; undo actions have no part in it."""
    run = RunBuilder().planned("a1", slot="s").intent().refused().planned("a2", slot="s", generation=2)
    assert run.state.in_slot("s").action_id == "a2"
    assert run.state.in_slot("other") is None
