"""`amends inject`: a user's workflow on their sandbox, a fault in each world, and what is left."""

from tests.integration.inject.conftest import RESERVE


def test_a_workflow_that_survives_everything(inject, staging, production):
    """Every world is taken back, each fault is seen to happen, and nothing reaches production."""
    told = inject(RESERVE, "--json", "--fault", "lost_answer", "--fault", "late_answer", "--fault", "crash")
    assert told.verdicts() == {
        ("none", "", ""): "held",
        ("lost_answer", "reserve", ""): "held",
        ("late_answer", "reserve", ""): "held",
        ("crash", "reserve", "before_call"): "held",
        ("crash", "reserve", "after_call"): "held",
    }
    assert staging.count("reservation", "removed") == 4
    assert staging.count("reservation") == 0
    assert production.requests() == []
