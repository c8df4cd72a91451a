"""What the Slack adapter relies on, asked of any system that speaks the Web API.

Run it on a loopback system and on the emulator: `problems(system, base_url, token)`. The workspace needs a channel
`amends` with the token's user and a user `maya@example.test` in it. It leaves messages behind.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from amends.testing.differences import Behaviour, Difference, Said, Site
from amends.testing.differences import problems as compared

MAYA = "maya@example.test"
_numbers = itertools.count(1)


def problems(system: str, base_url: str, token: str) -> list[str]:
    """What is not as this page says of `system` (`loopback` or `emulator`); empty if all is."""
    return compared(BEHAVIOURS, DIFFERENCES, system=system, site=Site(base_url, token))


# --- how the adapter asks -----------------------------------------------------------------------------


def write(site: Site, method: str, **payload: Any) -> Any:
    """A mutating call as the adapter makes it: a JSON body."""
    return site.call("POST", method, payload).json


def read(site: Site, method: str, **query: Any) -> Any:
    """A read as the adapter makes it: a form."""
    return site.call("POST", method, form={name: str(value) for name, value in query.items()}).json


def channel(site: Site) -> str:
    found = [item["id"] for item in read(site, "conversations.list")["channels"] if item["name"] == "amends"]
    assert found, "the workspace has no channel `amends`"
    return str(found[0])


def maya(site: Site) -> str:
    return str(read(site, "users.lookupByEmail", email=MAYA)["user"]["id"])


def mark(word: str) -> dict[str, Any]:
    return {"event_type": "amends_action", "event_payload": {"amends_action": word}}


def fresh(word: str = "m") -> str:
    return f"{word}-{time.time_ns()}-{next(_numbers)}"


def post(site: Site, **more: Any) -> Any:
    said = write(site, "chat.postMessage", **{"channel": channel(site), "text": fresh(), **more})
    assert said["ok"], said
    return said


def shown(site: Site, ts: str, **query: Any) -> list[Any]:
    pages = history(site, **query)
    return [item for item in pages if item["ts"] == ts]


def history(site: Site, **query: Any) -> list[Any]:
    """Every page of the channel, as the adapter reads it."""
    found: list[Any] = []
    cursor = ""
    while True:
        asked = {"channel": channel(site), "include_all_metadata": "true", "limit": 200, **query}
        page = read(site, "conversations.history", **asked, **({"cursor": cursor} if cursor else {}))
        assert page["ok"], page
        found += page["messages"]
        cursor = page.get("response_metadata", {}).get("next_cursor", "")
        if not cursor:
            return found


def thread(site: Site, ts: str) -> Any:
    return read(site, "conversations.replies", channel=channel(site), ts=ts, include_all_metadata="true")


def upload(site: Site, name: str, content: bytes = b"a;b\n1;2\n") -> Any:
    """The three requests of an upload; the answer to the last."""
    number = reserve(site, name, content)
    files = [{"id": number, "title": "table"}]
    return write(site, "files.completeUploadExternal", files=files, channel_id=channel(site))


def reserve(site: Site, name: str, content: bytes) -> str:
    reserved = read(site, "files.getUploadURLExternal", filename=name, length=len(content))
    assert reserved["ok"], reserved
    sent = site.call("POST", reserved["upload_url"], content=content)
    assert sent.status == 200, sent
    return str(reserved["file_id"])


def refused(said: Any, code: str) -> None:
    assert said == {"ok": False, "error": code}, said


# --- behaviours -----------------------------------------------------------------------------


def a_token_is_needed(site: Site) -> None:
    """`not_authed` without one."""
    refused(Site(site.base_url, "").call("POST", "auth.test", form={}).json, "not_authed")


def a_wrong_token_is_refused(site: Site) -> None:
    """`invalid_auth`."""
    refused(Site(site.base_url, "xoxb-nobody").call("POST", "auth.test", form={}).json, "invalid_auth")


def auth_test_says_who(site: Site) -> None:
    """What `amends doctor` shows."""
    said = read(site, "auth.test")
    assert said["ok"], said
    assert said["user_id"], said
    assert said["team"], said


def a_method_that_is_not_there_is_named_unknown(site: Site) -> None:
    """`unknown_method` with status 200."""
    said: Said = site.call("POST", "chat.unheardOf", {})
    assert (said.status, said.json) == (200, {"ok": False, "error": "unknown_method"}), said


def a_post_shows_its_mark_in_the_answer(site: Site) -> None:
    """The adapter takes the answer for proof only then."""
    word = fresh()
    said = post(site, metadata=mark(word))
    assert said["channel"] == channel(site), said
    assert said["message"]["metadata"] == mark(word), said
    assert said["message"]["ts"] == said["ts"], said


def a_post_is_found_by_its_mark(site: Site) -> None:
    """Whether its answer came or not."""
    word = fresh()
    ts = post(site, metadata=mark(word))["ts"]
    (found,) = shown(site, ts)
    assert found["metadata"] == mark(word), found


def the_mark_is_shown_only_when_asked_for(site: Site) -> None:
    """`include_all_metadata`."""
    ts = post(site, metadata=mark(fresh()))["ts"]
    (found,) = shown(site, ts, include_all_metadata="false")
    assert "metadata" not in found, found


def the_same_post_twice_is_two_messages(site: Site) -> None:
    """Slack has no key: looking is the only way to know."""
    word = fresh()
    both = [post(site, text=word, metadata=mark(word), client_msg_id=word)["ts"] for _ in range(2)]
    assert len(set(both)) == 2, both
    assert len([item for item in history(site) if item.get("metadata") == mark(word)]) == 2


def history_is_paged_from_the_newest(site: Site) -> None:
    """A cursor leads on, and the last page has none."""
    stamps = [post(site)["ts"] for _ in range(3)]
    first = read(site, "conversations.history", channel=channel(site), limit=2)
    assert [item["ts"] for item in first["messages"]] == stamps[:0:-1], first
    assert first["has_more"], first
    cursor = first["response_metadata"]["next_cursor"]
    second = read(site, "conversations.history", channel=channel(site), limit=1, cursor=cursor)
    assert [item["ts"] for item in second["messages"]] == stamps[:1], second


def history_is_bounded_by_oldest_and_latest(site: Site) -> None:
    """One message is read by its ts without reading the channel."""
    first, second, third = (post(site)["ts"] for _ in range(3))
    found = history(site, oldest=second, latest=second, inclusive="true")
    assert [item["ts"] for item in found] == [second], (first, third, found)


def a_reply_names_its_thread(site: Site) -> None:
    """In the answer, in the thread, and not in the channel."""
    root = post(site)["ts"]
    word = fresh()
    said = post(site, thread_ts=root, metadata=mark(word))
    assert said["message"]["thread_ts"] == root, said
    messages = thread(site, root)["messages"]
    assert [item["ts"] for item in messages] == [root, said["ts"]], messages
    assert messages[1]["metadata"] == mark(word), messages
    assert shown(site, said["ts"]) == []


def a_reply_leads_back_to_its_root(site: Site) -> None:
    """Asked for a reply's own ts, the message comes with its `thread_ts`."""
    root = post(site)["ts"]
    ts = post(site, thread_ts=root)["ts"]
    found = [item for item in thread(site, ts)["messages"] if item["ts"] == ts]
    assert [item["thread_ts"] for item in found] == [root], found


