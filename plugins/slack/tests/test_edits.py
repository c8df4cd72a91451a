"""Update, delete and schedule over real sockets."""

from __future__ import annotations

import time

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous, HttpSender
from amends_slack.client import Slack
from amends_slack.edits import Delete

CHANNEL = "C0BILLING"


@pytest.fixture
def own(workspace):
    """A message of this bot that stood before the run."""
    post = workspace.capability("post")
    call = workspace.call({"channel": CHANNEL, "text": "status: green"}, marker="earlier")
    return str(workspace.done(post, call).effect["ts"])


def update_call(workspace, ts, text="status: red"):
    update = workspace.capability("update")
    return update, workspace.prepared(update, workspace.call({"channel": CHANNEL, "ts": ts, "text": text}))


def test_an_update_is_restored_to_the_text_and_mark_that_stood_before(workspace, own):
    """Restore is a state of its own, verified by a separate read."""
    before = workspace.messages()[0]
    update, call = update_call(workspace, own)
    done = workspace.done(update, call)
    assert update.probe(done).state["message"] == "updated"
    assert workspace.undo(update, done).seen == "absent"
    after = workspace.messages()[0]
    assert (after["text"], after["metadata"]) == (before["text"], before["metadata"])
    assert workspace.sent("chat.update") == 2


def test_an_update_whose_answer_is_lost_is_found_by_its_mark(workspace, own):
    """The text alone might have been written by anybody."""
    update, call = update_call(workspace, own)
    workspace.system.arm("drop_after_commit", path="/api/chat.update")
    with pytest.raises(Ambiguous):
        update.do(call)
    assert update.probe(call).seen == "applied"


def test_an_update_that_never_landed_is_absent(workspace, own):
    """The former text still stands."""
    update, call = update_call(workspace, own)
    assert update.probe(call).seen == "absent"


def test_a_later_edit_is_not_overwritten(workspace, own):
    """Neither our text nor the former one: diverged, and the undo refuses (rule 18)."""
    update, call = update_call(workspace, own)
    done = workspace.done(update, call)
    later = {"channel": CHANNEL, "ts": own, "text": "status: amber", "metadata": {}}
    workspace.system.foreign("POST", "/api/chat.update", later, account="U0AGENT")
    assert update.probe(done).seen == "diverged"
    with pytest.raises(Refused) as refused:
        update.undo(done)
    assert refused.value.code == "diverged"
    assert workspace.messages()[0]["text"] == "status: amber"


def test_an_edit_that_kept_our_mark_is_not_overwritten_either(workspace, own):
    """An edit without metadata leaves the mark where it is: the text tells."""
    update, call = update_call(workspace, own)
    done = workspace.done(update, call)
    later = {"channel": CHANNEL, "ts": own, "text": "status: amber"}
    workspace.system.foreign("POST", "/api/chat.update", later, account="U0AGENT")
    assert update.probe(done).seen == "diverged"
    with pytest.raises(Refused):
        update.undo(done)
    assert workspace.messages()[0]["text"] == "status: amber"


def test_an_update_that_said_ok_and_did_nothing_is_seen(workspace, own):
    """Success is what the message says, not what the answer says."""
    update, call = update_call(workspace, own)
    workspace.system.arm("answer_without_commit", path="/api/chat.update")
    done = workspace.done(update, call)
    assert update.contract.confirm == "probe"
    assert update.probe(done).seen == "absent"


def test_an_ok_about_another_message_is_unknown(workspace, own):
    """A repeated answer names another ts."""
    update, call = update_call(workspace, own)
    body = {"ok": True, "channel": CHANNEL, "ts": "1.000001", "text": "x"}
    workspace.system.arm("answer_without_commit", path="/api/chat.update", status=200, body=body)
    with pytest.raises(Ambiguous):
        update.do(call)


def test_a_look_that_fails_before_the_undo_means_not_sent(workspace, own):
    """The undo may be tried again: nothing left."""
    update, call = update_call(workspace, own)
    done = workspace.done(update, call)
    workspace.system.arm("refuse", method="reads", path="/api/conversations.history", status=429)
    with pytest.raises(NotSent):
        update.undo(done)
    assert workspace.sent("chat.update") == 1


def test_a_removal_is_told_to_whom_the_site_names(workspace, own):
    """A removed message may take its thread along, so somebody is named to hear of it."""
    options = workspace.options.model_copy(update={"removals_told": "maya"})
    delete = Delete(Slack(options, HttpSender()))
    call = workspace.call({"channel": CHANNEL, "ts": own})
    assert delete.place(call) == delete.contract.signal.place == "person:maya"
    assert workspace.capability("delete").place(call) == f"slack:{CHANNEL}/{own}"


def test_an_update_of_a_message_that_is_not_there_is_refused_before_it_is_sent(workspace):
    """`prepare` needs the before-image."""
    update = workspace.capability("update")
    with pytest.raises(Refused):
        update.prepare(workspace.call({"channel": CHANNEL, "ts": "1.000001", "text": "x"}))


