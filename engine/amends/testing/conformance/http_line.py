"""`HttpLine`: a small reverse proxy that passes every request on, and goes wrong where it was told to.

Faults that need the effect commit upstream first and only then spoil the answer, so what the adapter meets is what a
broken network or a gateway does to it. Bodies are passed on whole; chunked requests and `Expect` are understood.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias, cast
from urllib.parse import urlsplit

from amends.core.evidence import Observation
from amends.spi import Call, Question, Receipt
from amends.testing.conformance.armed import Armed
from amends.testing.conformance.line import CUTS, Cut, Exchange, Fault, FaultKind

Writes: TypeAlias = Callable[[Exchange], bool]

GATEWAY_PAGE = b"<html><head><title>Gateway</title></head><body>The page you asked for</body></html>"
_MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "expect"})
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_UPSTREAM_SECONDS = 30.0
_SILENCE_SECONDS = 60.0
_POLL_SECONDS = 0.02


def changes(exchange: Exchange) -> bool:
    """The default: POST, PUT, PATCH and DELETE change something."""
    return exchange.method in _MUTATING


@dataclass(frozen=True, slots=True)
class _Answer:
    """A whole answer of the system."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of success


class HttpLine:
    """A line to the HTTP system at `upstream` (scheme, host and port). `writes` tells requests that change something
    from reads; give it where a read is a POST. A context manager.
    """

    kinds: frozenset[FaultKind] = frozenset(
        {"unsent", "dropped", "lost", "status", "html", "empty", "replayed", "denied", "late", "twice", "stale"}
    )
    cuts: frozenset[Cut] = frozenset(CUTS)

    def __init__(self, upstream: str, *, writes: Writes = changes) -> None:
        parts = urlsplit(upstream)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            raise ValueError(f"`{upstream}` is no `http://host:port`")
        self._upstream = (parts.hostname, parts.port)
        self._writes = writes
        self._lock = threading.Lock()
        self._armed = Armed(self.kinds)
        self._reads: dict[tuple[str, str, bytes], _Answer] = {}
        self._last_success: _Answer | None = None
        self._landing: tuple[Exchange, int] | None = None
        self._stopping = threading.Event()
        self._server = _Server(self, 0)
        self._port: int = self._server.server_address[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def arm(self, fault: Fault) -> None:
        self._armed.add(fault)

    def unfired(self) -> tuple[Fault, ...]:
        landing = (Fault("late"),) if self._landing is not None else ()
        return (*self._armed.unfired(), *landing)

    def exchanges(self) -> tuple[Exchange, ...]:
        return self._armed.exchanges()

    def around_send(
        self, call: Call, send: Callable[[Call], Receipt], ask: Callable[[Question], Observation]
    ) -> Receipt:
        if self._armed.stale:
            ask(call)  # what its reads say before the request is what they will say, for a while, after it
        if self._armed.next_is("unsent"):
            self._server.stop()
            try:
                return send(call)
            finally:
                self._server = _Server(self, self._port)
        return send(call)

    def around_ask(self, question: Question, ask: Callable[[Question], Observation]) -> Observation:
        return ask(question)

    def stop(self) -> None:
        self._stopping.set()
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- one request ----------------------------------------------------------------------------------------

    def serve(self, exchange: Exchange, reply: _Reply) -> None:
        """Carry out one request that has arrived whole."""
        exchange = replace(exchange, writes=self._writes(exchange))
        if not exchange.writes:
            self._read(exchange, reply)
            return
        fault = self._armed.write()
        self._armed.note(replace(exchange, fault=str(fault or "")))
        self._write(exchange, fault, reply)

    def _read(self, exchange: Exchange, reply: _Reply) -> None:
        key = (exchange.method, exchange.target, exchange.body)
        before = self._reads.get(key)
        if before is not None and not self._armed.read_is_stale():
            before = None
        self._armed.note(replace(exchange, fault="stale" if before else ""))
        answer = before or self._ask_upstream(exchange)
        self._reads[key] = answer
        self._land_if_due()  # before the answer leaves: a client on a leaping clock is quicker than any system
        reply.send(answer)

    def _write(self, exchange: Exchange, fault: Fault | None, reply: _Reply) -> None:
        if fault is None:
            answer = self._ask_upstream(exchange)
            if answer.ok:
                self._last_success = answer
            reply.send(answer)
            return
        match fault.kind:
            case "replayed":
                reply.send(self._last_success or _gateway(200, b"{}", "application/json"))
            case "denied":
                reply.send(_gateway(fault.status, json.dumps(fault.body).encode(), "application/json"))
            case "dropped":
                reply.cut(None, fault.how)
            case "late":
                with self._lock:
                    self._landing = (exchange, fault.after_reads)
                reply.cut(None, fault.how)
            case _:
                answer = self._ask_upstream(exchange)
                if fault.kind == "twice":
                    answer = self._ask_upstream(exchange)
                self._spoil(answer, fault, reply)

    def _spoil(self, answer: _Answer, fault: Fault, reply: _Reply) -> None:
        match fault.kind:
            case "lost":
                reply.cut(answer, fault.how)
            case "status":
                reply.send(_gateway(fault.status, GATEWAY_PAGE, "text/html"))
            case "html":
                reply.send(_gateway(200, GATEWAY_PAGE, "text/html"))
            case "empty":
                reply.send(_gateway(200, b"", "text/plain"))
            case _:
                reply.send(answer)

    def _land_if_due(self) -> None:
        with self._lock:
            if self._landing is None:
                return
            exchange, left = self._landing
            self._landing = (exchange, left - 1)
            due = left <= 1
        if due:
            self._ask_upstream(exchange)
            with self._lock:
                self._landing = None

    def _ask_upstream(self, exchange: Exchange) -> _Answer:
        host, port = self._upstream
        connection = http.client.HTTPConnection(host, port, timeout=_UPSTREAM_SECONDS)
        try:
            headers = {name: value for name, value in exchange.headers.items() if name.lower() not in _HOP}
            if exchange.body or exchange.writes:
                headers["Content-Length"] = str(len(exchange.body))
            connection.request(exchange.method, exchange.target, exchange.body or None, headers)
            got = connection.getresponse()
            return _Answer(got.status, tuple(got.getheaders()), got.read())
        finally:
            connection.close()

    def hold(self, connection: socket.socket) -> None:
        """Keep a client waiting until it leaves or the line stops."""
        connection.settimeout(_POLL_SECONDS)
        waited = 0.0
        while waited < _SILENCE_SECONDS and not self._stopping.is_set():
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                waited += _POLL_SECONDS
            except OSError:
                return


def _gateway(status: int, content: bytes, kind: str) -> _Answer:
    return _Answer(status, (("Content-Type", kind),), content)


class _Reply(BaseHTTPRequestHandler):
    """One connection of a client: its request read whole, and the answer, whole or cut."""

    protocol_version = "HTTP/1.1"
    timeout = 30.0
    disable_nagle_algorithm = True

    def serve(self) -> None:
        headers = dict(self.headers.items())
        exchange = Exchange(self.command, self.path, headers, self._body())
        cast("_Server", self.server).line.serve(exchange, self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve  # noqa: N815 - the names http.server looks for

    def send(self, answer: _Answer) -> None:
        """The whole answer."""
        self.wfile.write(self._head(answer) + (b"" if self.command == "HEAD" else answer.content))

    def cut(self, answer: _Answer | None, how: str) -> None:
        """What is left of an answer (None: there is none) when the line breaks."""
        self.close_connection = True
        if how == "silence":
            cast("_Server", self.server).line.hold(self.connection)
        elif how == "rst":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        elif how == "cut_body" and answer is not None:
            head = self._head(answer)
            content = answer.content
            self.wfile.write(head + content[: len(content) // 2] if content else head[: len(head) // 2])

    def _head(self, answer: _Answer) -> bytes:
        kept = [(n, v) for n, v in answer.headers if n.lower() not in _HOP and n.lower() != "content-length"]
        if answer.status != http.client.NO_CONTENT:
            kept.append(("Content-Length", str(len(answer.content))))
        if self.close_connection:
            kept.append(("Connection", "close"))  # a client that is not told may send its next request into the end
        phrase = http.client.responses.get(answer.status, "Unknown")
        lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in kept)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(pieces)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    """The listening socket of a line."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, line: HttpLine, port: int) -> None:
        self.line = line
        super().__init__(("127.0.0.1", port), _Reply)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, name="http line", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def shutdown_request(self, request: Any) -> None:
        """Close; without the FIN of an orderly end where the connection is to be reset."""
        linger = request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
        if linger == _RESET_ON_CLOSE:
            self.close_request(request)
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no error; anything else is shown."""
        import sys  # noqa: PLC0415 - only here, and only when something went wrong

        if not isinstance(sys.exception(), OSError | http.client.HTTPException):
            super().handle_error(request, client_address)
