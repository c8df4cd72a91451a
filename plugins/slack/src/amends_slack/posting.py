"""What all messages have in common: how one is posted, found by its marker, and taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amends.spi import Call, Done, Json, JsonMap, Observation, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import answers, search
from amends_slack.client import Slack
from amends_slack.marker import WITHDRAWN_TEXT, is_gone, is_withdrawn, marker_of, metadata
from amends_slack.places import known_ts, reference, text_of
from amends_slack.search import Listing, Read, ts_of

_EVERYONE = re.compile(r"<!(channel|here|everyone)\b|\"type\":\s*\"broadcast\"")


def send(
    slack: Slack, call: Call, channel: str, text: str, *, blocks: Sequence[Json] = (), thread: str = ""
) -> Receipt:
    """Post one message with our marker first. Raises `Ambiguous` if the answer shows it elsewhere than asked."""
    payload: JsonMap = {"metadata": metadata(call.marker), "channel": channel, "text": text}
    if blocks:
        payload["blocks"] = list(blocks)
    if thread:
        payload["thread_ts"] = thread
    answer = slack.write(call, "chat.postMessage", payload)
    ts = answers.posted_ts(answer, channel)
    if answers.thread_of(answer) not in ({thread} if thread else {"", ts}):
        raise Ambiguous("slack said ok but the message is in another thread", code="other_thread")
    return Done(
        effect=effect(channel, ts, thread),
        reference=reference(channel, ts),
        output={"channel": channel, "ts": ts},
        after={"message": "posted"},
    )


def observe(listing: Listing, question: Question, channel: str) -> Observation:
    """What a listing says about our message: present is always accepted, absent only if every page was read."""
    ours = listing.marked(question.marker)
    live = [item for item in ours if not is_gone(item) and not is_withdrawn(item)]
    known = listing.at(known_ts(question, channel))
    if not live and known is not None and not is_gone(known) and not is_withdrawn(known):
        live = [known]
    if len(live) > 1:
        refs = {reference(channel, ts_of(item)): item for item in live}
        kept = question.reference if question.reference in refs else next(iter(refs))
        return Observation(
            seen="many",
            state={"message": "posted"},
            effect=effect(channel, kept.partition("/")[2], text_of(refs[kept].get("thread_ts"))),
            reference=kept,
            twins=tuple(refs),
            detail=listing.detail,
        )
    if live:
        return _found(channel, live[0], listing.detail)
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
    slack.write(call, "chat.update", payload)
    return Done(effect=effect(channel, ts), reference=reference(channel, ts), after={"message": "withdrawn"})


def delete(slack: Slack, call: Call, channel: str, ts: str) -> Receipt:
    """Delete one message; one that is already gone is done too, and the separate read decides (case A-03)."""
    try:
        slack.write(call, "chat.delete", {"channel": channel, "ts": ts})
    except Refused as refused:
        if refused.code != "message_not_found":
            raise
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
    return _found(channel, message, "")


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


def mentions_everyone(text: str, blocks: str = "") -> bool:
    """True if the message would notify a whole channel or workspace: policy input."""
    return bool(_EVERYONE.search(text) or _EVERYONE.search(blocks))


def effect(channel: str, ts: str, thread: str = "") -> JsonMap:
    """A message as it is recorded."""
    found: JsonMap = {"channel": channel, "ts": ts}
    if thread and thread != ts:
        found["thread_ts"] = thread
    return found


def _found(channel: str, message: JsonMap, detail: str) -> Observation:
    ts = ts_of(message)
    return Observation(
        seen="applied",
        state={"message": "posted"},
        effect=effect(channel, ts, text_of(message.get("thread_ts"))),
        reference=reference(channel, ts),
        detail=detail,
    )


def _observed_ts(call: Call) -> str:
    return call.observed.reference.partition("/")[2] if call.observed is not None else ""
