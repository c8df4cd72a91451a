"""The workspace: messages, threads, metadata, schedules, direct notes, and Slack's own error names."""

from __future__ import annotations

import json
import time

import pytest

CHANNEL = "C0COHORT"
META = {"event_type": "amends", "event_payload": {"marker": "m-1"}}


@pytest.fixture
def workspace(slack):
    slack.system.control("seed_channel", id=CHANNEL, name="qa-cohort")
    slack.system.control("seed_channel", id="C0CLOSED", name="closed", members=[])
    slack.system.control("seed_user", id="U0MAYA", name="maya", email="maya@example.test")
    return slack


def call(slack, name, **arguments):
    return slack("POST", f"/api/{name}", arguments).json


def post(slack, **arguments):
    return call(slack, "chat.postMessage", channel=CHANNEL, **{"text": "hello", **arguments})


def test_a_message_is_found_by_metadata_only_when_asked_for(workspace):
    """`include_all_metadata` is needed to see it."""
    said = post(workspace, metadata=META, client_msg_id="c-1")
    assert said["ok"]
    (plain,) = call(workspace, "conversations.history", channel=CHANNEL)["messages"]
    (full,) = call(workspace, "conversations.history", channel=CHANNEL, include_all_metadata=True)["messages"]
    assert ("metadata" in plain, full["metadata"], full["client_msg_id"]) == (False, META, "c-1")
    assert workspace.system.effects("message")[0]["marker"] == "m-1"


def test_the_same_post_twice_is_two_messages(workspace):
    """client_msg_id does not make it one."""
    assert len({post(workspace, client_msg_id="c-1")["ts"] for _ in range(2)}) == 2
    assert workspace.system.count("message") == 2


def test_form_and_json_bodies_and_names_are_understood(workspace):
    """As SDKs send them: a form with JSON text inside, a channel by name."""
    form = {"channel": "#qa-cohort", "text": "hi", "metadata": json.dumps(META)}
    answer = workspace("POST", "/api/chat.postMessage", form=form).json
    assert (answer["channel"], answer["message"]["metadata"]) == (CHANNEL, META)
    assert workspace("GET", f"/api/conversations.history?channel={CHANNEL}&limit=1").json["messages"][0]["text"] == "hi"


def test_history_is_paged_from_the_newest_and_bounded_by_ts(workspace):
    """`cursor`, `oldest`, `latest`, `inclusive`."""
    stamps = [post(workspace, text=str(number))["ts"] for number in range(5)]
    first = call(workspace, "conversations.history", channel=CHANNEL, limit=2)
    assert ([item["ts"] for item in first["messages"]], first["has_more"]) == (stamps[:2:-1], True)
    cursor = first["response_metadata"]["next_cursor"]
    rest = call(workspace, "conversations.history", channel=CHANNEL, limit=9, cursor=cursor)
    assert [item["ts"] for item in rest["messages"]] == stamps[2::-1]
    bounds = {"channel": CHANNEL, "oldest": stamps[1], "latest": stamps[3]}
    assert len(call(workspace, "conversations.history", **bounds)["messages"]) == 1
    assert len(call(workspace, "conversations.history", **bounds, inclusive=True)["messages"]) == 3


def test_replies_are_in_the_thread_and_not_in_the_channel(workspace):
    """Root first, then replies; a deleted root leaves a tombstone."""
    root = post(workspace)["ts"]
    reply = post(workspace, text="reply", thread_ts=root)["ts"]
    (shown,) = call(workspace, "conversations.history", channel=CHANNEL)["messages"]
    assert (shown["ts"], shown["reply_count"], shown["latest_reply"]) == (root, 1, reply)
    call(workspace, "chat.delete", channel=CHANNEL, ts=root)
    thread = call(workspace, "conversations.replies", channel=CHANNEL, ts=root)["messages"]
    assert [item.get("subtype", item["text"]) for item in thread] == ["tombstone", "reply"]
    assert call(workspace, "chat.delete", channel=CHANNEL, ts=root)["error"] == "message_not_found"


