"""Settling: what recovery is done with, and what a look says about which outcome (rules 17 and 18)."""

from amends.core.contract import Alternative
from amends.core.settling import looked_since_outcome, unexpired_rungs
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
