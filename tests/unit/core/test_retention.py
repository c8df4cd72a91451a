"""A run leaves the journal only long after the last moment at which anything of it could change."""

import pytest

from amends.core.contract import Alternative, ProbeRule, Retry
from amends.core.retention import sealable_at_us
from amends.core.schedule import microseconds
from amends.core.status import RunStatus
from amends.testing.contracts import reversible
from amends.testing.fakes import START_US
from amends.testing.run_builder import RunBuilder

KEEP_US = microseconds(90 * 86_400)


def at(seconds):
    return START_US + microseconds(seconds) + KEEP_US


@pytest.fixture
def committed():
    """Builds a run of one call, committed two seconds after it began."""

    def build(**contract):
        run = RunBuilder().planned("a", reversible(**contract)).intent().later(1).succeeded()
        return run.later(1).moved(RunStatus.COMMITTING, RunStatus.COMMITTED)

    return build


def test_a_settled_run_may_go_after_the_time_it_is_kept(committed):
    """Counted from its end, or from the call's deadline if that is later."""
    run = committed(limits={"timeout_seconds": 1}, probe=ProbeRule(strength="id", absent_final_after_seconds=0))
    assert sealable_at_us(run.state, KEEP_US) == at(2)


@pytest.mark.parametrize("status", [(), (RunStatus.RECOVERING,), (RunStatus.RECOVERING, RunStatus.NEEDS_HUMAN)])
def test_a_living_run_stays(status):
    """However old it is."""
    assert sealable_at_us(RunBuilder().planned("a").moved(*status).state, KEEP_US) is None


@pytest.mark.parametrize(
    ("contract", "seconds"),
    [
        ({"provisional_for_seconds": 500.0}, 501),
        ({"probe": ProbeRule(strength="id", absent_final_after_seconds=70.0)}, 100),
        ({"compensation": (Alternative(name="cancel", retry=Retry(settle_seconds=800.0)),)}, 830),
        ({"limits": {"timeout_seconds": 4_000}}, 4_000),
    ],
    ids=["revoked", "lands late", "undo settles late", "call in flight"],
)
def test_every_horizon_of_an_action_counts(committed, contract, seconds):
    """The provider may revoke a success, or something may land, until then; the time it is kept begins after that."""
    assert sealable_at_us(committed(**contract).state, KEEP_US) >= at(seconds)


def test_a_second_look_that_is_due_counts():
    """After a verified undo of a call whose answer was lost."""
    run = RunBuilder().planned("a").intent().lost().later(1).settled("succeeded").moved(RunStatus.RECOVERING)
    run.compensating().intent().succeeded().undone(late_check_seconds=9_000).moved(RunStatus.NEEDS_HUMAN)
    run.moved(RunStatus.ABANDONED)
    assert sealable_at_us(run.state, KEEP_US) == at(9_001)


def test_what_was_never_sent_has_nothing_to_wait_for():
    """Its contract's horizons begin with a call."""
    run = RunBuilder().planned("a", reversible(provisional_for_seconds=500.0)).denied().later(1)
    run.moved(RunStatus.COMMITTING, RunStatus.COMMITTED)
    assert sealable_at_us(run.state, KEEP_US) == at(1)


def test_an_open_question_to_people_keeps_it():
    """An abandoned run whose work item nobody has answered is not put away."""
    run = RunBuilder().planned("a").intent().lost().moved(RunStatus.RECOVERING).parked().escalated()
    run.moved(RunStatus.NEEDS_HUMAN, RunStatus.ABANDONED)
    assert sealable_at_us(run.state, KEEP_US) is None
