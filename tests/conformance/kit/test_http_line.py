"""`HttpLine`: each fault does what its comment says, and effects are counted behind the line."""

import http.client
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from amends.spi import NotSent, Observation
from amends.testing.conformance import Fault, HttpLine


class Things:
    """A system behind the line: a POST makes a thing, a GET shows all of them, a DELETE takes the last one away."""

    def __init__(self):
        self.made = []
        self.bodies = []


class Handler(BaseHTTPRequestHandler):
    things: Things
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.things.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.things.made.append(len(self.things.made) + 1)
        self._answer(201, {"number": self.things.made[-1]})

    def do_GET(self):
        self._answer(200, self.things.made)

    def do_DELETE(self):
        if self.things.made:
            self.things.made.pop()
        self._answer(200 if self.things.made else 404, {})

    def _answer(self, status, document):
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@contextmanager
def served(things):
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"things": things}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def things():
    return Things()


@pytest.fixture
def line(things):
    with served(things) as upstream, HttpLine(upstream) as line:
        yield line


def ask(line, method="GET", body=None, timeout=5.0):
    """One request along the line, on a connection of its own: status and body."""
    connection = http.client.HTTPConnection(line.address.removeprefix("http://"), timeout=timeout)
    try:
        connection.request(method, "/things", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def post(line, **how):
    return ask(line, "POST", b'{"marker": "a"}', **how)


def test_a_line_without_faults_passes_everything_on(line, things):
    """Request and answer arrive as they were sent, and each is noted once, reads apart from writes."""
    assert post(line) == (201, b'{"number": 1}')
    assert ask(line) == (200, b"[1]")
    assert things.bodies == [b'{"marker": "a"}']
    assert [(seen.method, seen.writes, seen.fault) for seen in line.exchanges()] == [
        ("POST", True, ""),
        ("GET", False, ""),
    ]
    assert line.exchanges()[0].carries("marker")
    assert not line.exchanges()[0].carries("another marker")


def test_chunked_requests_arrive_whole(line, things):
    """A client that does not say how long its body is."""
    connection = http.client.HTTPConnection(line.address.removeprefix("http://"), timeout=5.0)
    connection.request("POST", "/things", iter([b"one ", b"two"]), encode_chunked=True)
    assert connection.getresponse().status == 201
    connection.close()
    assert things.bodies == [b"one two"]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("fin", http.client.RemoteDisconnected),
        ("rst", ConnectionResetError),
        ("cut_body", http.client.IncompleteRead),
        ("silence", TimeoutError),
    ],
)
def test_a_lost_answer_is_lost_after_the_effect(line, things, how, error):
    """The client gets the one error of its kind of loss, and the system has the effect, once."""
    line.arm(Fault("lost", how=how))
    with pytest.raises(error) as caught:
        post(line, timeout=0.2 if how == "silence" else 5.0)
    assert type(caught.value) is error
    assert things.made == [1]
    assert line.unfired() == ()
    assert line.exchanges()[0].fault == f"lost({how})"


def test_a_dropped_request_is_lost_before_the_effect(line, things):
    """The client cannot tell it from a lost answer."""
    line.arm(Fault("dropped"))
    with pytest.raises(http.client.RemoteDisconnected):
        post(line)
    assert (things.made, line.unfired()) == ([], ())
    assert line.exchanges()[0].fault == "dropped(fin)"


@pytest.mark.parametrize(
    ("fault", "status", "begin"),
    [
        (Fault("status", status=503), 503, b"<html>"),
        (Fault("html"), 200, b"<html>"),
        (Fault("empty"), 200, b""),
    ],
    ids=str,
)
def test_a_gateway_spoils_the_answer_after_the_effect(line, things, fault, status, begin):
    """The effect is there; the answer is another's."""
    line.arm(fault)
    got, content = post(line)
    assert (got, content[: len(begin) or 1]) == (status, begin)
    assert things.made == [1]


def test_a_replayed_answer_is_the_success_before_it(line, things):
    """The system never hears of the second request, and its answer is that of the first."""
    first = post(line)
    line.arm(Fault("replayed"))
    assert post(line) == first
    assert things.made == [1]