def test_update_marks_as_edited_and_delete_removes(workspace):
    """The second delete finds nothing, and nothing is left."""
    ts = post(workspace)["ts"]
    changed = call(workspace, "chat.update", channel=CHANNEL, ts=ts, text="withdrawn")
    assert (changed["text"], changed["message"]["edited"]["user"]) == ("withdrawn", "U0AGENT")
    assert workspace.system.count("message_text") == 1
    assert call(workspace, "chat.delete", channel=CHANNEL, ts=ts)["ok"]
    assert call(workspace, "chat.delete", channel=CHANNEL, ts=ts)["error"] == "message_not_found"
    assert workspace.system.count("message") == 0


def test_delete_can_be_forbidden_while_update_works(workspace):
    """The ladder: delete, else update."""
    workspace.system.configure(can_delete=False)
    ts = post(workspace)["ts"]
    assert call(workspace, "chat.delete", channel=CHANNEL, ts=ts)["error"] == "cant_delete_message"
    assert call(workspace, "chat.update", channel=CHANNEL, ts=ts, text="withdrawn")["ok"]


def test_messages_of_others_are_not_ours_to_change(workspace):
    """Neither to delete nor to update."""
    body = {"channel": CHANNEL, "text": "mine"}
    members = ["U0AGENT", "U0MAYA"]
    workspace.system.control("seed_channel", id=CHANNEL, name="qa-cohort", members=members)
    ts = workspace.system.foreign("POST", "/api/chat.postMessage", body, actor="U0MAYA")["body"]["ts"]
    assert call(workspace, "chat.delete", channel=CHANNEL, ts=ts)["error"] == "cant_delete_message"
    assert call(workspace, "chat.update", channel=CHANNEL, ts=ts, text="x")["error"] == "cant_update_message"


def test_a_scheduled_message_can_be_taken_back_until_it_is_posted(workspace):
    """Afterwards it is a message like any other."""
    soon = int(time.time()) + 600
    first, second = (
        call(workspace, "chat.scheduleMessage", channel=CHANNEL, text="later", post_at=soon, metadata=META)
        for _ in range(2)
    )
    key = {"channel": CHANNEL, "scheduled_message_id": first["scheduled_message_id"]}
    assert len(call(workspace, "chat.scheduledMessages.list")["scheduled_messages"]) == 2
    assert call(workspace, "chat.deleteScheduledMessage", **key)["ok"]
    workspace.system.configure(clock_skew_s=700)
    (posted,) = call(workspace, "conversations.history", channel=CHANNEL)["messages"]
    assert posted["text"] == "later"
    late = {"channel": CHANNEL, "scheduled_message_id": second["scheduled_message_id"]}
    assert call(workspace, "chat.deleteScheduledMessage", **late)["error"] == "invalid_scheduled_message_id"
    assert workspace.system.counts() == {"message": {"present": 1}, "scheduled_message": {"removed": 2}}


def test_scheduled_messages_are_listed_in_pages_the_soonest_first(workspace):
    """`limit`, `cursor`."""
    times = [int(time.time()) + 3600 * hours for hours in (3, 1, 2)]
    for at in times:
        call(workspace, "chat.scheduleMessage", channel=CHANNEL, text="later", post_at=at)
    first = call(workspace, "chat.scheduledMessages.list", channel=CHANNEL, limit=2)
    cursor = first["response_metadata"]["next_cursor"]
    rest = call(workspace, "chat.scheduledMessages.list", channel=CHANNEL, limit=2, cursor=cursor)
    listed = [item["post_at"] for page in (first, rest) for item in page["scheduled_messages"]]
    assert (listed, rest["response_metadata"]["next_cursor"]) == (sorted(times), "")


