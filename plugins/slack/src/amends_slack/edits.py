"""`slack.update` and `slack.delete`: changes to a message that exists."""

from __future__ import annotations

import json
from collections.abc import Mapping

from amends.spi import Call, Capability, Done, Json, JsonMap, NotSent, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_slack import answers, contracts, posting, search
from amends_slack.arguments import DeleteArgs, UpdateArgs
from amends_slack.client import Slack
from amends_slack.marker import is_gone, marker_of, metadata
from amends_slack.places import place, reference, text_of


class Update(Capability):
    """A new text for a message. The former text, blocks and metadata are the before-image."""

    arguments = UpdateArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.update(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        args = UpdateArgs.model_validate(dict(question.args))
        message = _message(self._slack, question)
        if message is None:
            raise Refused(f"there is no message `{args.ts}` in channel `{args.channel}`", code="message_not_found")
        everyone = posting.mentions_everyone(args.text, json.dumps(args.blocks))
        return Prepared(before={**_image(message), "summary": "its former text"}, input={"mentions_everyone": everyone})

    def do(self, call: Call) -> Receipt:
        args = UpdateArgs.model_validate(dict(call.args))
        payload: JsonMap = {
            "metadata": metadata(call.marker),
            "channel": args.channel,
            "ts": args.ts,
            "text": args.text,
        }
        if args.blocks or call.before.get("blocks"):
            payload["blocks"] = list(args.blocks)
        answer = self._slack.write(call, "chat.update", payload)
        answers.about(answer, args.channel, args.ts)
        return Done(
            effect=posting.effect(args.channel, args.ts),
            reference=reference(args.channel, args.ts),
            output={"channel": args.channel, "ts": args.ts},
            after={"message": "updated", "content": posting.content_of(answer)},
        )

    def probe(self, question: Question) -> Observation:
        return self._compare(question)

    def undo(self, call: Call) -> Receipt:
        """Put the former text back, unless somebody has changed the message since."""
        now = self._compare(call)
        if now.seen == "inconclusive":
            raise NotSent(f"nothing was sent, because the look before it failed: {now.detail}", code="unreadable")
        if now.seen not in {"applied", "absent"}:
            raise Refused(f"the message is not as this run left it: {now.seen}", code="diverged")
        before = call.before
        channel, ts = text_of(call.args.get("channel")), text_of(call.args.get("ts"))
        payload: JsonMap = {
            "metadata": before.get("metadata") or {},
            "channel": channel,
            "ts": ts,
            "text": text_of(before.get("text")),
        }
        if before.get("blocks") or call.args.get("blocks"):
            payload["blocks"] = before.get("blocks") or []
        answers.about(self._slack.write(call, "chat.update", payload), channel, ts)
        return Done(reference=call.reference, after={"message": "before"})

    def place(self, question: Question) -> str:
        return _thread(question)

    def _compare(self, question: Question) -> Observation:
        try:
            message = _message(self._slack, question)
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        if message is None:
            return Observation(seen="diverged", state={"message": "gone"}, detail="the message is gone")
        args = question.args
        channel, ts = text_of(args.get("channel")), text_of(args.get("ts"))
        text, former = text_of(message.get("text")), text_of(question.before.get("text"))
        if posting.edited_since(message, question):
            return Observation(seen="diverged", state={"message": "edited"}, detail="somebody has edited it since")
        if marker_of(message) == question.marker or text == text_of(args.get("text")) != former:
            return Observation(
                seen="applied",
                state={"message": "updated", "content": posting.content_of(message)},
                effect=posting.effect(channel, ts),
                reference=reference(channel, ts),
            )
        if text == former:
            return Observation(seen="absent", state={"message": "before"}, reference=reference(channel, ts))
        return Observation(seen="diverged", state={"message": "edited"}, detail="another text stands there")


class Delete(Capability):
    """A message taken away for good."""

    arguments = DeleteArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.delete(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        gone = _message(self._slack, question) is None
        return Prepared(before={"message": "gone" if gone else "posted"})

    def do(self, call: Call) -> Receipt:
        args = DeleteArgs.model_validate(dict(call.args))
        return posting.delete(self._slack, call, args.channel, args.ts)

    def probe(self, question: Question) -> Observation:
        """`applied` means the message is gone, also where it was gone before."""
        channel, ts = text_of(question.args.get("channel")), text_of(question.args.get("ts"))
        try:
            message = _message(self._slack, question)
        except Unreadable as unreadable:
            return Observation(seen="inconclusive", detail=str(unreadable))
        if message is None:
            return Observation(
                seen="applied",
                state={"message": "gone"},
                effect=posting.effect(channel, ts),
                reference=reference(channel, ts),
            )
        return Observation(seen="absent", state={"message": "posted"}, reference=reference(channel, ts))

    def place(self, question: Question) -> str:
        """Whoever the site names hears of it; else the message's thread."""
        told = self._slack.options.removals_told
        return f"person:{told}" if told else _thread(question)


def _thread(question: Question) -> str:
    return place(text_of(question.args.get("channel")), text_of(question.args.get("ts")))


def _message(slack: Slack, question: Question) -> JsonMap | None:
    """The message the arguments name; None if it is gone. Raises `Unreadable`."""
    found = search.one(
        slack.reader(question),
        text_of(question.args.get("channel")),
        text_of(question.args.get("ts")),
    )
    return None if is_gone(found) else found


def _image(message: Mapping[str, Json]) -> JsonMap:
    image: JsonMap = {"text": text_of(message.get("text"))}
    for name in ("blocks", "metadata"):
        if message.get(name):
            image[name] = message[name]
    return image
