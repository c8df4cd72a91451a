"""What people are told: total over every status, never more than the evidence, never an invitation to repeat."""

from __future__ import annotations

import re

import pytest

from amends.core import public
from amends.core.public import OF_ACTION, OF_RUN, PublicState, message, of_action, of_run, run_message, worst
from amends.core.status import ActionStatus, RunStatus
from amends.testing.run_builder import RunBuilder

S = ActionStatus
INVITATION = re.compile(
    r"(?i)\b(re-?try|retries|try (it |this )?again|once more|re-?send|re-?submit|re-?run|call again)\b"
)
SENTENCES = [*public._ACTION_MESSAGES.values(), *public._RUN_MESSAGES.values()]


def action_in(status):
    return RunBuilder().planned("a").action("a").model_copy(update={"status": status})


def test_the_maps_are_total():
    """A new status or state needs its word and its sentence."""
    assert set(OF_ACTION) == set(S)
    assert set(OF_RUN) == set(RunStatus)
    assert {message(action_in(status)) for status in S} == set(public._ACTION_MESSAGES.values())
    assert len(set(SENTENCES)) == len(S) + len(PublicState)
    assert {run_message(state) for state in PublicState} == set(public._RUN_MESSAGES.values())


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_sentence_invites_a_blind_retry_or_carries_a_payload(sentence):
    """What was not confirmed is never offered to be repeated (rule 33)."""
    assert not INVITATION.search(sentence)
    assert "{" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) > 40


@pytest.mark.parametrize("text", ["Please retry.", "Try again later.", "You may re-send it.", "try this again"])
def test_the_guard_knows_an_invitation_when_it_sees_one(text):
    """The regex above is no check that cannot fail."""
    assert INVITATION.search(text)


@pytest.mark.parametrize("status", [S.FAILED, S.DENIED, S.WITHDRAWN])
def test_failed_before_effect_is_said_only_where_nothing_exists(status):
    """The other statuses may have left something."""
    assert of_action(action_in(status)) is PublicState.FAILED_BEFORE_EFFECT
    assert {s for s, state in OF_ACTION.items() if state is PublicState.FAILED_BEFORE_EFFECT} == {
        S.FAILED,
        S.DENIED,
        S.WITHDRAWN,
    }


def test_recovered_is_said_only_after_a_verified_undo_or_an_end():
    """Doubt is `processing safely` at best; a person's turn is `needs review`."""
    assert {s for s, state in OF_ACTION.items() if state is PublicState.RECOVERED} == {S.COMPENSATED}
    assert {s for s, state in OF_RUN.items() if state is PublicState.RECOVERED} == {
        RunStatus.COMMITTED,
        RunStatus.RECOVERED,
    }
    assert of_action(action_in(S.NEEDS_HUMAN)) is PublicState.NEEDS_REVIEW
    assert of_action(RunBuilder().planned("a").intent().lost().parked().action("a")) is PublicState.NEEDS_REVIEW
    assert "could not confirm" in message(action_in(S.UNKNOWN))


@pytest.mark.parametrize("direction", [RunStatus.RECOVERING, RunStatus.COMMITTING])
def test_a_running_run_is_as_good_as_its_worst_action(direction):
    """One action that waits for a person is enough."""
    run = RunBuilder().planned("a").intent().lost()
    assert of_run(run.state) is PublicState.PROCESSING_SAFELY
    assert of_run(run.moved(direction).state) is PublicState.PROCESSING_SAFELY
    assert of_run(run.parked().state) is PublicState.NEEDS_REVIEW


def test_an_ended_run_says_what_its_end_means():
    """Recovered without a single send failed before any effect; abandoned never looks settled."""
    sent = RunBuilder().planned("a").intent().lost().moved(RunStatus.RECOVERING)
    assert of_run(sent.moved(RunStatus.RECOVERED).state) is PublicState.RECOVERED
    unsent = RunBuilder().planned("a").denied().moved(RunStatus.RECOVERING, RunStatus.RECOVERED)
    assert of_run(unsent.state) is PublicState.FAILED_BEFORE_EFFECT
    abandoned = RunBuilder().moved(RunStatus.RECOVERING, RunStatus.NEEDS_HUMAN, RunStatus.ABANDONED)
    assert of_run(abandoned.state) is PublicState.NEEDS_REVIEW


def test_the_worst_wins_whatever_the_order():
    """Review beats processing beats recovered beats failed before effect."""
    order = [
        PublicState.FAILED_BEFORE_EFFECT,
        PublicState.RECOVERED,
        PublicState.PROCESSING_SAFELY,
        PublicState.NEEDS_REVIEW,
    ]
    for n in range(1, 5):
        assert worst(order[:n]) is order[n - 1]
        assert worst(order[:n][::-1]) is order[n - 1]
    assert worst([]) is PublicState.FAILED_BEFORE_EFFECT
