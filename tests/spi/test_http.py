"""What `HttpSender` proves about a call, against servers that count what reached them and then misbehave."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from amends.spi import Call, NotSent, Refused
from amends.spi.http import Ambiguous, HttpAnswer, HttpRequest, HttpSender, Unreadable

CANARY = "canary-5f2a"


class Server:
    """A raw socket server: counts complete requests, then does to the line what it was told."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self.seen: list[bytes] = []
        self.connections = 0
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(line,), daemon=True).start()

    def _one(self, line: socket.socket) -> None:
        with line:
            request = read_request(line)
            if request:
                self.seen.append(request)
            self._behave(line)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def read_request(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = line.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [row.split(b":")[1] for row in head.split(b"\r\n") if row.lower().startswith(b"content-length")]
    wanted = int(lengths[0]) if lengths else 0
    while len(body) < wanted:
        body += line.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(behave: Callable[[socket.socket], None]) -> Iterator[Server]:
    server = Server(behave)
    try:
        yield server
    finally:
        server.close()


def answering(status: int, body: bytes = b'{"id": "x1"}', headers: Mapping[str, str] | None = None) -> Any:
    lines = [f"HTTP/1.1 {status} Word", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return lambda line: line.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def fin(line: socket.socket) -> None:
    line.shutdown(socket.SHUT_RDWR)


def rst(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cut_body(line: socket.socket) -> None:
    line.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"id":')


def cut_chunked(line: socket.socket) -> None:
    line.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"id":')


def silent(line: socket.socket) -> None:
    line.settimeout(5)
    line.recv(1)


def trickle(line: socket.socket) -> None:
    """One byte of a header now and then: every single read stays within the library's read time-out."""
    line.settimeout(0.05)
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 400:
            line.sendall(bytes([byte]))
            try:
                if not line.recv(1):
                    return
            except TimeoutError:
                continue
    except OSError:
        return


def call(timeout_seconds: float = 5.0, still_wanted: Callable[[], bool] = lambda: True) -> Call:
    return Call(
        run_id="r",
        action_id="a",
        marker="a",
        idempotency_key="k",
        args={},
        before={},
        allocated={},
        effect={},
        after={},
        reference="",
        attempt=1,
        sent_at_us=None,
        timeout_seconds=timeout_seconds,
        secret=lambda reference: reference,
        deadline_us=0,
        still_wanted=still_wanted,
    )


def post(url: str, **more: Any) -> HttpRequest:
    headers = {"Authorization": f"Bearer {CANARY}"}
    return HttpRequest("POST", f"{url}/charge", headers=headers, json={"amount": 5}, **more)


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        (silent, "timeout"),
        (trickle, "timeout"),
        (fin, "closed"),
        (rst, "reset"),
        (cut_body, "cut_body"),
        (cut_chunked, "cut_body"),
        (answering(500), "http_500"),
        (answering(502), "http_502"),
        (answering(503), "http_503"),
        (answering(504, b"<html>link parent epic</html>"), "http_504"),
        (answering(522), "http_522"),
        (answering(408, b"<html>somebody behind me</html>"), "http_408"),
        (answering(409), "http_409"),
        (answering(303, headers={"Location": "/elsewhere"}), "http_303"),
        (answering(200, b"<html>a gateway's page</html>"), "undecodable"),
        (answering(200, b"ok"), "undecodable"),
        (answering(201, b""), "empty_body"),
        (answering(200, b'{"id": "%s"}' % (b"x" * 5000)), "too_large"),
        (answering(200, b"not gzip", {"Content-Encoding": "gzip"}), "undecodable"),
        (lambda line: line.sendall(b"SSH-2.0-OpenSSH\r\n\r\n"), "closed"),
    ],
)
def test_after_the_first_byte_every_lost_answer_is_ambiguous_and_sent_once(behave, code):
    """The server has the request, exactly one, and no missing or odd answer becomes a refusal or a resend."""
    sender = HttpSender(max_bytes=2000)
    with serving(behave) as server:
        owned = frozenset[int]()
        with pytest.raises(Ambiguous) as lost:
            sender.send(call(timeout_seconds=0.4), post(server.url), owned)
        assert lost.value.code == code
        assert len(server.seen) == 1
        assert server.connections == 1


@pytest.mark.parametrize(
    ("status", "again"),
    [(s, False) for s in (400, 401, 402, 403, 404, 405, 410, 412, 413, 415, 422)]
    + [(423, True), (425, True), (429, True)],
)
def test_a_client_error_is_a_refusal(status, again):
    """The provider says no before acting; only rate limits and locks may be sent again as they are."""
    with serving(answering(status, b'{"error": "no"}')) as server:
        with pytest.raises(Refused) as no:
            HttpSender().send(call(), post(server.url))
        assert (no.value.code, no.value.again) == (f"http_{status}", again)
        assert len(server.seen) == 1


def test_an_empty_408_is_a_refusal_to_be_sent_again():
    """A server that gave up waiting for the request answers without a body and has done nothing."""
    with serving(answering(408, b"")) as server, pytest.raises(Refused) as no:
        HttpSender().send(call(), post(server.url))
    assert no.value.again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:27:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_without_our_clock(headers, seconds):
    """Seconds as they stand; a date counts from the answer's own Date, since clocks differ."""
    with serving(answering(429, b"", headers)) as server, pytest.raises(Refused) as no:
        HttpSender().send(call(), post(server.url))
    assert no.value.retry_after_seconds == seconds


def test_own_statuses_come_back_unjudged():
    """A conflict is the adapter's to read."""
    with serving(answering(409, b'{"error": {"code": "already_released"}}')) as server:
        answer = HttpSender().send(call(), post(server.url))
    assert answer.status == 409
    assert answer.document() == {"error": {"code": "already_released"}}


def test_a_refused_connection_was_not_sent():
    """Nobody listens: nothing left this machine."""
    with serving(fin) as server:
        url = server.url
    with pytest.raises(NotSent) as no:
        HttpSender().send(call(), post(url))
    assert no.value.code == "connect_refused"


def test_a_name_that_does_not_resolve_was_not_sent(monkeypatch):
    """The resolver fails, also with the time-out class that a lost answer has too (field case A-22)."""
    for error, code in (
        (socket.gaierror(-2, "Name or service not known"), "dns_failed"),
        (TimeoutError(), "connect_timeout"),
    ):

        def fail(*_args: object, raised: OSError = error, **_more: object) -> None:
            raise raised

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        with pytest.raises(NotSent) as no:
            HttpSender().send(call(), post("http://partner.invalid"))
        assert no.value.code == code


@pytest.mark.parametrize("behave", [fin, rst, lambda line: line.sendall(b"HTTP/1.1 400 plain text\r\n\r\n")])
def test_a_failed_tls_handshake_was_not_sent(behave):
    """The other side does not speak TLS or hangs up in the handshake: no byte of the request left."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        line, _ = listener.accept()
        with line:
            line.recv(65536)
            behave(line)

    threading.Thread(target=serve, daemon=True).start()
    with listener, pytest.raises(NotSent) as no:
        HttpSender().send(call(), post(f"https://127.0.0.1:{listener.getsockname()[1]}"))
    assert no.value.code == "tls_failed"


def test_a_silent_tls_handshake_ends_at_the_deadline_unsent():
    """A peer that accepts and then says nothing in the handshake holds the call no longer than its time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(NotSent) as no:
        HttpSender().send(call(timeout_seconds=0.2), post(f"https://127.0.0.1:{listener.getsockname()[1]}"))
    assert no.value.code == "tls_failed"


def test_a_call_no_longer_wanted_leaves_no_byte():
    """`still_wanted` is asked after the connection stands and before the first byte."""
    connected_when_asked: list[int] = []
    with serving(answering(200)) as server:

        def still_wanted() -> bool:
            connected_when_asked.append(server.port)
            return False

        with pytest.raises(NotSent) as no:
            HttpSender().send(call(still_wanted=still_wanted), post(server.url))
        assert no.value.code == "not_wanted"
        assert connected_when_asked == [server.port]
        assert server.seen == []


def test_still_wanted_is_not_asked_when_there_is_no_connection():
    """The last check belongs to the first byte, not to the attempt to connect."""
    asked: list[bool] = []
    with serving(fin) as server:
        url = server.url
    with pytest.raises(NotSent):
        HttpSender().send(call(still_wanted=lambda: asked.append(True) is None), post(url))
    assert asked == []


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("POST", "http://127.0.0.1:1/x", headers={"X-Order": "1\r\nX-Evil: 2"}, json={}),
        HttpRequest("POST", "http://127.0.0.1:1/x", json={"n": float("nan")}),
        HttpRequest("POST", "ftp://127.0.0.1/x", json={}),
        HttpRequest("POST", "http://[::bad/x", json={}),
        HttpRequest("POST", "http://user:pass@127.0.0.1:1/x", json={}),
        HttpRequest("POST", "http://127.0.0.1:1/x?token=abc", json={}),
    ],
    ids=["header", "nan", "scheme", "host", "userinfo", "query"],
)
def test_a_request_that_cannot_be_written_was_not_sent(request_):
    """What our own side refuses to write is a failure, never a doubt."""
    with serving(answering(200)) as server:
        request = HttpRequest(
            request_.method,
            request_.url.replace(":1/", f":{server.port}/"),
            headers=request_.headers,
            json=request_.json,
        )
        with pytest.raises(NotSent) as no:
            HttpSender().send(call(), request)
        assert no.value.code == "invalid_request"
        assert server.seen == []


