"""One Slack workspace over HTTP: a mutating call is one POST on a fresh connection; reads are GETs.

The sender is shared by all capabilities of an adapter instance and holds no connection; nothing here retries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from amends.spi import Call, JsonMap, NotSent, Question
from amends.spi.http import HttpRequest, HttpSender, Unreadable
from amends_slack import answers
from amends_slack.options import SlackOptions


class Slack:
    """Speaks Web API methods. The token is resolved for each request and never kept (rule 10)."""

    def __init__(self, options: SlackOptions, sender: HttpSender) -> None:
        self.options = options
        self._sender = sender

    def write(self, call: Call, method: str, payload: JsonMap) -> JsonMap:
        """Make the mutating request. Raises `NotSent`, `Refused` or `Ambiguous`; returns `ok: true` only."""
        request = HttpRequest("POST", self.options.url(method), headers=self._headers(call), json=payload)
        answer = self._sender.send(call, request, own_statuses=())
        return answers.accepted(answer.value(), answer.retry_after_seconds())

    def read(self, question: Question, method: str, query: Mapping[str, str]) -> JsonMap:
        """Read. Raises only `Unreadable`, whose `code` is Slack's own word where there was one."""
        request = HttpRequest(
            "GET", self.options.url(method), query=tuple(query.items()), headers=self._headers(question)
        )
        answer = self._sender.read(question, request, own_statuses=())
        return answers.readable(answer.value())

    def reader(self, question: Question) -> Callable[[str, Mapping[str, str]], JsonMap]:
        """`read`, bound to a question: what the search functions take."""
        return lambda method, query: self.read(question, method, query)

    def open_conversation(self, question: Question, user: str) -> str:
        """The id of the direct-message channel with `user`. Idempotent, unseen by them. Raises `Unreadable`."""
        request = HttpRequest(
            "POST",
            self.options.url("conversations.open"),
            headers=self._headers(question),
            json={"users": user},
        )
        answer = answers.readable(self._sender.read(question, request, own_statuses=()).value())
        channel = answer.get("channel")
        found = channel.get("id") if isinstance(channel, dict) else None
        return answers.required_text(found, "conversations.open gave no channel id")

    def _headers(self, question: Question) -> dict[str, str]:
        return {"Authorization": f"Bearer {question.secret(self.options.token)}"}


@contextmanager
def look_before_sending() -> Generator[None, None, None]:
    """Reads that come before the mutating request of a call: if one fails, nothing has been sent. Raises `NotSent`."""
    try:
        yield
    except Unreadable as unreadable:
        raise NotSent(
            f"nothing was sent, because the look before it failed: {unreadable}", code=unreadable.code
        ) from None
