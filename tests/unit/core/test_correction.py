"""Corrections: what is posted where people saw something, when, and in which words (rule 32)."""

from __future__ import annotations

import pytest

from amends.core.contract import Signal
from amends.core.correction import compose, corrections_due, place_of, unserved_contract, was_visible
from amends.core.planner import settled_or_parked
from amends.core.registration import refusals
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause
from amends.testing.contracts import corrector, irreversible, reversible, visible
from amends.testing.fakes import SimClock
from amends.testing.run_builder import RunBuilder

PLACE = "jira:BILL-12"
SEEN_AT = "2023-11-14 22:13:20 UTC"
SEES = {"place": "jira:BILL-12"}


def sent(name="a", **changes) -> RunBuilder:
    return RunBuilder(SimClock()).planned(name, visible(**(SEES | changes))).intent()


def reverted(how="undone", **changes) -> RunBuilder:
    return sent(**changes).succeeded().compensating().intent().lost().undone(how)


def due(run: RunBuilder) -> list[str]:
    return list(corrections_due(run.state, settled_or_parked(run.state)))


def post(run: RunBuilder, name: str, place: str = PLACE) -> RunBuilder:
    """Register the correction that is due, as the runtime does."""
    note = compose(run.state, place)
    return run.planned(
        name,
        corrector(),
        kind=ActionKind.CORRECT,
        place=place,
        revision=note.revision,
        covers=note.covers,
        label=note.says,
        args={"name": name, "text": note.text},
    )


# --- words ------------------------------------------------------------------------------------------------


def test_a_reverted_effect():
    """The whole text, word for word."""
    assert (
        compose(reverted().state, PLACE).text
        == f"""\
[Automated correction - run run-1]
What you may have seen: a moved to Done, at {SEEN_AT}.
Status: this was premature. It has been reverted to the state before; the system was read again to make sure.
What you need to do: nothing
When it will come back: with the next release
Questions: Maya Lind, not this bot."""
    )


