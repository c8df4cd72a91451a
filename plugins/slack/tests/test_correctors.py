"""Corrections: in the very thread or in a direct message, once, and found again."""

from __future__ import annotations

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous, HttpSender
from amends_slack.client import Slack
from amends_slack.examine import examine
from amends_slack.options import SlackOptions

CHANNEL = "C0BILLING"


def correction_call(workspace, place, text="run-1: reverted. Do nothing. Ask Maya."):
    correction = workspace.capability("correction")
    return correction, workspace.prepared(correction, workspace.call({"place": place, "text": text}, marker="cor-1"))


def test_a_correction_is_one_reply_in_the_thread_of_the_message(workspace):
    """The place of a reply is resolved to the thread's root."""
    root = workspace.foreign_post("root")
    inner = workspace.foreign_post("inner", thread_ts=root)
    correction, call = correction_call(workspace, f"slack:{CHANNEL}/{inner}")
    done = workspace.done(correction, call)
    posted = workspace.messages()[-1]
    assert posted["thread_ts"] == root
    assert done.reference == f"{CHANNEL}/{posted['ts']}"
    assert workspace.sent("chat.postMessage") == 1


@pytest.mark.parametrize(
    "place", [f"slack:{CHANNEL}/", f"slack:{CHANNEL}", "slack:billing/1.1", "jira:BILL-1", "person:maya"]
)
def test_a_place_without_a_thread_is_refused_and_nothing_is_posted_elsewhere(workspace, place):
    """Never a correction at the top level of a channel (S-03)."""
    correction = workspace.capability("correction")
    call = workspace.call({"place": place, "text": "x"})
    for step in (correction.prepare, correction.do):
        with pytest.raises(Refused):
            step(call)
    assert workspace.messages() == []


def test_a_correction_whose_message_is_gone_is_refused(workspace):
    """The thread is not there: undeliverable, and the engine must tell a person."""
    correction = workspace.capability("correction")
    with pytest.raises(Refused):
        correction.prepare(workspace.call({"place": f"slack:{CHANNEL}/1.000001", "text": "x"}))


def test_an_unknown_correction_is_found_by_its_mark(workspace):
    """Never posted a second time on doubt (rule 32)."""
    root = workspace.foreign_post("root")
    correction, call = correction_call(workspace, f"slack:{CHANNEL}/{root}")
    assert correction.probe(call).seen == "absent"
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage")
    with pytest.raises(Ambiguous):
        correction.do(call)
    assert correction.probe(call).seen == "applied"
    assert workspace.system.count("message") == 1


def test_a_correction_finds_its_thread_without_being_prepared(workspace):
    """Recovery posts and probes from the place alone: both resolve a reply's thread to its root by themselves."""
    root = workspace.foreign_post("root")
    inner = workspace.foreign_post("inner", thread_ts=root)
    correction = workspace.capability("correction")
    call = workspace.call({"place": f"slack:{CHANNEL}/{inner}", "text": "reverted"}, marker="cor-1")
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage")
    with pytest.raises(Ambiguous):
        correction.do(call)
    assert workspace.messages()[-1]["thread_ts"] == root
    assert correction.probe(call).seen == "applied"
    assert workspace.sent("chat.postMessage") == 1


@pytest.mark.parametrize(
    ("kind", "method", "path", "place"),
    [
        ("correction", "reads", "/api/conversations.replies", f"slack:{CHANNEL}/1.000001"),
        ("note", "POST", "/api/conversations.open", "person:maya"),
    ],
)
def test_a_look_that_fails_before_a_correction_means_not_sent(workspace, kind, method, path, place):
    """Nothing left, so it may be tried again; and the probe cannot tell either."""
    corrector = workspace.capability(kind)
    call = workspace.call({"place": place, "text": "reverted"})
    workspace.system.arm("refuse", method=method, path=path, status=503, form="html", times=2)
    with pytest.raises(NotSent):
        corrector.do(call)
    assert corrector.probe(call).seen == "inconclusive"
    assert workspace.sent("chat.postMessage") == 0


def test_a_correction_of_a_thread_that_is_gone_cannot_be_probed(workspace):
    """The reply's root cannot be told any more: inconclusive, never absent (rule 32)."""
    correction = workspace.capability("correction")
    call = workspace.call({"place": f"slack:{CHANNEL}/1.000001", "text": "reverted"})
    assert correction.probe(call).seen == "inconclusive"


def test_a_correction_mentions_nobody_by_accident(workspace):
    """A value quoted in the text cannot notify the channel."""
    root = workspace.foreign_post("root")
    correction, call = correction_call(workspace, f"slack:{CHANNEL}/{root}", "moved to <!channel> & more")
    workspace.done(correction, call)
    assert workspace.messages()[-1]["text"] == "moved to &lt;!channel&gt; &amp; more"


def test_a_note_reaches_the_person_the_site_mapped(workspace):
    """`person:maya` is a direct message; the conversation is opened beforehand and is not a message."""
    note = workspace.capability("note")
    call = workspace.prepared(note, workspace.call({"place": "person:maya", "text": "run-1: reverted"}, marker="cor-1"))
    channel = str(call.allocated["channel"])
    assert note.probe(call).seen == "absent"
    workspace.system.arm("drop_after_commit", path="/api/chat.postMessage")
    with pytest.raises(Ambiguous):
        note.do(call)
    seen = note.probe(call)
    assert (seen.seen, seen.effect["channel"]) == ("applied", channel)
    assert [message["text"] for message in workspace.messages(channel)] == ["run-1: reverted"]
    assert workspace.sent("chat.postMessage") == 1


@pytest.mark.parametrize("place", ["person:nobody", "slack:C0BILLING/1.1", "person:"])
def test_a_person_nobody_mapped_is_refused(workspace, place):
    """Undeliverable is said, not guessed."""
    with pytest.raises(Refused):
        workspace.capability("note").prepare(workspace.call({"place": place, "text": "x"}))


def test_doctor_says_who_is_signed_in_and_what_is_wrong_with_a_token(workspace):
    """A bad token names the reference, never the value."""
    good = examine(workspace.options, HttpSender(), lambda _: "xoxb-loopback")
    bad = examine(workspace.options, HttpSender(), lambda _: "xoxb-wrong-value")
    assert [finding.level for finding in good] == ["ok"]
    assert [finding.level for finding in bad] == ["problem"]
    assert "env:SLACK_BOT_TOKEN" in bad[0].remedy
    assert "xoxb-wrong-value" not in f"{bad}"


def test_doctor_survives_a_system_that_is_not_there():
    """Nobody listens: a finding, not an exception."""
    options = SlackOptions(base_url="http://127.0.0.1:9/api")
    assert Slack(options, HttpSender()).options is options
    (finding,) = examine(options, HttpSender(), lambda _: "t")
    assert finding.level == "problem"