def test_direct_notes_go_to_one_channel_per_person(workspace):
    """By e-mail to the person, by the person to the channel; a user id posts there as well."""
    maya = call(workspace, "users.lookupByEmail", email="maya@example.test")["user"]["id"]
    opened = {call(workspace, "conversations.open", users=maya)["channel"]["id"] for _ in range(2)}
    assert len(opened) == 1
    assert call(workspace, "chat.postMessage", channel=maya, text="for you")["channel"] in opened
    assert call(workspace, "conversations.open", users="U0NOBODY")["error"] == "user_not_found"


def test_an_ephemeral_message_is_in_no_history(workspace):
    """It was seen, and cannot be found again."""
    said = call(workspace, "chat.postEphemeral", channel=CHANNEL, user="U0AGENT", text="psst")
    assert said["message_ts"]
    assert call(workspace, "conversations.history", channel=CHANNEL)["messages"] == []
    assert workspace.system.count("ephemeral") == 1


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("chat.postMessage", {"channel": "C0NONE", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "C0CLOSED", "text": "x"}, "not_in_channel"),
        ("chat.postMessage", {"channel": CHANNEL}, "no_text"),
        ("chat.postMessage", {"channel": CHANNEL, "text": "x" * 40_001}, "msg_too_long"),
        ("chat.postMessage", {"channel": CHANNEL, "text": "x", "thread_ts": "1.2"}, "cannot_reply_to_message"),
        ("chat.postMessage", {"channel": CHANNEL, "text": "x", "blocks": "{"}, "invalid_blocks"),
        ("chat.scheduleMessage", {"channel": CHANNEL, "text": "x", "post_at": 1}, "time_in_past"),
        ("chat.scheduleMessage", {"channel": CHANNEL, "text": "x", "post_at": 9e9}, "time_too_far"),
        ("chat.postEphemeral", {"channel": CHANNEL, "user": "U0MAYA", "text": "x"}, "user_not_in_channel"),
        ("conversations.replies", {"channel": CHANNEL, "ts": "1.2"}, "thread_not_found"),
        ("conversations.history", {"channel": CHANNEL, "cursor": "%"}, "invalid_cursor"),
        ("users.info", {"user": "U0NOBODY"}, "user_not_found"),
        ("users.lookupByEmail", {"email": "x@example.test"}, "users_not_found"),
        ("reactions.add", {"channel": CHANNEL, "timestamp": "1.2", "name": "eyes"}, "message_not_found"),
        ("files.getUploadURLExternal", {"filename": "", "length": "2"}, "invalid_arguments"),
        ("files.completeUploadExternal", {"files": []}, "invalid_arguments"),
        ("files.info", {"file": "F0NONE"}, "file_not_found"),
        ("files.delete", {"file": "F0NONE"}, "file_not_found"),
        ("chat.unheardOf", {}, "unknown_method"),
    ],
)
def test_failures_are_ok_false_with_status_200(workspace, name, arguments, error):
    """Slack's own names."""
    answer = workspace("POST", f"/api/{name}", arguments)
    assert (answer.status, answer.json["ok"], answer.json["error"]) == (200, False, error)
    assert workspace.system.counts() == {}


def test_a_rate_limit_has_a_status_of_its_own(workspace):
    """429 with Retry-After, nothing posted."""
    workspace.system.arm("refuse", path="/api/chat.postMessage", code="ratelimited", headers={"Retry-After": "30"})
    answer = workspace("POST", "/api/chat.postMessage", {"channel": CHANNEL, "text": "x"})
    assert (answer.status, answer.headers["Retry-After"], answer.json["error"]) == (429, "30", "ratelimited")
    assert workspace.system.counts() == {}


def test_a_told_refusal_keeps_slacks_status(workspace):
    """`cant_delete_message` as a fault comes as ok:false with 200."""
    ts = post(workspace)["ts"]
    workspace.system.arm("refuse", path="/api/chat.delete", code="cant_delete_message")
    answer = workspace("POST", "/api/chat.delete", {"channel": CHANNEL, "ts": ts})
    assert (answer.status, answer.json) == (200, {"ok": False, "error": "cant_delete_message"})


