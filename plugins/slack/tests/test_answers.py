"""What a Slack answer proves."""

from __future__ import annotations

import pytest

from amends.spi import Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import answers, codes
from amends_slack.marker import metadata

POST = "chat.postMessage"


@pytest.mark.parametrize("code", sorted(codes.REFUSED))
def test_a_known_no_is_a_refusal_that_is_not_sent_again(code):
    """`ok: false` with a code that is checked before anything is written proves that nothing happened (O-06)."""
    with pytest.raises(Refused) as refused:
        answers.accepted(POST, {"ok": False, "error": code})
    assert refused.value.code == code
    assert not refused.value.again


@pytest.mark.parametrize("code", sorted(codes.LATER))
def test_a_rate_limit_may_be_sent_again_later(code):
    """`ratelimited` is a refusal of this moment, with the wait that Slack asked for."""
    with pytest.raises(Refused) as refused:
        answers.accepted(POST, {"ok": False, "error": code}, 7.0)
    assert refused.value.again
    assert refused.value.retry_after_seconds == 7.0


@pytest.mark.parametrize("code", [*sorted(codes.IN_DOUBT), "new_word", None])
def test_any_other_no_leaves_the_outcome_unknown(code):
    """A failure inside Slack, or a word the tables do not know, does not prove that nothing was posted (C-01)."""
    with pytest.raises(Ambiguous):
        answers.accepted(POST, {"ok": False, "error": code})


@pytest.mark.parametrize(("method", "code"), [(m, c) for m, words in codes.ALREADY.items() for c in sorted(words)])
def test_what_holds_already_is_done(method, code):
    """Taking away what is gone is no failure of the undo; for another method the same word is a refusal (A-03)."""
    assert answers.accepted(method, {"ok": False, "error": code})["error"] == code
    with pytest.raises(Refused):
        answers.accepted(POST, {"ok": False, "error": code})


@pytest.mark.parametrize(("method", "code"), [(m, c) for m, words in codes.IN_DOUBT_FOR.items() for c in sorted(words)])
def test_a_word_that_a_second_delivery_hears_is_no_refusal(method, code):
    """A gateway that delivers a completing call twice passes on the answer to the second: the file is there."""
    with pytest.raises(Ambiguous):
        answers.accepted(method, {"ok": False, "error": code})


def test_no_word_is_in_two_tables():
    """Each code proves one thing."""
    assert not codes.REFUSED & codes.LATER
    assert not (codes.REFUSED | codes.LATER) & codes.IN_DOUBT


@pytest.mark.parametrize("body", [None, [], "ok", {}, {"ok": "true"}, {"ok": 1}, {"ts": "1.1"}])
def test_what_is_no_slack_answer_leaves_the_outcome_unknown(body):
    """Only a boolean `ok` says anything."""
    with pytest.raises(Ambiguous):
        answers.accepted(POST, body)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"ts": "1.1", "channel": "C1"}, "not_ours"),
        ({"ts": "1.1", "channel": "C1", "message": {"text": "x"}}, "not_ours"),
        ({"ts": "1.1", "channel": "C1", "message": {"metadata": metadata("act-2")}}, "not_ours"),
        ({"channel": "C1", "message": {"metadata": metadata("act-1")}}, "no_ts"),
        ({"ts": "", "channel": "C1", "message": {"metadata": metadata("act-1")}}, "no_ts"),
        ({"ts": "1.1", "message": {"metadata": metadata("act-1")}}, "other_channel"),
        ({"ts": "1.1", "channel": "C2", "message": {"metadata": metadata("act-1")}}, "other_channel"),
    ],
)
def test_success_needs_our_mark_read_back_and_a_ts_in_the_channel_that_was_asked(answer, code):
    """`ok: true` alone is not a delivered message (C-01); one that a gateway repeats bears another mark."""
    with pytest.raises(Ambiguous) as ambiguous:
        answers.posted(answer, "act-1", "C1")
    assert ambiguous.value.code == code


def test_an_ok_about_another_message_proves_nothing():
    """A repeated answer to another change names another message."""
    answers.about({"ok": True, "channel": "C1", "ts": "1.1"}, "C1", "1.1")
    answers.about({"ok": False, "error": "message_not_found"}, "C1", "1.1")
    with pytest.raises(Ambiguous):
        answers.about({"ok": True, "channel": "C1", "ts": "1.2"}, "C1", "1.1")


def test_an_unreadable_read_keeps_slacks_own_word():
    """A probe needs to tell `thread_not_found` from a rate limit."""
    with pytest.raises(Unreadable) as unreadable:
        answers.readable({"ok": False, "error": "thread_not_found"})
    assert unreadable.value.code == "thread_not_found"