STATUSES = {
    "reverted to a named state": (
        lambda: sent().on("a").succeeded().compensating().intent().lost().undone().state,
        "this was premature. It has been reverted to the state before; the system was read again to make sure.",
    ),
    "a person says it is undone": (
        lambda: sent().succeeded().parked().undone("person").state,
        "this was premature. It has been reverted to the state before; a person made sure.",
    ),
    "not reverted": (
        lambda: sent().succeeded().parked(ParkedCause.UNDO_FAILED).state,
        "this was premature and has not been reverted yet; a person is deciding.",
    ),
    "nobody knows": (
        lambda: sent().lost().parked().state,
        "it is not certain that this took effect; a person is checking it.",
    ),
    "a person lets it stand": (
        lambda: sent().succeeded().parked().accepted().state,
        "this stands and will not be taken back.",
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_the_status_says_no_more_than_the_evidence(name):
    """`reverted` only after a verified undo, and by whom it was verified."""
    state, words = STATUSES[name]
    text = compose(state(), PLACE).text
    assert f"Status: {words}" in text
    assert ("reverted to" in text) is (state().actions["a"].status is ActionStatus.COMPENSATED)


def test_the_previous_state_is_named_where_it_is_known():
    """`reverted to In Progress` tells more than `to the state before`."""
    run = RunBuilder().planned("a", visible(**SEES)).intent(before={"summary": "In Progress"}).succeeded()
    run.compensating().intent().lost().undone()
    assert "It has been reverted to In Progress; " in compose(run.state, PLACE).text


def test_an_irreversible_effect_stands():
    """A gated call that happened is listed and corrected, never undone (rule 29)."""
    contract = irreversible("mail.send", "gate", signal=visible(**SEES).signal)
    run = RunBuilder().planned("a", contract).asked("forward").approved().intent(approval_id="approval-1").succeeded()
    assert "Status: this stands and will not be taken back." in compose(run.state, PLACE).text


@pytest.mark.parametrize("name", STATUSES)
def test_no_field_is_ever_empty(name):
    """Run, what was seen, status, what to do, when it comes back, and a person."""
    lines = compose(STATUSES[name][0](), PLACE).text.splitlines()
    assert [line.split(":")[0].split(" - ")[0] for line in lines] == [
        "[Automated correction",
        "What you may have seen",
        "Status",
        "What you need to do",
        "When it will come back",
        "Questions",
    ]
    assert all(line.split(":", 1)[1].strip() for line in lines[1:])
    assert lines[-1] == "Questions: Maya Lind, not this bot."


def test_the_contracts_owner_answers_questions_before_the_runs():
    """A named person, never the bot."""
    signal = visible(**SEES).signal.model_copy(update={"owner": "Jo Day"})
    assert compose(reverted(signal=signal).state, PLACE).text.endswith("Questions: Jo Day, not this bot.")


def test_words_may_use_what_was_allocated_and_what_came_back():
    """A field that has no value stays visible as a template rather than disappear."""
    signal = Signal(visible_to="t", place=PLACE, seen="{id} by {nobody}", reader_must="see {id}", comes_back="never")
    text = compose(reverted(signal=signal).state, PLACE).text
    assert "What you may have seen: {id} by {nobody}, at" in text
    assert "What you need to do: see made-a" in text


def test_a_twin_has_no_time_of_its_own():
    """It was found, not sent: the note says so instead of leaving a gap."""
    run = RunBuilder().planned("t", visible(**SEES), kind=ActionKind.DUPLICATE, of="a").settled(Outcome.SUCCEEDED)
    assert "at an unknown time." in compose(run.parked().state, PLACE).text


# --- places -----------------------------------------------------------------------------------------------


def test_signals_of_one_place_are_merged_and_places_kept_apart():
    """One note per place, speaking of everything that was seen there, oldest first."""
    run = reverted().planned("b", visible(**SEES)).intent().lost().parked()
    run.planned("c", visible(place="slack:C1/7")).intent().lost().parked()
    assert due(run) == [PLACE, "slack:C1/7"]
    note = compose(run.state, PLACE)
    assert note.covers == ("a", "b")
    assert note.text.count("What you may have seen") == 2
    assert note.text.count("Questions") == 1
    assert compose(run.state, "slack:C1/7").covers == ("c",)


def test_a_place_that_cannot_be_named_gets_no_note():
    """The reference that would name it never came back."""
    run = sent(place="slack:C1/{ts}").lost().parked()
    assert place_of(run.action("a")) == ""
    assert due(run) == []
    assert place_of(sent(place="slack:C1/{id}").succeeded().action("a")) == "slack:C1/made-a"
    assert place_of(RunBuilder().planned("a", reversible()).action("a")) == ""


@pytest.mark.parametrize(
    "run",
    [
        RunBuilder().planned("a", visible(**SEES)),
        RunBuilder().planned("a", visible(**SEES)).denied(),
        sent().refused(),
        sent().not_sent(),
        RunBuilder().planned("a", reversible()).intent().succeeded().parked(),
        RunBuilder().planned("a", visible(**SEES)).adopted(),
    ],
    ids=["planned", "denied", "refused", "not sent", "nobody sees it", "adopted"],
)
def test_what_nobody_could_see_is_not_corrected(run):
    """Noise would train people to overlook the notes; adopted effects are another run's."""
    assert due(run) == []
    assert not was_visible(run.action("a"))


def test_what_came_before_the_checkpoint_is_not_corrected():
    """Recovery to a checkpoint leaves it standing."""
    run = sent().succeeded().checkpoint("half").targeted("half")
    run.planned("b", visible(place="jira:BILL-13")).intent().lost().parked()
    assert due(run) == ["jira:BILL-13"]


# --- when -------------------------------------------------------------------------------------------------


def test_a_place_waits_until_all_its_signals_are_quiet():
    """No note while something of that place is still moving; other places do not wait for it."""
    run = reverted().planned("b", visible(**SEES)).intent().lost()
    run.planned("c", visible(place="slack:C1/7")).intent().lost().parked()
    assert due(run) == ["slack:C1/7"]
    assert due(run.on("b").parked()) == [PLACE, "slack:C1/7"]


def test_a_place_is_told_once():
    """The same state is one note, planned, in flight or posted."""
    run = post(reverted(), "n1")
    assert place_of(run.action("n1")) == PLACE
    assert due(run) == []
    assert due(run.intent()) == []
    assert due(run.succeeded()) == []
    assert due(run.claimed()) == []


def test_a_changed_state_is_a_new_revision():
    """Later changes are replies that say what they replace."""
    run = post(sent().lost().parked(), "n1").intent().succeeded()
    run.on("a").settled(Outcome.SUCCEEDED).compensating().intent().lost().undone()
    assert due(run) == [PLACE]
    note = compose(run.state, PLACE)
    assert note.revision == 2
    assert note.text.startswith(
        "[Automated correction - run run-1] (update 2; it replaces the earlier note)\nWhat you may have seen"
    )
    assert due(post(run, "n2").intent().succeeded()) == []


def test_a_doubt_that_was_told_is_resolved_in_words():
    """Who read `not certain` learns that it never happened."""
    run = post(sent().lost().parked(), "n1").intent().succeeded().on("a").settled(Outcome.FAILED)
    assert due(run) == [PLACE]
    assert "Status: this did not take effect, and nothing of it is left." in compose(run.state, PLACE).text


@pytest.mark.parametrize("fate", ["planned", "queued", "asked", "running", "lost", "lost and parked"])
def test_no_note_follows_one_whose_own_fate_is_open(fate):
    """An unknown posting is never posted over (rule 32)."""
    run = post(sent().lost().parked(), "n1")
    ways = {
        "planned": lambda: run,
        "queued": lambda: run.parked().reopened(),
        "asked": lambda: run.asked("correct"),
        "running": run.intent,
        "lost": lambda: run.intent().lost(),
        "lost and parked": lambda: run.intent().lost().parked(),
    }
    ways[fate]()
    run.on("a").settled(Outcome.SUCCEEDED).parked()
    assert due(run) == []
    if fate == "lost and parked":
        assert due(run.on("n1").accepted()) == [PLACE]


def test_the_same_state_gives_the_same_text():
    """Pure: nothing but the run goes in."""
    assert compose(reverted().state, PLACE) == compose(reverted().state, PLACE)


def test_a_place_nobody_serves_has_a_contract_that_goes_to_a_person():
    """It is recorded like any other action, blind, so that it is never posted twice."""
    contract = unserved_contract("fax")
    assert (contract.keying.kind, contract.corrects, contract.effect.system) == ("blind", True, "fax")
    assert unserved_contract("").effect.system == "unknown"
    assert refusals(contract.model_copy(update={"release": None})) == ()
