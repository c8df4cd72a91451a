"""Incoming events: one message, one run."""

from __future__ import annotations

import pytest

from amends_slack.events import run_key


def envelope(number=1, **event):
    return {"team_id": "T1", "event_id": f"Ev{number}", "event": {"type": "message", "channel": "C1", **event}}


def test_eleven_deliveries_of_one_message_are_one_run():
    """Each under another event id and with a time of its own (S-04)."""
    keys = {run_key(envelope(number, ts="1718.55", event_ts=f"1718.{number}")) for number in range(11)}
    assert keys == {"slack:T1/C1/1718.55"}


def test_an_edit_is_about_the_message_that_was_edited():
    """The event's own ts is that of the edit."""
    edited = envelope(subtype="message_changed", ts="1800.1", message={"ts": "1718.55", "text": "x"})
    assert run_key(edited) == "slack:T1/C1/1718.55"


def test_a_reaction_is_about_the_message_under_it():
    """It names channel and message inside its item."""
    event = {"type": "reaction_added", "item": {"type": "message", "channel": "C1", "ts": "1718.55"}}
    assert run_key({"team_id": "T1", "event": event}) == "slack:T1/C1/1718.55"


def test_two_messages_are_two_runs():
    """Also with the same words."""
    assert run_key(envelope(ts="1.1", text="go")) != run_key(envelope(ts="1.2", text="go"))


@pytest.mark.parametrize("body", [{}, {"event": None}, {"event": {"channel": "C1"}}, {"event": {"ts": "1.1"}}])
def test_an_event_without_a_message_gives_no_key(body):
    """A made-up key would join runs that have nothing in common."""
    with pytest.raises(ValueError, match="names no message"):
        run_key(body)
