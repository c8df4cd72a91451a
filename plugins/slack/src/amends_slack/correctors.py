"""The correctors: `slack:{channel}/{ts}` is answered in that very thread, `person:{name}` in a direct message."""

from __future__ import annotations

import html

from amends.spi import Call, CorrectionArgs, Corrector, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_slack import contracts, posting, search
from amends_slack.client import Slack, look_before_sending
from amends_slack.messages import look_in_thread
from amends_slack.places import known_ts, parse_person, parse_place, text_of


class ThreadCorrection(Corrector):
    """Replies in the thread of a message, or nowhere: an unknown ts is refused (case S-03)."""

    scheme = "slack"

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.correction(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        """Resolve the thread's root. Raises `Refused` if the place names no thread or the message is not there."""
        channel, root = self._thread(question)
        return Prepared(allocated={"channel": channel, "root_ts": root})

    def do(self, call: Call) -> Receipt:
        with look_before_sending():
            channel, root = self._thread(call)
        return posting.send(self._slack, call, channel, _plain(_args(call).text), thread=root)

    def probe(self, question: Question) -> Observation:
        """Look in the very thread; if its root cannot be told any more, neither can this."""
        try:
            channel, root = self._thread(question)
        except (Unreadable, Refused) as unknown:
            return Observation(seen="inconclusive", detail=str(unknown))
        margin = self._slack.options.clock_margin_seconds
        return look_in_thread(self._slack.reader(question), question, channel, root, margin)

    def place(self, question: Question) -> str:
        return _args(question).place

    def _thread(self, question: Question) -> tuple[str, str]:
        """Channel and root of the thread, as found before or by a read now. Raises `Refused` or `Unreadable`."""
        channel, ts = parse_place(_args(question).place)
        known = text_of(question.allocated.get("root_ts")) or text_of(question.effect.get("thread_ts"))
        return channel, known or posting.root_of(self._slack.reader(question), channel, ts)


class PersonNote(Corrector):
    """Writes to a person whom the `people` option maps to a Slack user id."""

    scheme = "person"

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.note(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        """Open the conversation, which the person does not see. Raises `Refused` for a name nobody mapped."""
        return Prepared(allocated={"channel": self._channel(question)})

    def do(self, call: Call) -> Receipt:
        with look_before_sending():
            channel = self._channel(call)
        return posting.send(self._slack, call, channel, _plain(_args(call).text))

    def probe(self, question: Question) -> Observation:
        try:
            channel = self._channel(question)
        except (Unreadable, Refused) as unknown:
            return Observation(seen="inconclusive", detail=str(unknown))
        margin = self._slack.options.clock_margin_seconds
        start = search.window_start(question, margin, known_ts(question, channel))
        return posting.observe(search.history(self._slack.reader(question), channel, start), question, channel)

    def place(self, question: Question) -> str:
        return _args(question).place

    def _channel(self, question: Question) -> str:
        known = text_of(question.allocated.get("channel")) or text_of(question.effect.get("channel"))
        if known:
            return known
        name = parse_person(_args(question).place)
        user = self._slack.options.people.get(name)
        if user is None:
            raise Refused(f"nobody mapped `{name}` to a Slack user in `people`", code="person_unknown")
        return self._slack.open_conversation(question, user)


def _args(question: Question) -> CorrectionArgs:
    return CorrectionArgs.model_validate(dict(question.args))


def _plain(text: str) -> str:
    """The text with Slack's control characters escaped: a correction mentions and links nobody by accident."""
    return html.escape(text, quote=False)
