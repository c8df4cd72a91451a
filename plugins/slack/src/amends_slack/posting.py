"""What all messages have in common: how one is posted, found by its marker, and taken back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from amends.spi import Call, Done, Json, JsonMap, Observation, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import answers, search
from amends_slack.client import Slack
from amends_slack.marker import WITHDRAWN_TEXT, is_gone, is_withdrawn, marker_of, metadata
from amends_slack.places import known_ts, reference, text_of
from amends_slack.search import Listing, Read, moment, ts_of

_EVERYONE = re.compile(r"<!(channel|here|everyone)\b|\"type\":\s*\"broadcast\"")


def send(
    slack: Slack, call: Call, channel: str, text: str, *, blocks: Sequence[Json] = (), thread: str = ""
) -> Receipt:
    """Post one message with our marker first. Raises `Ambiguous` unless the answer shows that very message in the
    place that was asked: a reply at the top level, in another thread, or shown to the whole channel is not ours to
    call a success (case S-03).
    """
    payload: JsonMap = {"metadata": metadata(call.marker), "channel": channel, "text": text}
    if blocks:
        payload["blocks"] = list(blocks)
    if thread:
        payload["thread_ts"] = thread
    message = answers.posted(slack.write(call, "chat.postMessage", payload), call.marker, channel)
    ts = ts_of(message)
    if text_of(message.get("thread_ts")) not in ({thread} if thread else {"", ts}):
        raise Ambiguous("slack said ok but the message is in another thread", code="other_thread")
    if is_broadcast(message):
        raise Ambiguous("slack said ok but the whole channel was shown the reply", code="broadcast")
    return Done(
        effect=effect(channel, ts, thread),
        reference=reference(channel, ts),
        output={"channel": channel, "ts": ts},
        after={"message": "posted", "content": content_of(message)},
    )


def observe(listing: Listing, question: Question, channel: str) -> Observation:
    """What a listing says about our message: present is always accepted, absent only if every page was read."""
    ours = listing.marked(question.marker)
    live = [item for item in ours if not is_gone(item) and not is_withdrawn(item)]
    known = listing.at(known_ts(question, channel))
    if not live and known is not None and not is_gone(known) and not is_withdrawn(known):
        live = [known]
    if len(live) > 1:
        return _many(channel, live, listing, question)
    if live:
        return _found(channel, live[0], listing, question)
    if ours:
        return Observation(seen="absent", state={"message": "withdrawn"}, reference=reference(channel, ts_of(ours[0])))
    if not listing.complete:
        return Observation(seen="inconclusive", detail=listing.detail)
    return Observation(seen="absent", state={"message": "gone"})


def take_back(slack: Slack, call: Call, channel: str, *, had_blocks: bool = False) -> Receipt:
    """The rung's one request: delete the message, or replace its text by the withdrawal notice."""
    ts = known_ts(call, channel) or _observed_ts(call)
    if not ts:
        raise Refused("the message's ts is not known, so nothing can be taken back", code="ts_unknown")
    if call.rung == "delete":
        return delete(slack, call, channel, ts)
    payload: JsonMap = {
        "metadata": metadata(call.marker, withdrawn=True),
        "channel": channel,
        "ts": ts,
        "text": WITHDRAWN_TEXT,
    }
    if had_blocks:
        payload["blocks"] = []
    answers.about(slack.write(call, "chat.update", payload), channel, ts)
    return Done(effect=effect(channel, ts), reference=reference(channel, ts), after={"message": "withdrawn"})


def delete(slack: Slack, call: Call, channel: str, ts: str) -> Receipt:
    """Delete one message; one that is already gone is done too, and the separate read decides (case A-03)."""
    answers.about(slack.write(call, "chat.delete", {"channel": channel, "ts": ts}), channel, ts)
    return Done(effect=effect(channel, ts), reference=reference(channel, ts), after={"message": "gone"})


