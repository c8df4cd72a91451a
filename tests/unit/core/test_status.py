"""The transition tables, pair by pair, and what must be reachable in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amends.core.errors import IllegalTransition
from amends.core.status import (
    NEVER_SENT,
    RUN_TRANSITIONS,
    TERMINAL_RUNS,
    TRANSITIONS,
    ActionStatus,
    Move,
    RunStatus,
    run_transition,
    transition,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "transitions.txt"
REMEDY = "this is a defect of Amends: report it with the run's event list"
S = ActionStatus

PAIRS = [(status, move) for status in ActionStatus for move in Move]
RUN_PAIRS = [(status, to) for status in RunStatus for to in RunStatus]
ENDS = {S.DENIED, S.WITHDRAWN}


def rendered() -> str:
    """Both tables as text, one line a status, legal moves only."""
    lines = ["An action in … may"]
    for status in ActionStatus:
        moves = [f"{move} → {TRANSITIONS[status, move]}" for move in Move if (status, move) in TRANSITIONS]
        lines.append(f"  {status}: {', '.join(moves) or 'nothing'}")
    lines.append("")
    lines.append("A run in … may become")
    for status in RunStatus:
        to = [other for other in RunStatus if other in RUN_TRANSITIONS[status]]
        lines.append(f"  {status}: {', '.join(to) or 'nothing'}")
    return "\n".join(lines) + "\n"


def reached(start: ActionStatus) -> set[ActionStatus]:
    found = {start}
    while True:
        more = {to for (status, _), to in TRANSITIONS.items() if status in found} - found
        if not more:
            return found
        found |= more


@pytest.mark.parametrize(("status", "move"), PAIRS, ids=lambda word: word.value)
def test_every_pair_moves_by_the_table_or_is_illegal(status, move):
    """Whatever is not a row of the table raises and names both sides."""
    if (status, move) in TRANSITIONS:
        assert transition(status, move) is TRANSITIONS[status, move]
        return
    with pytest.raises(IllegalTransition) as caught:
        transition(status, move)
    assert caught.value.data == {"status": status.value, "move": move.value}
    assert str(caught.value) == f"an action in `{status}` cannot `{move}`; {REMEDY}"
    assert caught.value.who_acts == "us"


@pytest.mark.parametrize(("status", "to"), RUN_PAIRS, ids=lambda word: word.value)
def test_every_pair_of_run_statuses_moves_by_the_table_or_is_illegal(status, to):
    """The same law for runs: staying is no move either."""
    if to in RUN_TRANSITIONS[status]:
        assert run_transition(status, to) is to
        return
    with pytest.raises(IllegalTransition) as caught:
        run_transition(status, to)
    assert caught.value.data == {"status": status.value, "to": to.value}
    assert str(caught.value) == f"a run in `{status}` cannot become `{to}`; {REMEDY}"


def test_the_tables_are_what_was_agreed():
    """A change of either table is seen in review: this text changes with it."""
    assert rendered() == GOLDEN.read_text(encoding="utf-8")


def test_every_status_is_reachable_and_every_move_is_used():
    """No status and no move is decoration."""
    assert reached(S.PLANNED) == set(ActionStatus)
    assert {move for _, move in TRANSITIONS} == set(Move)


@pytest.mark.parametrize("status", sorted(set(S) - ENDS - {S.NEEDS_HUMAN}))
def test_a_person_can_be_asked_from_every_status_that_is_no_end(status):
    """Doubt always has a way to a person: at once, or after the call in flight is known to be lost."""
    assert S.NEEDS_HUMAN in reached(status)
    if status is not S.RUNNING:
        assert TRANSITIONS[status, Move.PARK] is S.NEEDS_HUMAN


def test_a_person_can_lead_back_from_needs_human_to_every_outcome():
    """Parked is no end: each reopening goes where the outcome says."""
    back = {to for (status, _), to in TRANSITIONS.items() if status is S.NEEDS_HUMAN}
    assert back == {S.QUEUED, S.SUCCEEDED, S.UNKNOWN, S.FAILED, S.COMPENSATED, S.WITHDRAWN}


def test_only_denied_and_withdrawn_are_ends():
    """Nothing leads on from them but evidence against a send that seemed to come to nothing before (rule 4)."""
    assert {status for status in S if {move for s, move in TRANSITIONS if s is status} <= {Move.CONTRADICT}} == ENDS


def test_only_a_send_makes_an_action_run():
    """Nothing but a durable intent leads to `running` (rule 1)."""
    assert {move for (_, move), to in TRANSITIONS.items() if to is S.RUNNING} == {Move.SEND}


def test_what_has_been_sent_never_looks_unsent():
    """From `running` on, no move leads back to a status that says `nothing was sent`, except through a person or a
    fresh approval of the same generation."""
    sent = {S.RUNNING, S.SUCCEEDED, S.FAILED, S.UNKNOWN, S.COMPENSATING, S.COMPENSATED}
    back = {(status, move) for (status, move), to in TRANSITIONS.items() if status in sent and to in NEVER_SENT}
    assert back == {(S.FAILED, Move.ASK)}


def test_compensated_needs_a_verification():
    """Only a verified undo says `compensated` (rule 18)."""
    assert {move for (_, move), to in TRANSITIONS.items() if to is S.COMPENSATED} == {Move.VERIFY_UNDONE}


def test_terminal_runs_lead_nowhere_and_all_others_lead_to_an_end():
    """Every run settles or escalates, and from `needs_human` it can still settle (rules 23 and 25)."""
    for status in RunStatus:
        assert (not RUN_TRANSITIONS[status]) is (status in TERMINAL_RUNS)
        found, frontier = set(), {status}
        while frontier:
            found |= frontier
            frontier = {to for s in frontier for to in RUN_TRANSITIONS[s]} - found
        assert found & TERMINAL_RUNS