def test_a_delete_is_verified_by_looking(workspace, own):
    """`applied` means gone; an answer lost after commit is found by looking, and the second delete is no error."""
    delete = workspace.capability("delete")
    call = workspace.prepared(delete, workspace.call({"channel": CHANNEL, "ts": own}))
    assert delete.probe(call).seen == "absent"
    workspace.system.arm("drop_after_commit", path="/api/chat.delete")
    with pytest.raises(Ambiguous):
        delete.do(call)
    assert delete.probe(call).seen == "applied"
    assert delete.do(call).after == {"message": "gone"}


def schedule_call(workspace, ahead_seconds=7200):
    schedule = workspace.capability("schedule")
    args = {"channel": CHANNEL, "text": "maintenance at six", "post_at": int(time.time()) + ahead_seconds}
    return schedule, workspace.prepared(schedule, workspace.call(args))


def test_a_scheduled_message_is_taken_back_before_it_fires(workspace):
    """Nobody saw it, so there is no place to correct."""
    schedule, call = schedule_call(workspace)
    done = workspace.done(schedule, call)
    assert schedule.probe(done).state == {"scheduled": "pending"}
    assert schedule.place(done) == ""
    assert workspace.undo(schedule, done, "unschedule").seen == "absent"
    assert workspace.sent("chat.scheduleMessage") == workspace.sent("chat.deleteScheduledMessage") == 1


def test_a_scheduled_message_whose_answer_is_lost_is_found(workspace):
    """Slack lists no metadata there: channel, time and text decide, among those that did not wait before."""
    schedule, call = schedule_call(workspace)
    workspace.system.arm("drop_after_commit", path="/api/chat.scheduleMessage")
    with pytest.raises(Ambiguous):
        schedule.do(call)
    seen = schedule.probe(call)
    assert seen.seen == "applied"
    assert seen.reference.startswith(f"{CHANNEL}/Q")


def test_a_lookalike_that_waited_before_is_not_ours(workspace):
    """The same text at the same time, scheduled by an earlier call, is not adopted."""
    schedule, call = schedule_call(workspace)
    workspace.done(schedule, call)
    again = workspace.prepared(schedule, workspace.call(dict(call.args), marker="act-2"))
    assert schedule.probe(again).seen == "absent"


def test_two_lookalikes_are_inconclusive(workspace):
    """Without a mark nobody can say which one is ours."""
    schedule, call = schedule_call(workspace)
    workspace.system.arm("make_two", path="/api/chat.scheduleMessage")
    schedule.do(call)
    assert schedule.probe(call).seen == "inconclusive"


def test_a_twin_of_a_scheduled_message_is_not_overlooked(workspace):
    """Its id is known, and yet another one was made like it in the same moment: a person looks."""
    schedule, call = schedule_call(workspace)
    workspace.system.arm("make_two", path="/api/chat.scheduleMessage")
    assert schedule.probe(workspace.done(schedule, call)).seen == "inconclusive"


def test_an_equal_message_that_was_scheduled_later_is_no_twin(workspace):
    """Two intended equal calls are two messages."""
    schedule, call = schedule_call(workspace)
    done = workspace.done(schedule, call)
    workspace.system.configure(clock_skew_s=120.0)
    workspace.done(schedule, workspace.prepared(schedule, workspace.call(dict(call.args), marker="act-2")))
    assert schedule.probe(done).seen == "applied"


def test_two_messages_that_fired_are_many(workspace):
    """Now they bear our mark, and can be counted."""
    schedule, call = schedule_call(workspace)
    workspace.system.arm("make_two", path="/api/chat.scheduleMessage")
    schedule.do(call)
    workspace.system.configure(clock_skew_s=10_000.0)
    seen = schedule.probe(call)
    assert (seen.seen, seen.state) == ("many", {"scheduled": "fired"})
    assert len(seen.twins) == 2


def test_a_scheduled_message_that_fired_is_found_by_its_mark_and_cannot_be_unscheduled(workspace):
    """Taking it back too late is seen by the read that follows; now it has a place."""
    schedule, call = schedule_call(workspace)
    done = workspace.done(schedule, call)
    workspace.system.configure(clock_skew_s=10_000.0)
    seen = workspace.undo(schedule, done, "unschedule")
    assert (seen.seen, seen.state) == ("applied", {"scheduled": "fired"})
    assert seen.effect["ts"] == workspace.messages()[0]["ts"]


def test_a_message_that_would_fire_at_once_is_refused(workspace):
    """Scheduling is no way around the outbox."""
    schedule, call = schedule_call(workspace, ahead_seconds=60)
    with pytest.raises(Refused) as refused:
        schedule.do(call)
    assert refused.value.code == "too_soon"
    assert workspace.sent("chat.scheduleMessage") == 0
