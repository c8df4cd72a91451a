"""Posts and replies over real sockets: one request, found again by marker, taken back by rungs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous
from amends_slack.marker import metadata

CHANNEL = "C0BILLING"
POST = {"channel": CHANNEL, "text": "billing field is live"}


def test_a_post_is_one_request_with_the_marker_in_its_metadata(workspace):
    """The message can be found again by a mark that no reader sees."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    assert workspace.sent("chat.postMessage") == 1
    assert done.reference == f"{CHANNEL}/{done.effect['ts']}"
    (message,) = workspace.messages()
    assert message["metadata"]["event_payload"] == {"amends_action": "act-1"}
    assert post.place(done) == f"slack:{done.reference}"


@pytest.mark.parametrize("how", ["fin", "rst", "cut_body"])
def test_an_answer_lost_after_commit_is_unknown_and_the_probe_finds_the_one_message(workspace, how):
    """The naive client would post twice; here one request was made, and looking settles it (A-06)."""
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage", how=how)
    post = workspace.capability("post")
    call = workspace.call(POST)
    with pytest.raises(Ambiguous):
        post.do(call)
    seen = post.probe(call)
    assert seen.seen == "applied"
    assert seen.reference == f"{CHANNEL}/{workspace.messages()[0]['ts']}"
    assert workspace.sent("chat.postMessage") == 1
    assert workspace.system.count("message") == 1


@pytest.mark.parametrize(
    ("fault", "parameters"),
    [
        ("error_after_commit", {"status": 500}),
        ("error_after_commit", {"status": 503, "form": "html"}),
        ("error_after_commit", {"status": 200, "form": "json", "body": {"ok": False, "error": "internal_error"}}),
        ("html_answer", {}),
        ("html_answer", {"body": "ok"}),
        ("empty_answer", {}),
        ("error_after_commit", {"status": 200, "form": "json", "body": {"ok": True}}),
    ],
)
def test_an_answer_that_proves_nothing_is_unknown_and_the_message_is_there(workspace, fault, parameters):
    """5xx, a page, plain text, an empty body, `ok` without a ts: none of them says what happened (C-01)."""
    workspace.system.arm(fault, path="/api/chat.postMessage", **parameters)
    post = workspace.capability("post")
    call = workspace.call(POST)
    with pytest.raises(Ambiguous):
        post.do(call)
    assert post.probe(call).seen == "applied"
    assert workspace.sent("chat.postMessage") == 1


def test_a_refusal_is_proof_and_the_probe_agrees(workspace):
    """`not_in_channel` posts nothing."""
    post = workspace.capability("post")
    call = workspace.call({**POST, "channel": "C0OTHER"})
    with pytest.raises(Refused) as refused:
        post.do(call)
    assert refused.value.code == "not_in_channel"
    assert workspace.system.count("message") == 0


def test_a_rate_limit_is_refused_for_now(workspace):
    """429 with Retry-After: the very same request may be sent later, by the engine and not by this adapter."""
    workspace.system.arm("refuse", path="/api/chat.postMessage", status=429)
    with pytest.raises(Refused) as refused:
        workspace.capability("post").do(workspace.call(POST))
    assert refused.value.again
    assert refused.value.retry_after_seconds == 1.0
    assert workspace.sent("chat.postMessage") == 1


def test_a_call_no_longer_wanted_sends_nothing(workspace):
    """The last look happens before the first byte (rule 3)."""
    with pytest.raises(NotSent):
        workspace.capability("post").do(workspace.call(POST, still_wanted=lambda: False))
    assert workspace.sent("chat.postMessage") == 0


def test_the_probe_of_a_post_that_never_landed_is_absent(workspace):
    """Every page was read and no message bears the marker; another run's message is not ours."""
    post = workspace.capability("post")
    workspace.done(post, workspace.call(POST, marker="act-2"))
    assert post.probe(workspace.call(POST)).seen == "absent"