def a_root_says_who_has_replied(site: Site) -> None:
    """What the way back is chosen by."""
    root = post(site)["ts"]
    post(site, thread_ts=root)
    (found,) = shown(site, root)
    assert found["reply_count"] == 1, found
    assert found["reply_users"], found


def a_message_says_who_has_reacted(site: Site) -> None:
    """The same, without words."""
    ts = post(site)["ts"]
    assert write(site, "reactions.add", channel=channel(site), timestamp=ts, name="eyes")["ok"]
    (found,) = shown(site, ts)
    assert found["reactions"][0]["name"] == "eyes", found


def a_reply_to_nothing_is_refused(site: Site) -> None:
    """`cannot_reply_to_message`: no message ends at the top level, or in a thread that nobody sees."""
    said = write(site, "chat.postMessage", channel=channel(site), text="x", thread_ts="1.000001")
    refused(said, "cannot_reply_to_message")


def a_thread_that_is_not_there_is_named_so(site: Site) -> None:
    """`thread_not_found`."""
    refused(thread(site, "1.000002"), "thread_not_found")


def a_broadcast_reply_is_marked_as_one(site: Site) -> None:
    """A subtype, or `reply_broadcast`: the adapter looks for both."""
    root = post(site)["ts"]
    ts = post(site, thread_ts=root, reply_broadcast=True)["ts"]
    (found,) = (item for item in thread(site, root)["messages"] if item["ts"] == ts)
    assert found.get("subtype") == "thread_broadcast" or found.get("reply_broadcast") is True, found


