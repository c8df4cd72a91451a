"""`slack.schedule`: a message that Slack posts later; it can be taken back until it fires."""

from __future__ import annotations

import html
from collections.abc import Sequence

from amends.spi import Call, Capability, Done, Json, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import contracts, posting, search
from amends_slack.arguments import ScheduleArgs
from amends_slack.client import Slack
from amends_slack.marker import is_gone, marker_of, metadata
from amends_slack.places import place, reference, text_of
from amends_slack.search import Listing

TWIN_SECONDS = 10


class Schedule(Capability):
    """One scheduled message."""

    arguments = ScheduleArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.schedule(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        """Note which messages wait already: a lookalike of them is not ours."""
        args = ScheduleArgs.model_validate(dict(question.args))
        waiting = search.scheduled(self._slack.reader(question), args.channel)
        if not waiting.complete:
            raise Unreadable(waiting.detail, code=waiting.code)
        known: list[Json] = [text_of(item.get("id")) for item in waiting.items]
        return Prepared(
            before={"scheduled": "none"},
            allocated={"known_ids": known},
            input={"mentions_everyone": posting.mentions_everyone(args.text)},
        )

    def do(self, call: Call) -> Receipt:
        args = ScheduleArgs.model_validate(dict(call.args))
        earliest = call.deadline_us / 1_000_000 + self._slack.options.schedule_lead_seconds
        if args.post_at < earliest:
            lead = self._slack.options.schedule_lead_seconds
            raise Refused(f"it would fire less than {lead:g} s from now and could not be taken back", code="too_soon")
        payload: JsonMap = {
            "metadata": metadata(call.marker),
            "channel": args.channel,
            "text": args.text,
            "post_at": args.post_at,
        }
        answer = self._slack.write(call, "chat.scheduleMessage", payload)
        number = text_of(answer.get("scheduled_message_id"))
        if not number or answer.get("channel") != args.channel or answer.get("post_at") != args.post_at:
            raise Ambiguous("slack said ok but gave no scheduled message of this channel and time", code="no_id")
        return Done(
            effect=_effect(args.channel, number, args.post_at),
            reference=f"{args.channel}/{number}",
            output={"channel": args.channel, "scheduled_message_id": number},
            after={"scheduled": "pending"},
        )

    def probe(self, question: Question) -> Observation:
        """Pending by id, else by marker or content; fired by marker in the channel."""
        args = ScheduleArgs.model_validate(dict(question.args))
        read = self._slack.reader(question)
        waiting = search.scheduled(read, args.channel)
        ours = _ours(waiting, question, args)
        if len(ours) > 1:
            return Observation(seen="inconclusive", detail=f"{len(ours)} scheduled messages look like ours")
        if ours:
            number = text_of(ours[0].get("id"))
            return Observation(
                seen="applied",
                state={"scheduled": "pending"},
                effect=_effect(args.channel, number, args.post_at),
                reference=f"{args.channel}/{number}",
            )
        start = search.window_start(question, self._slack.options.clock_margin_seconds)
        fired = search.history(read, args.channel, start)
        posted = [item for item in fired.marked(question.marker) if not is_gone(item)]
        if posted:
            return _fired(posted, question, args.channel)
        if not waiting.complete or not fired.complete:
            return Observation(seen="inconclusive", detail=waiting.detail or fired.detail)
        return Observation(seen="absent", state={"scheduled": "none"})

    def place(self, question: Question) -> str:
        """Where it stands once it has fired; nowhere before."""
        return place(text_of(question.args.get("channel")), text_of(question.effect.get("ts")))

    def undo(self, call: Call) -> Receipt:
        """Take the pending message back. If it is no longer pending, the read that follows tells fired from gone."""
        channel = text_of(call.args.get("channel"))
        known = call.reference or (call.observed.reference if call.observed is not None else "")
        where, _, number = known.partition("/")
        if not number or where != channel:
            raise Refused("the scheduled message's id is not known", code="id_unknown")
        self._slack.write(call, "chat.deleteScheduledMessage", {"channel": channel, "scheduled_message_id": number})
        return Done(reference=known, after={"scheduled": "none"})


def _fired(posted: Sequence[JsonMap], question: Question, channel: str) -> Observation:
    """It stands in the channel now: the first message that bears our mark, and its twins."""
    refs = [reference(channel, search.ts_of(item)) for item in posted]
    return Observation(
        seen="many" if len(refs) > 1 else "applied",
        state={"scheduled": "fired"},
        effect={**question.effect, **posting.effect(channel, search.ts_of(posted[0]))},
        reference=question.reference or refs[0],
        twins=tuple(refs) if len(refs) > 1 else (),
    )


def _ours(waiting: Listing, question: Question, args: ScheduleArgs) -> list[JsonMap]:
    """What waits and is ours: by id, with whatever was made like it at the same moment; else by mark or content."""
    marked = [item for item in waiting.items if marker_of(item) == question.marker]
    if marked:
        return marked
    seen_before = question.allocated.get("known_ids")
    known = seen_before if isinstance(seen_before, list) else []
    alike = [
        item
        for item in waiting.items
        if item.get("id") not in known
        and item.get("post_at") == args.post_at
        and html.unescape(text_of(item.get("text"))) == html.unescape(args.text)
    ]
    number = question.reference.partition("/")[2]
    named = [item for item in waiting.items if number and item.get("id") == number]
    if named:
        twins = [item for item in alike if item not in named and _together(item, named[0])]
        return [*named, *twins]
    return [] if number else alike


def _together(one: JsonMap, other: JsonMap) -> bool:
    """True if both were made within seconds: one request that was carried out twice."""
    made = [item.get("date_created") for item in (one, other)]
    first, second = (value if isinstance(value, int) else 0 for value in made)
    return abs(first - second) <= TWIN_SECONDS


def _effect(channel: str, number: str, post_at: int) -> JsonMap:
    return {"channel": channel, "scheduled_message_id": number, "post_at": post_at}
