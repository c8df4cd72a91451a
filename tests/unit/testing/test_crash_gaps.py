"""Where a process is, told from the milestones it announced."""

import pytest

from amends.testing.crash import GapTracker

CALL = ["before_intent", "after_intent", "before_call", "after_call", "before_outcome", "after_outcome"]


@pytest.mark.parametrize(
    ("heard", "gap"),
    [
        ([], "between"),
        (CALL[:1], "intent"),
        (CALL[:2], "pre-send"),
        (CALL[:3], "pre-send"),
        (CALL[:4], "pre-outcome"),
        (CALL[:5], "pre-outcome"),
        (CALL, "between"),
        (["after_freeze", "after_plan"], "freeze"),
        (["after_freeze", "after_plan", "before_probe"], "probe"),
        (["before_undo", "before_probe", "after_probe"], "undo"),
        (["before_undo", "after_undo", "after_plan"], "between"),
        (["before_verify", "before_probe", "after_probe"], "verify"),
        (["before_correction", *CALL[2:4]], "correction"),
        (["before_correction", "after_correction", "settled"], "between"),
    ],
)
def test_the_last_announcement_tells_the_gap(heard, gap):
    """Probes and calls inside an undo, a verification or a correction belong to it."""
    tracker = GapTracker()
    for milestone in heard:
        tracker.hear(milestone)
    assert tracker.gap == gap


def test_a_released_call_may_be_anywhere_in_it():
    """Held before the call nothing was sent; let go, the request may be on its way."""
    tracker = GapTracker()
    tracker.hear("before_call")
    assert tracker.gap == "pre-send"
    tracker.release()
    assert tracker.gap == "in-call"
    tracker.hear("after_call")
    assert tracker.gap == "pre-outcome"
