"""When things are due: arithmetic on facts, never a clock (rules 4, 5, 14, 17, 18 and 19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.contract import Alternative, Keying, Limits, ProbeRule, Retry
from amends.core.events import RecoveryDecided
from amends.core.outcomes import absence_final_at_us
from amends.core.schedule import (
    flight_over_at_us,
    may_resend,
    microseconds,
    next_look_us,
    next_probe_us,
    resend_us,
    settle_over_at_us,
    undo_retry_us,
)
from amends.testing.contracts import reversible
from amends.testing.run_builder import RunBuilder

SECOND = 1_000_000


def lost(**probe) -> RunBuilder:
    rule = ProbeRule(**({"strength": "search", "schedule_seconds": (0.0, 1.0, 4.0), "deadline_seconds": 15.0} | probe))
    return RunBuilder().planned("a", reversible(probe=rule)).intent().lost()


def due_in(run: RunBuilder, due_us: int | None) -> float | None:
    return None if due_us is None else (due_us - run.action("a").unknown_since_us) / SECOND


def looks(run: RunBuilder) -> list[float]:
    """Every look of the schedule, each taken when due."""
    found = []
    while (due := next_probe_us(run.action("a"), run.state.run.dead_since_us)) is not None:
        found.append(due_in(run, due))
        run.later(max(0, due - run.now_us) / SECOND).probed("inconclusive")
    return found


def test_seconds_become_whole_microseconds():
    """No drift by fractions."""
    assert microseconds(0.1 + 0.2) == 300_000


def test_a_call_in_flight_is_over_at_its_deadline_plus_skew_or_at_its_drivers_death():
    """A driver proven dead sends nothing more; a call of the present driver has its time (rule 14)."""
    run = RunBuilder().planned("a").intent()
    deadline_us = run.action("a").deadline_us
    assert flight_over_at_us(run.state.run, run.action("a"), 7) == deadline_us + 7
    run.claimed(dead_since_us=42)
    assert flight_over_at_us(run.state.run, run.action("a"), 7) == 42
    run.planned("b").intent()
    assert flight_over_at_us(run.state.run, run.action("b"), 7) == run.action("b").deadline_us + 7


def test_looks_follow_the_schedule_and_end_with_the_deadline():
    """The last look is at the deadline; then no look can prove more."""
    assert looks(lost()) == [0.0, 1.0, 4.0, 15.0]
    assert looks(lost(schedule_seconds=(4.0, 0.0, 99.0))) == [0.0, 4.0, 15.0]


def test_a_late_recoverer_looks_at_once_and_once():
    """Missed looks are not made up for."""
    run = lost().later(1_000)
    assert due_in(run, next_probe_us(run.action("a"), None)) == 0.0
    run.probed("inconclusive")
    assert next_probe_us(run.action("a"), None) is None


def test_where_absence_can_be_final_one_look_comes_after_it():
    """Also past the probe's own deadline: that look proves something (rule 4)."""
    run = lost(strength="id", absent_final_after_seconds=10.0)
    final = (absence_final_at_us(run.action("a"), None) - run.action("a").unknown_since_us) / SECOND
    assert looks(run) == [0.0, 1.0, 4.0, 15.0, final + 0.001]


def test_an_owners_proven_death_makes_absence_final_sooner():
    """The look that proves something comes sooner with it."""
    run = lost(strength="id", absent_final_after_seconds=10.0).probed("inconclusive").later(4).probed("inconclusive")
    run.claimed(dead_since_us=run.action("a").attempt_us)
    assert due_in(run, next_probe_us(run.action("a"), run.state.run.dead_since_us)) == 10.001


def test_a_new_question_begins_its_schedule_anew():
    """What was seen of the former attempt says nothing about this one; looked at in the same moment or not."""
    run = lost(strength="id", absent_final_after_seconds=10.0).later(100).probed("absent").intent().lost()
    assert run.action("a").probed_us == run.action("a").unknown_since_us
    assert due_in(run, next_probe_us(run.action("a"), None)) == 0.0