def test_a_deleted_message_can_still_be_shown(workspace):
    """The undo said ok; a read that lies shows it once more."""
    ts = post(workspace)["ts"]
    call(workspace, "chat.delete", channel=CHANNEL, ts=ts)
    workspace.system.arm("lie_reads", path="/api/conversations.history", says="present")
    seen = [len(call(workspace, "conversations.history", channel=CHANNEL)["messages"]) for _ in range(2)]
    assert seen == [1, 0]


def upload(workspace, content=b"\x00\xff", **more):
    reserved = call(workspace, "files.getUploadURLExternal", filename="t.bin", length=str(len(content)))
    path = reserved["upload_url"].removeprefix(workspace.system.url)
    bare = type(workspace)(workspace.system, "")
    sent = bare("POST", path, content, headers={"Content-Type": "application/octet-stream"})
    assert (sent.status, sent.raw) == (200, f"OK - {len(content)}".encode())
    files = [{"id": reserved["file_id"], "title": "table"}]
    return call(workspace, "files.completeUploadExternal", files=files, **more)


def test_a_file_is_an_effect_once_it_is_completed(workspace):
    """Reserving and sending bytes is none; completing shows it in the channel, deleting takes both away."""
    (file,) = upload(workspace, channel_id=CHANNEL)["files"]
    assert workspace.system.counts() == {"file": {"present": 1}}
    (message,) = call(workspace, "conversations.history", channel=CHANNEL)["messages"]
    assert message["ts"] == file["shares"]["public"][CHANNEL][0]["ts"]
    assert call(workspace, "files.delete", file=file["id"])["ok"]
    assert call(workspace, "files.info", file=file["id"])["error"] == "file_not_found"
    assert call(workspace, "conversations.history", channel=CHANNEL)["messages"] == []
    assert workspace.system.counts() == {"file": {"removed": 1}}


def test_a_file_can_be_made_and_never_shown(workspace):
    """As the product does now and then, after it has said ok."""
    workspace.system.configure(share_files=False)
    (file,) = upload(workspace, channel_id=CHANNEL)["files"]
    assert file["shares"] == {}
    assert call(workspace, "conversations.history", channel=CHANNEL)["messages"] == []


def test_files_are_listed_in_pages(workspace):
    """With a count of pages, not a cursor."""
    made = [upload(workspace)["files"][0]["id"] for _ in range(3)]
    listed = [call(workspace, "files.list", count=2, page=page) for page in (1, 2)]
    assert [[file["id"] for file in page["files"]] for page in listed] == [made[:0:-1], made[:1]]
    assert listed[0]["paging"] == {"count": 2, "total": 3, "page": 1, "pages": 2}


def test_what_was_not_uploaded_cannot_be_completed(workspace):
    """Nor deleted by somebody whose file it is not."""
    reserved = call(workspace, "files.getUploadURLExternal", filename="t.bin", length="2")
    files = [{"id": reserved["file_id"]}]
    assert call(workspace, "files.completeUploadExternal", files=files)["error"] == "file_not_found"
    workspace.system.configure(can_delete=False)
    (file,) = upload(workspace)["files"]
    assert call(workspace, "files.delete", file=file["id"])["error"] == "cant_delete_file"


@pytest.mark.parametrize(("credential", "error"), [("", "not_authed"), ("Bearer xoxb-wrong", "invalid_auth")])
def test_a_token_is_needed(workspace, credential, error):
    """Slack's two names for it."""
    assert type(workspace)(workspace.system, credential)("POST", "/api/auth.test").json["error"] == error
    assert call(workspace, "auth.test")["user_id"] == "U0AGENT"


def test_a_body_that_is_no_json_is_refused(workspace):
    """invalid_json."""
    assert workspace("POST", "/api/chat.postMessage", b"{").json["error"] == "invalid_json"