def a_broadcast_reply_is_also_in_the_channel(site: Site) -> None:
    """Everybody there sees it."""
    root = post(site)["ts"]
    ts = post(site, thread_ts=root, reply_broadcast=True)["ts"]
    assert len(shown(site, ts)) == 1


def an_update_sets_text_and_mark(site: Site) -> None:
    """And says that the message was edited."""
    ts = post(site, metadata=mark(fresh()))["ts"]
    word = fresh()
    said = write(site, "chat.update", channel=channel(site), ts=ts, text="red", metadata=mark(word))
    assert (said["channel"], said["ts"], said["text"]) == (channel(site), ts, "red"), said
    (found,) = shown(site, ts)
    assert (found["text"], found["metadata"]) == ("red", mark(word)), found
    assert found["edited"]["ts"], found


def an_update_without_metadata_keeps_it(site: Site) -> None:
    """So somebody's later edit still bears our mark: another text under our mark is theirs."""
    word = fresh()
    ts = post(site, metadata=mark(word))["ts"]
    assert write(site, "chat.update", channel=channel(site), ts=ts, text="theirs")["ok"]
    (found,) = shown(site, ts)
    assert (found["text"], found["metadata"]) == ("theirs", mark(word)), found


def an_update_with_empty_metadata_takes_it_away(site: Site) -> None:
    """How a message that bore no mark is restored."""
    ts = post(site, metadata=mark(fresh()))["ts"]
    assert write(site, "chat.update", channel=channel(site), ts=ts, text="plain", metadata={})["ok"]
    (found,) = shown(site, ts)
    assert not found.get("metadata"), found


def a_delete_removes_and_the_second_finds_nothing(site: Site) -> None:
    """`message_not_found` is what we wanted."""
    ts = post(site)["ts"]
    said = write(site, "chat.delete", channel=channel(site), ts=ts)
    assert (said["ok"], said["channel"], said["ts"]) == (True, channel(site), ts), said
    assert shown(site, ts) == []
    refused(write(site, "chat.delete", channel=channel(site), ts=ts), "message_not_found")


def a_deleted_root_with_replies_leaves_a_tombstone(site: Site) -> None:
    """The thread goes on."""
    root = post(site)["ts"]
    post(site, thread_ts=root)
    assert write(site, "chat.delete", channel=channel(site), ts=root)["ok"]
    assert [item.get("subtype") for item in thread(site, root)["messages"]] == ["tombstone", None]


def what_is_not_there_cannot_be_changed(site: Site) -> None:
    """`message_not_found`, `channel_not_found`, `no_text`."""
    refused(write(site, "chat.update", channel=channel(site), ts="1.000001", text="x"), "message_not_found")
    refused(write(site, "chat.postMessage", channel="C0NONE", text="x"), "channel_not_found")
    refused(write(site, "chat.postMessage", channel=channel(site)), "no_text")


def a_text_that_is_too_long_is_refused(site: Site) -> None:
    """`msg_too_long`, and never cut short in silence."""
    refused(write(site, "chat.postMessage", channel=channel(site), text="x" * 40_001), "msg_too_long")