def test_every_mutating_call_has_a_connection_of_its_own():
    """A stale pooled connection would make the first write ambiguous for nothing."""
    sender = HttpSender()
    with serving(answering(200)) as server:
        for _ in range(3):
            sender.send(call(), post(server.url))
        assert (server.connections, len(server.seen)) == (3, 3)


def test_proxy_variables_and_netrc_are_not_looked_at(monkeypatch, tmp_path):
    """Credentials and routes come from the adapter's configuration only."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(answering(200)) as server:
        HttpSender().send(call(), HttpRequest("POST", f"{server.url}/x", json={}))
        assert b"authorization" not in server.seen[0].lower()


@pytest.mark.parametrize(
    "behave",
    [
        fin,
        answering(401, f'{{"error": "bad token {CANARY}"}}'.encode()),
        answering(500, f"key={CANARY}".encode()),
        answering(200, f"<p>{CANARY}</p>".encode()),
    ],
)
def test_no_text_shows_a_credential(behave):
    """Echoed authorization, query secrets and the header itself stay out of every message."""
    request_of = lambda url: post(url, query=(("token", "query-canary"), ("page", "2")))  # noqa: E731
    with serving(behave) as server:
        with pytest.raises((Ambiguous, Refused)) as said:
            HttpSender().send(call(), request_of(server.url))
        text = f"{said.value!s} {said.value!r}"
        assert CANARY not in text
        assert "query-canary" not in text
        assert b"token=query-canary" in server.seen[0]


def test_a_request_shows_no_secret_when_printed():
    """A traceback prints locals; headers, parameters and bodies are not among what is printed."""
    request = HttpRequest(
        "POST", f"https://u:{CANARY}@x/", ((CANARY, CANARY),), {"A": CANARY}, CANARY, {"f": CANARY}, secrets=(CANARY,)
    )
    assert CANARY not in repr(request)


def test_a_read_raises_only_unreadable():
    """A probe has one exception to turn into `inconclusive`, whatever happened to the line."""
    sender = HttpSender(max_bytes=2000)
    for behave, code in ((fin, "closed"), (answering(503), "http_503"), (answering(200, b"<html>"), "undecodable")):
        with serving(behave) as server, pytest.raises(Unreadable) as lost:
            sender.read(call(timeout_seconds=0.4), HttpRequest("GET", f"{server.url}/x"))
        assert lost.value.code == code
    with pytest.raises(Unreadable) as lost:
        sender.read(call(), HttpRequest("GET", f"{server.url}/x"))
    assert lost.value.code == "connect_refused"


def test_a_read_passes_not_found_and_values():
    """404 is an answer about the world, not trouble."""
    with serving(answering(404, b"")) as server:
        assert HttpSender().read(call(), HttpRequest("GET", f"{server.url}/x")).status == 404
    with serving(answering(200, b"[1, 2]")) as server:
        assert HttpSender().read(call(), HttpRequest("GET", f"{server.url}/x")).value() == [1, 2]


def test_form_bodies_are_encoded():
    """A form is sent as such, with its own type."""
    with serving(answering(200)) as server:
        HttpSender().send(call(), HttpRequest("POST", f"{server.url}/x", form={"text": "a&b=c"}))
        assert server.seen[0].endswith(b"text=a%26b%3Dc")
        assert b"application/x-www-form-urlencoded" in server.seen[0]


def test_bytes_are_sent_as_they_are():
    """A file's content is neither decoded nor wrapped."""
    with serving(answering(200)) as server:
        HttpSender().send(call(), HttpRequest("POST", f"{server.url}/x", content=b"\x00\xff\r\n{}"))
        assert server.seen[0].endswith(b"\r\n\r\n\x00\xff\r\n{}")
        assert b"application/octet-stream" in server.seen[0]


def test_a_connect_proxy_that_says_no_was_not_sent():
    """The CONNECT to a proxy is not the request: its refusal proves that nothing reached the provider."""
    with serving(answering(407, b"")) as proxy, pytest.raises(NotSent) as no:
        HttpSender(proxy=proxy.url).send(call(), post("https://partner.invalid"))
    assert no.value.code == "proxy_failed"


@pytest.mark.parametrize("cut", range(187, 200))
def test_no_cut_leaves_a_part_of_a_secret_in_an_excerpt(cut):
    """A body is masked first and shortened then: what a cut leaves of a secret would not be known for one."""
    body = b"x" * cut + CANARY.encode()
    answer = HttpAnswer(400, {}, body, HttpRequest("GET", "http://x.test/", secrets=(CANARY,)))
    assert CANARY[:2] not in answer.excerpt()