def test_nothing_to_replay_is_an_empty_success(line, things):
    """A gateway that has seen nothing yet still answers 200."""
    line.arm(Fault("replayed"))
    assert post(line) == (200, b"{}")
    assert things.made == []


def test_a_failed_answer_is_never_replayed(line, things):
    """Only successes are."""
    first = post(line)
    assert ask(line, "DELETE")[0] == 404
    line.arm(Fault("replayed"))
    assert post(line) == first


def test_a_denial_never_reaches_the_system(line, things):
    """It has the status and body that it was armed with; a lasting one meets every further request."""
    line.arm(Fault("denied", status=403, body={"error": "no"}, lasting=True))
    assert [post(line), post(line)] == [(403, b'{"error": "no"}')] * 2
    assert things.made == []
    assert line.unfired() == ()


def test_a_late_request_lands_after_the_reads_it_was_told(line, things):
    """The answer is lost first; the read after which it lands still says that nothing is there."""
    line.arm(Fault("late", after_reads=2))
    with pytest.raises(http.client.RemoteDisconnected):
        post(line)
    assert things.made == []
    assert ask(line) == (200, b"[]")
    assert things.made == []
    assert line.unfired() == (Fault("late"),)
    assert ask(line) == (200, b"[]")
    assert ask(line) == (200, b"[1]")
    assert (things.made, line.unfired()) == ([1], ())


def test_a_request_arrives_two_times(line, things):
    """Both have their effect, and the second answer is given."""
    line.arm(Fault("twice"))
    assert post(line) == (201, b'{"number": 2}')
    assert things.made == [1, 2]


def test_stale_reads_are_those_from_before_the_request(line, things):
    """As many as were told, counted from the request; then the truth."""
    line.arm(Fault("stale", reads=2))
    assert ask(line) == (200, b"[]")
    assert line.unfired() == (Fault("stale", reads=2),)
    post(line)
    assert [ask(line)[1] for _ in range(3)] == [b"[]", b"[]", b"[1]"]
    assert line.unfired() == ()
    assert [seen.fault for seen in line.exchanges()] == ["", "", "stale", "stale", ""]


def test_faults_meet_requests_in_the_order_of_their_arming(line, things):
    """One request each; reads do not meet them."""
    line.arm(Fault("status", status=500))
    line.arm(Fault("empty"))
    assert ask(line)[0] == 200
    assert [post(line)[0], post(line)[0], post(line)[0]] == [500, 200, 201]
    assert things.made == [1, 2, 3]


def test_a_fault_that_never_happened_is_told(line):
    """An armed fault that no request met proves nothing, so the line says so."""
    line.arm(Fault("lost", how="rst"))
    ask(line)
    assert line.unfired() == (Fault("lost", how="rst"),)
    assert str(line.unfired()[0]) == "lost(rst)"


def test_an_unsent_call_is_refused_at_the_door(line, things):
    """While the call is made nobody listens; afterwards the line is where it was."""
    address = line.address
    line.arm(Fault("unsent"))

    def send(call):
        with pytest.raises(ConnectionRefusedError):
            post(line)
        raise NotSent("refused")

    with pytest.raises(NotSent):
        line.around_send(None, send, lambda question: Observation(seen="absent"))
    assert (things.made, line.exchanges(), line.unfired()) == ([], (), ())
    assert line.address == address
    assert post(line)[0] == 201


def test_requests_that_are_reads_can_be_named(things):
    """A POST that only asks is passed on, and meets no fault."""
    with served(things) as upstream, HttpLine(upstream, writes=lambda seen: b"marker" in seen.body) as line:
        line.arm(Fault("status"))
        assert ask(line, "POST", b"{}")[0] == 201
        assert post(line)[0] == 500


@pytest.mark.parametrize("upstream", ["https://127.0.0.1:1", "http://127.0.0.1", "127.0.0.1:80"])
def test_an_upstream_that_is_no_plain_address_is_refused(upstream):
    """The line speaks HTTP to one host and port."""
    with pytest.raises(ValueError, match="is no `http://host:port`"):
        HttpLine(upstream)