def a_scheduled_message_is_listed_and_taken_back(site: Site) -> None:
    """By id, channel, time and text; the second time it is not there."""
    word, at = fresh(), int(time.time()) + 7200
    said = write(site, "chat.scheduleMessage", channel=channel(site), text=word, post_at=at, metadata=mark(word))
    number = said["scheduled_message_id"]
    assert (said["channel"], said["post_at"]) == (channel(site), at), said
    (found,) = (item for item in waiting(site) if item["id"] == number)
    assert (found["channel_id"], found["post_at"], found["text"]) == (channel(site), at, word), found
    assert isinstance(found["date_created"], int), found
    key = {"channel": channel(site), "scheduled_message_id": number}
    assert write(site, "chat.deleteScheduledMessage", **key)["ok"]
    assert number not in [item["id"] for item in waiting(site)]
    refused(write(site, "chat.deleteScheduledMessage", **key), "invalid_scheduled_message_id")


def waiting(site: Site) -> list[Any]:
    return list(read(site, "chat.scheduledMessages.list", channel=channel(site), limit=200)["scheduled_messages"])


def a_scheduled_message_shows_no_mark(site: Site) -> None:
    """So two that look alike cannot be told apart."""
    word = fresh()
    at = int(time.time()) + 7200
    write(site, "chat.scheduleMessage", channel=channel(site), text=word, post_at=at, metadata=mark(word))
    (found,) = (item for item in waiting(site) if item["text"] == word)
    assert "metadata" not in found, found


def the_past_cannot_be_scheduled(site: Site) -> None:
    """`time_in_past`, `time_too_far`."""
    for at, code in ((1, "time_in_past"), (int(time.time()) + 200 * 86_400, "time_too_far")):
        refused(write(site, "chat.scheduleMessage", channel=channel(site), text="x", post_at=at), code)


def an_ephemeral_message_is_in_no_history(site: Site) -> None:
    """It says when it was made, and nothing else."""
    said = write(site, "chat.postEphemeral", channel=channel(site), user=maya(site), text=fresh())
    assert said["ok"], said
    assert shown(site, said["message_ts"]) == []


def an_ephemeral_message_needs_a_member(site: Site) -> None:
    """`user_not_found` or `user_not_in_channel`."""
    said = write(site, "chat.postEphemeral", channel=channel(site), user="U0NOBODY", text="x")
    assert said["ok"] is False, said
    assert said["error"] in {"user_not_found", "user_not_in_channel"}, said


def a_direct_channel_is_opened_once(site: Site) -> None:
    """Where notes go."""
    opened = {write(site, "conversations.open", users=maya(site))["channel"]["id"] for _ in range(2)}
    assert len(opened) == 1, opened
    refused(write(site, "conversations.open", users="U0NOBODY"), "user_not_found")


def an_upload_is_shown_in_the_channel(site: Site) -> None:
    """The file names the message that shows it."""
    name = f"{fresh()}-table.csv"
    (made,) = upload(site, name)["files"]
    info = read(site, "files.info", file=made["id"])["file"]
    assert (info["name"], info["title"]) == (name, "table"), info
    (share,) = info["shares"]["public"][channel(site)]
    (message,) = shown(site, share["ts"])
    assert [file["id"] for file in message["files"]] == [made["id"]], message


def an_upload_is_found_by_its_name(site: Site) -> None:
    """In the list of files, page by page."""
    name = f"{fresh()}-table.csv"
    (made,) = upload(site, name)["files"]
    listed = read(site, "files.list", ts_from=int(time.time()) - 300, count=200, page=1)
    assert listed["paging"]["pages"] == 1, listed["paging"]
    assert [file["id"] for file in listed["files"] if file["name"] == name] == [made["id"]]


def a_file_is_made_once(site: Site) -> None:
    """The second completion hears `file_not_found`: what a doubled delivery answers, and no refusal."""
    number = reserve(site, "table.csv", b"1;2")
    asked: dict[str, Any] = {"files": [{"id": number}], "channel_id": channel(site)}
    assert write(site, "files.completeUploadExternal", **asked)["ok"]
    refused(write(site, "files.completeUploadExternal", **asked), "file_not_found")


