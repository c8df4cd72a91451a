"""Settling: what recovery is done with, and what a look says about which outcome (rules 17 and 18)."""

from amends.core.contract import Alternative
from amends.core.settling import looked_since_outcome, may_have_residue, settled, unexpired_rungs
from amends.core.status import Outcome
from amends.testing.contracts import reversible
from amends.testing.run_builder import RunBuilder


def test_a_look_counts_for_the_outcome_that_stood_when_it_was_taken():
    """One from before says nothing about what was recorded after it; one at the same moment came after it."""
    run = RunBuilder().planned("a").intent().lost()
    assert not looked_since_outcome(run.action())
    run.probed("inconclusive")
    assert looked_since_outcome(run.action())
    run.later(1).settled(Outcome.FAILED)
    assert not looked_since_outcome(run.action())
    run.probed("inconclusive", "residue")
    assert looked_since_outcome(run.action())


def test_the_window_of_an_inverse_opens_with_the_send_and_its_last_moment_counts():
    """The provider counts from the call, not from when somebody thought of it."""
    contract = reversible(compensation=(Alternative(name="cancel", expires_after_seconds=5.0),))
    run = RunBuilder().planned("a", contract).later(60).intent().succeeded()
    end_us = run.now_us + 5_000_000
    assert [rung.name for rung in unexpired_rungs(run.action(), end_us)] == ["cancel"]
    assert unexpired_rungs(run.action(), end_us + 1) == ()


def test_residue_is_ruled_out_by_a_look_at_the_failure_and_by_no_earlier_one():
    """Absent while the outcome was open may have been too early."""
    contract = reversible(compensation=(Alternative(name="cancel", safe_when=(Outcome.FAILED,)),))
    run = RunBuilder().planned("a", contract).intent().lost().probed("absent").later(1).settled(Outcome.FAILED)
    assert may_have_residue(run.action())
    assert not may_have_residue(run.probed("absent", "residue").action())


def test_a_call_in_flight_is_not_settled():
    """Nor is one that was never sent."""
    run = RunBuilder().planned("a")
    assert settled(run.state, run.action()) is False
    assert settled(run.state, run.intent().action()) is False
