"""`slack.ephemeral`: a message that one person sees, in a channel and until they reload.

It is in no history, so nothing can find it again: an answer that does not come leaves it to a person.
"""

from __future__ import annotations

from amends.spi import Call, Capability, Done, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous
from amends_slack import contracts, posting
from amends_slack.arguments import EphemeralArgs
from amends_slack.client import Slack
from amends_slack.places import reference
from amends_slack.search import moment


class Ephemeral(Capability):
    """One message to one person whom the `people` option names: a correction can reach only those."""

    arguments = EphemeralArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.ephemeral(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        """Resolve the person. Raises `Refused` for a name nobody mapped."""
        args = EphemeralArgs.model_validate(dict(question.args))
        return Prepared(allocated={"user": self._user(args)})

    def do(self, call: Call) -> Receipt:
        args = EphemeralArgs.model_validate(dict(call.args))
        payload: JsonMap = {"channel": args.channel, "user": self._user(args), "text": args.text}
        answer = self._slack.write(call, "chat.postEphemeral", payload)
        ts = answer.get("message_ts")
        if not isinstance(ts, str) or not self._made_now(call, ts):
            raise Ambiguous("slack said ok but gave no message of this moment", code="no_ts")
        return Done(
            effect=posting.effect(args.channel, ts),
            reference=reference(args.channel, ts),
            output={"channel": args.channel, "ts": ts},
            after={"message": "shown"},
        )

    def probe(self, question: Question) -> Observation:
        """Nobody can tell: no listing shows it."""
        del question
        return Observation(seen="inconclusive", detail="an ephemeral message is in no history")

    def place(self, question: Question) -> str:
        return f"person:{question.args.get('person')}"

    def _made_now(self, call: Call, ts: str) -> bool:
        """An answer that names no message but this: its ts must not be older than the send, as an answer that a
        gateway repeats would be.
        """
        sent = (call.sent_at_us or 0) / 1_000_000
        return float(moment(ts)) >= sent - self._slack.options.clock_margin_seconds

    def _user(self, args: EphemeralArgs) -> str:
        user = self._slack.options.people.get(args.person)
        if user is None:
            raise Refused(f"nobody mapped `{args.person}` to a Slack user in `people`", code="person_unknown")
        return user