def what_was_not_completed_is_no_file(site: Site) -> None:
    """Reserving and sending bytes shows nobody anything."""
    number = reserve(site, f"{fresh()}.csv", b"1;2")
    refused(read(site, "files.info", file=number), "file_not_found")


def a_deleted_file_is_gone(site: Site) -> None:
    """From its id, from the message, and for a second delete."""
    (made,) = upload(site, "table.csv")["files"]
    assert write(site, "files.delete", file=made["id"])["ok"]
    said = read(site, "files.info", file=made["id"])
    assert said["error"] in {"file_not_found", "file_deleted"}, said
    again = write(site, "files.delete", file=made["id"])
    assert again["error"] in {"file_not_found", "file_deleted"}, again


BEHAVIOURS: tuple[Behaviour, ...] = (
    a_token_is_needed,
    a_wrong_token_is_refused,
    auth_test_says_who,
    a_method_that_is_not_there_is_named_unknown,
    a_post_shows_its_mark_in_the_answer,
    a_post_is_found_by_its_mark,
    the_mark_is_shown_only_when_asked_for,
    the_same_post_twice_is_two_messages,
    history_is_paged_from_the_newest,
    history_is_bounded_by_oldest_and_latest,
    a_reply_names_its_thread,
    a_reply_leads_back_to_its_root,
    a_root_says_who_has_replied,
    a_message_says_who_has_reacted,
    a_reply_to_nothing_is_refused,
    a_thread_that_is_not_there_is_named_so,
    a_broadcast_reply_is_marked_as_one,
    a_broadcast_reply_is_also_in_the_channel,
    an_update_sets_text_and_mark,
    an_update_without_metadata_keeps_it,
    an_update_with_empty_metadata_takes_it_away,
    a_delete_removes_and_the_second_finds_nothing,
    a_deleted_root_with_replies_leaves_a_tombstone,
    what_is_not_there_cannot_be_changed,
    a_text_that_is_too_long_is_refused,
    a_scheduled_message_is_listed_and_taken_back,
    a_scheduled_message_shows_no_mark,
    the_past_cannot_be_scheduled,
    an_ephemeral_message_is_in_no_history,
    an_ephemeral_message_needs_a_member,
    a_direct_channel_is_opened_once,
    an_upload_is_shown_in_the_channel,
    an_upload_is_found_by_its_name,
    a_file_is_made_once,
    what_was_not_completed_is_no_file,
    a_deleted_file_is_gone,
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "emulator",
        "a_wrong_token_is_refused",
        "any token stands for its first user; what a refused token means is tried on the loopback system",
    ),
    Difference(
        "emulator",
        "a_method_that_is_not_there_is_named_unknown",
        "a method it lacks is a 404 of its own; the adapter takes neither for a message",
    ),
    Difference(
        "emulator",
        "the_mark_is_shown_only_when_asked_for",
        "it shows metadata always; the adapter asks for it always, as Slack needs it",
    ),
    Difference(
        "emulator",
        "history_is_bounded_by_oldest_and_latest",
        "it ignores the bounds; the adapter picks by ts and mark on its own side, so it only reads more",
    ),
    Difference(
        "emulator",
        "a_reply_to_nothing_is_refused",
        "it accepts a reply to a thread that is not there; the adapter looks for the root before it sends",
    ),
    Difference(
        "emulator",
        "a_thread_that_is_not_there_is_named_so",
        "it shows an empty thread; the adapter reads both as: there is no such message",
    ),
    Difference(
        "emulator",
        "a_broadcast_reply_is_also_in_the_channel",
        "its history leaves broadcasts out; the adapter finds them in the thread, by subtype or by `reply_broadcast`",
    ),
    Difference(
        "emulator",
        "a_deleted_root_with_replies_leaves_a_tombstone",
        "the root is gone for good; the adapter reads a tombstone and nothing alike, and does not delete such a root",
    ),
    Difference(
        "emulator",
        "a_text_that_is_too_long_is_refused",
        "it cuts the text and warns; the adapter's arguments take no text that long",
    ),
)