def test_a_rate_limited_probe_is_inconclusive(workspace):
    """A probe that cannot look must not say absent (P-01)."""
    workspace.system.arm("refuse", method="reads", path="/api/conversations.history", status=429)
    assert workspace.capability("post").probe(workspace.call(POST)).seen == "inconclusive"


def test_two_messages_of_one_call_are_found_as_many(workspace):
    """The provider made two: both are named, so that the twin becomes an action of its own (F-22)."""
    workspace.system.arm("make_two", path="/api/chat.postMessage")
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    seen = post.probe(done)
    assert seen.seen == "many"
    assert set(seen.twins) == {f"{CHANNEL}/{message['ts']}" for message in workspace.messages()}
    assert seen.reference == done.reference


def test_a_twin_is_taken_back_alone(workspace):
    """Undoing the twin is verified by its own ts; the kept message stands."""
    workspace.system.arm("make_two", path="/api/chat.postMessage")
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    (twin,) = set(post.probe(done).twins) - {done.reference}
    assert workspace.undo(post, replace(done, reference=twin, effect={}), "delete").seen == "absent"
    assert post.probe(done).seen == "applied"


def test_a_twins_correction_goes_to_the_thread_of_the_message_that_stays(workspace):
    """The twin's reference must not take the place of the kept message's ts in the signal's place."""
    workspace.system.arm("make_two", path="/api/chat.postMessage")
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    seen = post.probe(done)
    (twin,) = set(seen.twins) - {done.reference}
    recorded = {**done.args, **seen.effect, post.contract.reference.field: twin}
    assert post.contract.signal.place.format(**recorded) == f"slack:{done.reference}"


def test_the_place_of_a_reply_is_known_while_its_answer_is_lost(workspace):
    """The contract's template needs only what `prepare` found."""
    root = workspace.foreign_post("root")
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}))
    assert reply.contract.signal.place.format(**{**call.args, **call.allocated}) == reply.place(call)


def test_a_skewed_clock_does_not_hide_the_message(workspace):
    """Slack's clock may be behind ours; the window is widened and never the only criterion (P-07)."""
    workspace.system.configure(clock_skew_s=-2.0)
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage")
    post = workspace.capability("post")
    call = workspace.call(POST)
    with pytest.raises(Ambiguous):
        post.do(call)
    assert post.probe(call).seen == "applied"


def test_delete_refused_then_marked_as_withdrawn(workspace):
    """A bot that may not delete its message can still say that it does not hold (S-01)."""
    workspace.system.configure(can_delete=False)
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    with pytest.raises(Refused) as refused:
        post.undo(replace(done, rung="delete"))
    assert refused.value.code == "cant_delete_message"
    assert post.verify_undone(done).seen == "applied"
    assert workspace.undo(post, done, "withdraw").state == {"message": "withdrawn"}
    assert "withdrawn" in workspace.messages()[0]["text"]
    assert post.probe(done).seen == "absent"
    assert workspace.sent("chat.delete") == workspace.sent("chat.update") == 1


def test_a_delete_that_answered_ok_and_did_nothing_is_seen(workspace):
    """`ok: true` is not taken for an undo: the separate read still finds the message (C-08)."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    workspace.system.arm("answer_without_commit", path="/api/chat.delete")
    assert workspace.undo(post, done, "delete").seen == "applied"


def test_a_message_that_is_gone_already_is_taken_back_by_looking(workspace):
    """`message_not_found` on our delete is the state we wanted (A-03)."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    workspace.system.arm("already_gone", path="/api/chat.delete")
    assert workspace.undo(post, done, "delete").seen == "absent"


