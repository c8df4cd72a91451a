"""What a Slack answer proves."""

from __future__ import annotations

import pytest

from amends.spi import Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import answers


@pytest.mark.parametrize(
    "code",
    ["not_in_channel", "channel_not_found", "invalid_auth", "no_text", "invalid_blocks", "is_archived", "msg_too_long"],
)
def test_a_known_no_is_a_refusal_that_is_not_sent_again(code):
    """`ok: false` with a code that is checked before anything is written proves that nothing happened (O-06)."""
    with pytest.raises(Refused) as refused:
        answers.accepted({"ok": False, "error": code})
    assert refused.value.code == code
    assert not refused.value.again


def test_a_rate_limit_may_be_sent_again_later():
    """`ratelimited` is a refusal of this moment, with the wait that Slack asked for."""
    with pytest.raises(Refused) as refused:
        answers.accepted({"ok": False, "error": "ratelimited"}, 7.0)
    assert refused.value.again
    assert refused.value.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    "code", ["internal_error", "fatal_error", "service_unavailable", "request_timeout", "new_word", None]
)
def test_any_other_no_leaves_the_outcome_unknown(code):
    """A failure inside Slack, or a word the table does not know, does not prove that nothing was posted (C-01)."""
    with pytest.raises(Ambiguous):
        answers.accepted({"ok": False, "error": code})


@pytest.mark.parametrize("body", [None, [], "ok", {}, {"ok": "true"}, {"ok": 1}, {"ts": "1.1"}])
def test_what_is_no_slack_answer_leaves_the_outcome_unknown(body):
    """Only a boolean `ok` says anything."""
    with pytest.raises(Ambiguous):
        answers.accepted(body)


@pytest.mark.parametrize(
    "answer", [{"channel": "C1"}, {"ts": "", "channel": "C1"}, {"ts": "1.1"}, {"ts": "1.1", "channel": "C2"}]
)
def test_success_needs_a_ts_in_the_channel_that_was_asked(answer):
    """`ok: true` alone is not a delivered message (C-01)."""
    with pytest.raises(Ambiguous):
        answers.posted_ts(answer, "C1")


def test_an_unreadable_read_keeps_slacks_own_word():
    """A probe needs to tell `thread_not_found` from a rate limit."""
    with pytest.raises(Unreadable) as unreadable:
        answers.readable({"ok": False, "error": "thread_not_found"})
    assert unreadable.value.code == "thread_not_found"