def test_an_undo_is_looked_at_from_its_answer_on():
    """Also one that said OK: nothing about it is unknown since any moment (rule 18)."""
    run = undoing().later(5).intent().later(1).succeeded()
    assert next_probe_us(run.action(), None) == run.action().outcome_us == run.now_us


def test_nobody_looks_where_looking_is_no_evidence():
    """No probe, or a search for something without key or marker."""
    blind = RunBuilder().planned("a", reversible(probe=None)).intent().lost()
    assert next_probe_us(blind.action("a"), None) is None
    assert next_look_us(blind.action("a")) is None
    contract = reversible(keying=Keying(kind="blind"), probe=ProbeRule(strength="search"))
    assert next_probe_us(RunBuilder().planned("a", contract).intent().lost().action("a"), None) is None
    by_id = reversible(keying=Keying(kind="blind"), probe=ProbeRule(strength="id"))
    assert next_probe_us(RunBuilder().planned("a", by_id).intent().lost().action("a"), None) is not None


@given(
    st.lists(st.floats(0, 100), max_size=5),
    st.floats(0, 100),
    st.none() | st.floats(0, 100),
    st.lists(st.floats(0, 50), min_size=1, max_size=4),
)
def test_every_schedule_is_finite_and_never_looks_back(schedule, deadline, final, pauses):
    """Whatever is declared and however late somebody comes: each next look is later, and there is a last one."""
    run = lost(
        strength="id", schedule_seconds=tuple(schedule), deadline_seconds=deadline, absent_final_after_seconds=final
    )
    last = -1.0
    for n in range(len(schedule) + 3):
        due = next_probe_us(run.action("a"), None)
        if due is None:
            return
        assert due_in(run, due) >= 0
        assert due > last
        run.later(max(0, due - run.now_us) / SECOND + pauses[n % len(pauses)]).probed("inconclusive")
        last = run.action("a").probed_us - 1
    assert next_probe_us(run.action("a"), None) is None


def test_looks_that_cannot_tell_are_spaced_like_the_schedule():
    """At once, then by its steps, then enough."""
    run = RunBuilder().planned("a").intent().succeeded()
    assert next_look_us(run.action("a")) == 0
    steps = []
    for _ in range(2):
        run.probed("inconclusive", "before_undo")
        steps.append((next_look_us(run.action("a")) - run.now_us) / SECOND)
    assert steps == [1.0, 3.0]
    assert next_look_us(run.probed("inconclusive", "before_undo").action("a")) is None
    for schedule, pause in (((0.0, 0.5), 0.5), ((3.0, 1.0), 0.0)):
        rule = ProbeRule(strength="id", schedule_seconds=schedule)
        run = RunBuilder().planned("a", reversible(probe=rule)).intent().succeeded().probed("inconclusive")
        assert (next_look_us(run.action("a")) - run.now_us) / SECOND == pause


def test_a_provider_that_asks_for_patience_gets_it_up_to_the_deadline():
    """Retry-After of a look postpones the next one; an absurd one only until the probe's own deadline."""
    run = lost().probed("inconclusive", retry_after_seconds=9.0)
    assert due_in(run, next_probe_us(run.action("a"), None)) == 9.0
    run = lost().probed("inconclusive", retry_after_seconds=1e9)
    assert due_in(run, next_probe_us(run.action("a"), None)) == 15.0
    run = lost().probed("inconclusive", retry_after_seconds=0.1)
    assert due_in(run, next_probe_us(run.action("a"), None)) == 1.0


def test_patience_also_spaces_looks_at_a_known_effect():
    """Before an undo the provider's wish counts as well."""
    run = RunBuilder().planned("a").intent().succeeded()
    run.probed("inconclusive", "before_undo", retry_after_seconds=7.0)
    assert (next_look_us(run.action("a")) - run.now_us) / SECOND == 7.0


def undoing(**retry) -> RunBuilder:
    contract = reversible(compensation=(Alternative(name="cancel", retry=Retry(**retry)),))
    return RunBuilder().planned("a", contract).intent().succeeded().compensating()