def test_a_message_of_another_channel_is_never_touched(workspace):
    """A reference that does not belong to this call is refused before anything is sent (rule 11)."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    with pytest.raises(Refused):
        post.undo(replace(done, reference="C0OTHER/1.1", rung="delete"))
    assert workspace.sent("chat.delete") == 0


def test_without_a_ts_there_is_no_place_and_nothing_to_take_back(workspace):
    """The answer is lost and not found yet: no correction can be posted elsewhere (S-03)."""
    post = workspace.capability("post")
    call = workspace.call(POST)
    assert post.place(call) == ""
    with pytest.raises(Refused):
        post.undo(replace(call, rung="delete"))


def test_a_reply_to_a_reply_goes_to_the_root_of_the_thread(workspace):
    """The thread's root is resolved before and verified in the answer (S-03)."""
    root = workspace.foreign_post("root")
    inner = workspace.foreign_post("inner", thread_ts=root)
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": inner}))
    done = workspace.done(reply, call)
    assert done.effect["thread_ts"] == root
    assert reply.probe(done).seen == "applied"
    assert reply.place(call) == f"slack:{CHANNEL}/{root}"


def test_a_reply_into_a_thread_that_is_not_there_is_refused_before_it_is_sent(workspace):
    """`prepare` looks for the root, so no message ends at the top level."""
    reply = workspace.capability("reply")
    with pytest.raises(Refused):
        reply.prepare(workspace.call({**POST, "thread_ts": "1.000001"}))
    assert workspace.sent("chat.postMessage") == 0


def test_a_reply_whose_answer_is_lost_is_found_in_its_thread(workspace):
    """History does not show replies; the thread does."""
    root = workspace.foreign_post("root")
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}))
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage")
    with pytest.raises(Ambiguous):
        reply.do(call)
    seen = reply.probe(call)
    assert (seen.seen, seen.effect["thread_ts"]) == ("applied", root)


def test_an_ok_that_names_no_thread_is_not_a_reply(workspace):
    """The answer shows a message at the top level: unknown, although Slack said ok (S-03)."""
    root = workspace.foreign_post("root")
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}))
    message = {"ts": "1.000001", "text": "x", "metadata": metadata(call.marker)}
    body = {"ok": True, "channel": CHANNEL, "ts": "1.000001", "message": message}
    workspace.system.arm("error_after_commit", path="/api/chat.postMessage", status=200, form="json", body=body)
    with pytest.raises(Ambiguous) as ambiguous:
        reply.do(call)
    assert ambiguous.value.code == "other_thread"


def test_a_reply_that_landed_outside_its_thread_is_diverged(workspace):
    """The marker is at the top level: neither there nor absent, so a person decides."""
    root = workspace.foreign_post("root")
    workspace.done(workspace.capability("post"), workspace.call(POST))
    reply = workspace.capability("reply")
    assert reply.probe(workspace.call({**POST, "thread_ts": root})).seen == "diverged"


@pytest.mark.parametrize("text", ["<!channel> look", "<!here>", "hi <!everyone|everyone>"])
def test_a_message_that_notifies_everybody_says_so_to_policy(workspace, text):
    """Declared, non-secret policy input."""
    prepared = workspace.capability("post").prepare(workspace.call({**POST, "text": text}))
    assert prepared.input == {"mentions_everyone": True}


def rungs(capability, seen):
    """The names of the rungs that fit what is seen, in their order."""
    ladder = capability.contract.compensation
    return [rung.name for rung in ladder if all(seen.state.get(name) in value for name, value in rung.when.items())]


def test_a_message_that_nobody_answered_may_be_deleted(workspace):
    """Our own reply in the thread is nobody's answer."""
    post, reply = workspace.capability("post"), workspace.capability("reply")
    done = workspace.done(post, workspace.call(POST))
    root = str(done.effect["ts"])
    workspace.done(reply, workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}, marker="act-2")))
    assert rungs(post, post.probe(done)) == ["delete", "withdraw", "thread_correction", "person"]


