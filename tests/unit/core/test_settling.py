"""Settling: what recovery is done with, and what a look says about which outcome (rules 17 and 18)."""

from amends.core.settling import looked_since_outcome
from amends.core.status import Outcome
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