def test_an_undo_is_retried_with_growing_pauses_of_its_own():
    """Backoff by the rung's policy; the provider's Retry-After if that is longer (rule 19)."""
    run = undoing(backoff_seconds=2.0, backoff_factor=3.0)
    undo = run.action().action_id
    waits = []
    for _ in range(3):
        run.on(undo).intent().not_sent()
        waits.append((undo_retry_us(run.action("a"), run.action(undo)) - run.now_us) / SECOND)
        run.later(100)
    assert waits == [2.0, 6.0, 18.0]
    run.intent().refused(again=True, retry_after_seconds=600)
    assert (undo_retry_us(run.action("a"), run.action(undo)) - run.now_us) / SECOND == 600


def test_the_settle_time_counts_from_the_answer_or_from_the_deadline():
    """An OK settles from when it came; a lost answer may land until its deadline."""
    run = undoing(settle_seconds=5.0).intent().later(1)
    undo = run.action().action_id
    lost_run = undoing(settle_seconds=5.0).intent().later(1).lost()
    run.succeeded()
    assert settle_over_at_us(run.action("a"), run.action(undo)) == run.now_us + 5 * SECOND
    row = lost_run.action(undo)
    assert settle_over_at_us(lost_run.action("a"), row) == row.deadline_us + 5 * SECOND
    unsent = undoing(settle_seconds=5.0)
    row = unsent.action()
    assert settle_over_at_us(unsent.action("a"), row) == row.updated_us + 5 * SECOND
    in_flight = unsent.intent().later(1).action()
    assert settle_over_at_us(unsent.action("a"), in_flight) == in_flight.deadline_us + 5 * SECOND


def test_an_answer_that_is_no_proof_settles_from_when_it_came():
    """The provider had finished with the call; whether it did something is what the look asks."""
    contract = reversible(confirm="probe", compensation=(Alternative(name="cancel", retry=Retry(settle_seconds=5.0)),))
    run = RunBuilder().planned("a", contract).intent().lost().compensating().intent().later(1).succeeded()
    assert run.action().evidence[-1].code == "answer_is_no_proof"
    assert settle_over_at_us(run.action("a"), run.action()) == run.now_us + 5 * SECOND


def test_pauses_count_from_the_answer_and_not_from_what_was_noted_later():
    """A note about an action does not postpone what is due."""
    run = undoing(backoff_seconds=2.0)
    undo = run.action().action_id
    run.intent().not_sent()
    answered_us = run.now_us
    run.later(1).record(RecoveryDecided(decision="wait", reason="undo_retry"))
    assert run.action(undo).updated_us > answered_us
    assert undo_retry_us(run.action("a"), run.action(undo)) == answered_us + 2 * SECOND
    run = RunBuilder().planned("a").intent().not_sent()
    run.later(1).record(RecoveryDecided(decision="wait", reason="send_again_later"))
    assert resend_us(run.action("a")) == answered_us + 1 * SECOND


@pytest.mark.parametrize(
    ("end", "may"),
    [
        (lambda run: run.not_sent(), True),
        (lambda run: run.refused(again=True), True),
        (lambda run: run.refused(), False),
        (lambda run: run.lost().later(100).probed("absent"), True),
        (lambda run: run.lost(), False),
        (lambda run: run.succeeded(), False),
    ],
    ids=["not sent", "too many requests", "refused", "finally absent", "lost", "succeeded"],
)
def test_the_same_key_is_sent_again_only_after_a_proof_that_nothing_is_stored(end, may):
    """NotSent, 429 and final absence; a stored refusal opens the next generation, a doubt opens nothing (rule 5)."""
    run = RunBuilder().planned("a").intent()
    assert may_resend(end(run).action("a")) is may


def test_re_sends_are_counted_and_spaced():
    """As often as the contract allows, later each time, not before the provider wants it."""
    run = RunBuilder().planned("a", reversible(limits=Limits(max_attempts=2))).intent().not_sent()
    assert resend_us(run.action("a")) == run.now_us + 1 * SECOND
    run.intent().not_sent()
    assert resend_us(run.action("a")) == run.now_us + 2 * SECOND
    assert not may_resend(run.action("a"))
    run = RunBuilder().planned("a").intent().refused(again=True, retry_after_seconds=30)
    assert resend_us(run.action("a")) == run.now_us + 30 * SECOND