def test_a_message_that_somebody_replied_to_is_marked_and_not_deleted(workspace):
    """Its thread keeps its head, and whoever replied reads that it does not hold (S-01)."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    workspace.foreign_post("are you sure?", thread_ts=done.effect["ts"])
    seen = post.probe(done)
    assert seen.state["answered"] == "replies"
    assert rungs(post, seen) == ["withdraw", "thread_correction", "person"]


def test_a_reaction_shows_that_somebody_has_read_the_message(workspace):
    """The same, without words."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    reaction = {"channel": CHANNEL, "timestamp": done.effect["ts"], "name": "eyes"}
    workspace.system.foreign("POST", "/api/reactions.add", reaction, account="U0HUMAN")
    assert post.probe(done).state["answered"] == "reactions"


def test_a_reply_that_somebody_wrote_after_is_marked_and_not_deleted(workspace):
    """What was written before it in the thread is no answer to it."""
    root = workspace.foreign_post("root")
    workspace.foreign_post("before", thread_ts=root)
    reply = workspace.capability("reply")
    done = workspace.done(reply, workspace.prepared(reply, workspace.call({**POST, "thread_ts": root})))
    assert reply.probe(done).state["answered"] == "no"
    workspace.foreign_post("after", thread_ts=root)
    assert rungs(reply, reply.probe(done)) == ["withdraw", "thread_correction", "person"]


def test_a_message_that_somebody_edited_since_is_left_alone(workspace):
    """Our mark over another text: diverged, so nothing of theirs is overwritten or taken away (rule 18)."""
    post = workspace.capability("post")
    done = workspace.done(post, workspace.call(POST))
    edit = {"channel": CHANNEL, "ts": done.effect["ts"], "text": "theirs"}
    workspace.system.foreign("POST", "/api/chat.update", edit, account="U0AGENT")
    seen = post.probe(done)
    assert (seen.seen, seen.state) == ("diverged", {"message": "edited"})


def test_a_reply_that_the_whole_channel_was_shown_is_diverged(workspace):
    """It stands in its thread and at the top level: a person decides (S-03)."""
    root = workspace.foreign_post("root")
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}))
    loud = {**POST, "thread_ts": root, "reply_broadcast": True, "metadata": metadata(call.marker)}
    workspace.system.foreign("POST", "/api/chat.postMessage", loud, account="U0AGENT")
    seen = reply.probe(call)
    assert (seen.seen, seen.state["thread"]) == ("diverged", "broadcast")


def test_an_answer_that_shows_a_broadcast_is_not_a_success(workspace):
    """Slack said ok, and everybody was told."""
    root = workspace.foreign_post("root")
    reply = workspace.capability("reply")
    call = workspace.prepared(reply, workspace.call({**POST, "thread_ts": root}))
    message = {"thread_ts": root, "subtype": "thread_broadcast", "metadata": metadata(call.marker)}
    body = {"ok": True, "channel": CHANNEL, "ts": "9.000001", "message": message}
    workspace.system.arm("error_after_commit", path="/api/chat.postMessage", status=200, form="json", body=body)
    with pytest.raises(Ambiguous) as ambiguous:
        reply.do(call)
    assert ambiguous.value.code == "broadcast"


def test_an_answer_that_a_gateway_repeats_is_no_success(workspace):
    """It shows the message of another call: unknown, and the probe says that nothing landed."""
    post = workspace.capability("post")
    earlier = workspace.call(POST, marker="act-0")
    done = workspace.done(post, earlier)
    message = {"ts": done.effect["ts"], "text": POST["text"], "metadata": metadata("act-0")}
    body = {"ok": True, "channel": CHANNEL, "ts": done.effect["ts"], "message": message}
    workspace.system.arm("answer_without_commit", path="/api/chat.postMessage", status=200, body=body)
    with pytest.raises(Ambiguous) as ambiguous:
        post.do(workspace.call(POST))
    assert ambiguous.value.code == "not_ours"
    assert post.probe(workspace.call(POST)).seen == "absent"