def verify_taken_back(read: Read, question: Question, channel: str) -> Observation | None:
    """A separate read of the very message; None if its ts is not known and the probe must look for the marker."""
    ts = known_ts(question, channel)
    if not ts:
        return None
    try:
        message = search.one(read, channel, ts)
    except Unreadable as unreadable:
        return Observation(seen="inconclusive", detail=str(unreadable))
    if message is None or is_gone(message):
        return Observation(seen="absent", state={"message": "gone"}, reference=reference(channel, ts))
    if is_withdrawn(message) and marker_of(message) == question.marker:
        return Observation(seen="absent", state={"message": "withdrawn"}, reference=reference(channel, ts))
    return _found(channel, message, Listing((), complete=True), question)


def root_of(read: Read, channel: str, ts: str) -> str:
    """The root of the thread that `ts` stands in: replies to a reply would leave the thread (case S-03).

    Raises `Refused` if there is no such message, `Unreadable` if that cannot be told.
    """
    listing = search.replies(read, channel, ts)
    message = listing.at(ts)
    if message is not None:
        return text_of(message.get("thread_ts")) or ts
    if listing.complete or listing.code in {"thread_not_found", "message_not_found"}:
        raise Refused(f"there is no message `{ts}` in channel `{channel}`", code="thread_not_found")
    raise Unreadable(listing.detail, code=listing.code)


def is_broadcast(message: Mapping[str, Json]) -> bool:
    """True if a reply was also shown at the top level of its channel."""
    return message.get("subtype") == "thread_broadcast" or message.get("reply_broadcast") is True


def mentions_everyone(text: str, blocks: str = "") -> bool:
    """True if the message would notify a whole channel or workspace: policy input."""
    return bool(_EVERYONE.search(text) or _EVERYONE.search(blocks))


def content_of(message: Mapping[str, Json]) -> str:
    """A short digest of the text as Slack shows it, which is not as it was sent: what a later edit is told by."""
    return hashlib.sha256(text_of(message.get("text")).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def edited_since(message: Mapping[str, Json], question: Question) -> bool:
    """True if the message bears our marker and yet another text than the one recorded when it was found there."""
    recorded = question.after.get("content")
    return bool(recorded) and marker_of(message) == question.marker and content_of(message) != recorded


def effect(channel: str, ts: str, thread: str = "") -> JsonMap:
    """A message as it is recorded."""
    found: JsonMap = {"channel": channel, "ts": ts}
    if thread and thread != ts:
        found["thread_ts"] = thread
    return found


def _found(channel: str, message: JsonMap, listing: Listing, question: Question) -> Observation:
    ts = ts_of(message)
    edited = edited_since(message, question)
    return Observation(
        seen="diverged" if edited else "applied",
        state={"message": "edited"} if edited else _posted(message, listing),
        effect=effect(channel, ts, text_of(message.get("thread_ts"))),
        reference=reference(channel, ts),
        detail="somebody has edited it since" if edited else listing.detail,
    )


def _many(channel: str, live: Sequence[JsonMap], listing: Listing, question: Question) -> Observation:
    refs = {reference(channel, ts_of(item)): item for item in live}
    kept = question.reference if question.reference in refs else next(iter(refs))
    return Observation(
        seen="many",
        state=_posted(refs[kept], listing),
        effect=effect(channel, kept.partition("/")[2], text_of(refs[kept].get("thread_ts"))),
        reference=kept,
        twins=tuple(refs),
        detail=listing.detail,
    )


def _posted(message: JsonMap, listing: Listing) -> JsonMap:
    """The state that rungs are chosen by: whether somebody has answered, and so has read it; and what it says."""
    author, ts = message.get("user"), ts_of(message)
    root = text_of(message.get("thread_ts")) or ts
    repliers = message.get("reply_users")
    if isinstance(repliers, list) and root == ts:
        replied = any(user != author for user in repliers)
    else:
        replied = root == ts and bool(message.get("reply_count"))
    later = (item for item in listing.items if item.get("thread_ts") == root and moment(ts_of(item)) > moment(ts))
    replied = replied or any(item.get("user") != author for item in later)
    answered = "replies" if replied else "reactions" if message.get("reactions") else "no"
    return {"message": "posted", "answered": answered, "content": content_of(message)}


def _observed_ts(call: Call) -> str:
    return call.observed.reference.partition("/")[2] if call.observed is not None else ""
