"""One Slack workspace over HTTP: a mutating call is one POST with a JSON body, a read is a POST with a form.

Slack takes every method by POST, and some of those that read take nothing but a form. The sender is shared by all
capabilities of an adapter instance and holds no connection; nothing here retries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from amends.spi import Call, JsonMap, NotSent, Question
from amends.spi.http import Ambiguous, HttpRequest, HttpSender, Unreadable
from amends_slack import answers
from amends_slack.options import SlackOptions


class Slack:
    """Speaks Web API methods. The token is resolved for each request and never kept (rule 10)."""

    def __init__(self, options: SlackOptions, sender: HttpSender) -> None:
        self.options = options
        self._sender = sender

    def write(self, call: Call, method: str, payload: JsonMap) -> JsonMap:
        """Make the mutating request. Returns as `answers.accepted` does; raises `NotSent`, `Refused` or `Ambiguous`."""
        request = HttpRequest("POST", self.options.url(method), headers=self._headers(call), json=payload)
        answer = self._sender.send(call, request, own_statuses=())
        return answers.accepted(method, answer.value(), answer.retry_after_seconds())

    def read(self, question: Question, method: str, query: Mapping[str, str]) -> JsonMap:
        """Read. Raises only `Unreadable`, whose `code` is Slack's own word where there was one."""
        request = HttpRequest("POST", self.options.url(method), headers=self._headers(question), form=query)
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

    def reserve(self, call: Call, method: str, form: Mapping[str, str]) -> JsonMap:
        """A request that changes nothing people see, made before the mutating one of `call`.

        Raises `NotSent` if it failed, `Refused` if Slack says no: either way nothing has been done.
        """
        request = HttpRequest("POST", self.options.url(method), headers=self._headers(call), form=form)
        try:
            answer = self._sender.send(call, request, own_statuses=())
            return answers.accepted(method, answer.value(), answer.retry_after_seconds())
        except Ambiguous as lost:
            raise NotSent(f"nothing was done, because `{method}` before it failed: {lost}", code=lost.code) from None

    def put(self, call: Call, url: str, content: bytes) -> None:
        """Send the bytes of a file to the address that Slack gave for them; nobody sees them yet. Raises `NotSent`.

        The address is itself a credential: it stands in no text, and our token does not go there.
        """
        parts = urlsplit(url)
        if parts.scheme != urlsplit(self.options.base_url).scheme:
            raise NotSent("nothing was sent: slack gave no address to upload to", code="not_slack")
        request = HttpRequest(
            "POST",
            urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
            content=content,
            label="the upload address",
            secrets=(url, parts.path, parts.query),
        )
        try:
            answer = self._sender.deliver(request, timeout_seconds=call.timeout_seconds, still_wanted=call.still_wanted)
        except Ambiguous as lost:
            raise NotSent(f"nothing was done, because the upload failed: {lost}", code=lost.code) from None
        if not answer.ok:
            raise NotSent(
                f"nothing was done, because the upload was answered {answer.status}", code=f"http_{answer.status}"
            )

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
