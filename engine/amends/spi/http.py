"""How every HTTP adapter sends: the one module that owns httpx2 (imported when the first request leaves).

Each call gets a fresh connection, is written at most once, follows no redirect and ends at its own deadline, however
slowly the other side trickles. `still_wanted` is asked immediately before the first byte (rule 3). What went wrong is
classified by the innermost cause and by whether the first byte was written, never by the library's outer class:

    not written: name not resolved, refused, unreachable, TLS handshake, no longer wanted   -> NotSent
    written: time-out, closed, reset, body cut short, too large                              -> Ambiguous

Proxy variables, netrc and cookies are not looked at: credentials come from the adapter's secrets only.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from amends.spi.answers import (
    Ambiguous,
    HttpAnswer,
    HttpRequest,
    Unreadable,
    judge,
    judge_read,
    scrub,
    split_url,
)
from amends.spi.capability import Call, NotSent, Question

if TYPE_CHECKING:
    import httpx2

__all__ = ["Ambiguous", "HttpAnswer", "HttpRequest", "HttpSender", "Unreadable", "judge", "judge_read", "scrub"]

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}


class HttpSender:
    """Sends for one adapter instance. Holds no connection and no state but its TLS settings; thread-safe.

    `connect_seconds` bounds the connection within the call's own time-out; `max_bytes` the answer's body.
    """

    def __init__(
        self,
        *,
        ca_file: str = "",
        proxy: str = "",
        user_agent: str = "amends",
        max_bytes: int = 5_000_000,
        connect_seconds: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ca_file = ca_file
        self._proxy = proxy
        self._agent = user_agent
        self._max_bytes = max_bytes
        self._connect_seconds = connect_seconds
        self._monotonic = monotonic
        self._tls: ssl.SSLContext | None = None

    def send(self, call: Call, request: HttpRequest, own_statuses: Collection[int] = frozenset({409})) -> HttpAnswer:
        """Make the one mutating request of `call` and judge the answer (`answers.judge`).

        Raises `NotSent`, `Refused` or `Ambiguous`; returns 2xx with a readable body, and `own_statuses` as they are.
        """
        answer = self.deliver(request, timeout_seconds=call.timeout_seconds, still_wanted=call.still_wanted)
        return judge(answer, own_statuses)

    def read(
        self, question: Question, request: HttpRequest, own_statuses: Collection[int] = frozenset({404, 410})
    ) -> HttpAnswer:
        """Make one reading request. Raises only `Unreadable`; returns 2xx and `own_statuses`."""
        try:
            answer = self.deliver(request, timeout_seconds=question.timeout_seconds)
        except (NotSent, Ambiguous) as lost:
            raise Unreadable(str(lost), code=lost.code) from None
        return judge_read(answer, own_statuses)

    def deliver(
        self, request: HttpRequest, *, timeout_seconds: float, still_wanted: Callable[[], bool] = lambda: True
    ) -> HttpAnswer:
        """Send once and return whatever complete answer came, unjudged. Raises `NotSent` or `Ambiguous`."""
        flight = _Flight(request, still_wanted, self._monotonic, self._monotonic() + timeout_seconds)
        transport, wire = self._ready(request, flight, timeout_seconds)
        with flight.watched(timeout_seconds), transport:
            try:
                response = transport.handle_request(wire)
                content = self._content(response, request)
            except (NotSent, Ambiguous):
                raise
            except Exception as error:  # noqa: BLE001 - every failure of the line is classified, none passes raw
                raise flight.verdict(error) from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpAnswer(response.status_code, headers, content, request)

    def _ready(
        self, request: HttpRequest, flight: _Flight, timeout_seconds: float
    ) -> tuple[httpx2.HTTPTransport, httpx2.Request]:
        """Everything that can fail before a socket exists: whatever it raises, nothing was sent."""
        _refuse_parts_in_url(request)
        try:
            return self._transport(request), self._wire(request, flight, timeout_seconds)
        except Exception as error:  # noqa: BLE001 - same
            raise NotSent(f"{request.name} cannot be written: {type(error).__name__}", code="invalid_request") from None

    def _wire(self, request: HttpRequest, flight: _Flight, timeout_seconds: float) -> httpx2.Request:
        import httpx2  # noqa: PLC0415 - an engine without HTTP adapters never loads it

        connect = min(self._connect_seconds, timeout_seconds)
        timeout = {"connect": connect, "read": timeout_seconds, "write": timeout_seconds, "pool": timeout_seconds}
        content, kind = _content_of(request)
        return httpx2.Request(
            request.method,
            request.url,
            params=list(request.query) or None,
            headers={**_HEADERS, "User-Agent": self._agent, **kind, **request.headers},
            content=content,
            extensions={"timeout": timeout, "trace": flight.heard},
        )

    def _transport(self, request: HttpRequest) -> httpx2.HTTPTransport:
        """A transport of its own for each request: no pool, so no connection that has gone stale."""
        import httpx2  # noqa: PLC0415 - same

        tls = (
            self._tls_context() if request.url.lower().startswith("https") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        return httpx2.HTTPTransport(verify=tls, trust_env=False, http2=False, retries=0, proxy=self._proxy or None)

    def _tls_context(self) -> ssl.SSLContext:
        import httpx2  # noqa: PLC0415 - same

        if self._tls is None:
            custom = ssl.create_default_context(cafile=self._ca_file) if self._ca_file else None
            self._tls = custom or httpx2.create_ssl_context()
        return self._tls

    def _content(self, response: httpx2.Response, request: HttpRequest) -> bytes:
        chunks: list[bytes] = []
        size = 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > self._max_bytes:
                raise Ambiguous(
                    f"{request.name} answered {response.status_code} with more than {self._max_bytes} bytes",
                    code="too_large",
                    status=response.status_code,
                )
            chunks.append(chunk)
        return b"".join(chunks)


class _Flight:
    """What has happened to one request so far: heard from the library's trace, ended by a watchdog at the deadline."""

    def __init__(
        self, request: HttpRequest, still_wanted: Callable[[], bool], monotonic: Callable[[], float], deadline: float
    ) -> None:
        self._request = request
        self._still_wanted = still_wanted
        self._monotonic = monotonic
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self._stage = "connect"
        self._written = False
        self._headers_written = False
        self._answering = False
        self._expired = False

    def heard(self, event: str, info: Mapping[str, Any]) -> None:
        """The library's trace. Raises `NotSent` at the last moment at which nothing has been written."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")
        elif event == "connection.start_tls.started":
            self._stage = "tls"
        elif event == "http11.send_request_headers.started" and info["request"].method != b"CONNECT":
            self._last_check()
            self._written = True
        elif event == "http11.send_request_headers.complete":
            self._headers_written = self._written
        elif event == "http11.receive_response_headers.complete":
            self._answering = True

    @contextlib.contextmanager
    def watched(self, seconds: float) -> Generator[None]:
        """Cut the line at the deadline: the library's time-outs start anew with every byte that trickles in."""
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def verdict(self, error: Exception) -> NotSent | Ambiguous:
        """What a failure of the line proves."""
        cause = _innermost(error)
        outer = type(error).__name__
        if not self._written or (outer == "LocalProtocolError" and not self._headers_written):
            code = self._unsent_code(cause, outer)
            return NotSent(f"{self._request.name} was not sent: {_said(code, cause, self._request)}", code=code)
        code = self._unknown_code(cause, outer)
        return Ambiguous(
            f"{self._request.name} was sent, and its outcome is unknown: {_said(code, cause, self._request)}", code=code
        )

    def _last_check(self) -> None:
        if self._monotonic() >= self._deadline:
            raise NotSent(f"{self._request.name} was not sent: its deadline had passed", code="deadline")
        if not self._still_wanted():
            raise NotSent(f"{self._request.name} was not sent: it is no longer wanted", code="not_wanted")

    def _cut(self) -> None:
        self._expired = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # Unbound: SSLSocket.shutdown would drop the TLS state under the reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _unsent_code(self, cause: BaseException, outer: str) -> str:
        if outer in {"LocalProtocolError", "UnsupportedProtocol"}:
            return "invalid_request"
        if outer == "ProxyError":
            return "proxy_failed"
        if isinstance(cause, socket.gaierror):
            return "dns_failed"
        if isinstance(cause, ConnectionRefusedError):
            return "connect_refused"
        if self._stage == "tls":
            return "tls_failed"
        return "connect_timeout" if self._expired or isinstance(cause, TimeoutError) else "connect_failed"

    def _unknown_code(self, cause: BaseException, outer: str) -> str:
        if self._expired or isinstance(cause, TimeoutError):
            return "timeout"
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "reset"
        if outer == "DecodingError":
            return "undecodable"
        if self._answering:
            return "cut_body"
        return "closed" if outer == "RemoteProtocolError" else "transport"


def _content_of(request: HttpRequest) -> tuple[bytes | None, dict[str, str]]:
    """The body's bytes and its type."""
    if request.form is not None:
        return urlencode(request.form).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
    if request.json is not None:
        return json.dumps(request.json, allow_nan=False).encode(), {"Content-Type": "application/json"}
    if request.content is not None:
        return request.content, {"Content-Type": "application/octet-stream"}
    return None, {}


def _refuse_parts_in_url(request: HttpRequest) -> None:
    parts = split_url(request.url)
    if "@" in parts.netloc or parts.query:
        raise NotSent(
            f"{request.name} cannot be written: credentials go into headers and parameters into `query`, not the URL",
            code="invalid_request",
        )


def _innermost(error: BaseException) -> BaseException:
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error.__context__ or error
    return error


def _said(code: str, cause: BaseException, request: HttpRequest) -> str:
    """The cause in words. A protocol error's own text may quote a header, so only its class is told."""
    if code == "invalid_request":
        return type(cause).__name__
    return scrub(f"{type(cause).__name__}: {cause}", request.hidden())[:200]
