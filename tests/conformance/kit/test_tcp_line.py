"""`TcpLine`: faults act at the client's message that the pattern tells, and effects are counted behind the line."""

import contextlib
import socket
import socketserver
import threading

import pytest

from amends.spi import Call, Done, NotSent, Observation, Refused
from amends.testing.conformance import Fault, TcpLine


class Things:
    """A system that speaks lines: `NAME …` and `ADD …` are answered `ok`, `COMMIT` takes over what was added."""

    def __init__(self):
        self.kept = []
        self.left = threading.Semaphore(0)  # one for each connection that has ended


class Handler(socketserver.StreamRequestHandler):
    things: Things

    def handle(self):
        added = []
        with contextlib.suppress(OSError):
            for line in self.rfile:
                if line.startswith(b"ADD "):
                    added.append(line[4:].strip().decode())
                elif line == b"COMMIT\n":
                    self.things.kept += added
                    added = []
                self.wfile.write(b"ok\n")

    def finish(self):
        super().finish()
        self.things.left.release()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture
def things():
    return Things()


@pytest.fixture
def line(things):
    """A line on which what a client called `ours` commits changes something."""
    with Server(("127.0.0.1", 0), type("Bound", (Handler,), {"things": things})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        with TcpLine(f"tcp://127.0.0.1:{server.server_address[1]}", write=rb"NAME ours\n.*COMMIT\n") as line:
            yield line
        server.shutdown()
        thread.join()


class Client:
    """One connection along the line."""

    def __init__(self, line, name="ours"):
        host, _, port = line.address.removeprefix("tcp://").partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10.0)
        self.answers = self.socket.makefile("rb")
        self.say(f"NAME {name}")

    def say(self, text):
        """What the system answers; nothing if the line is closed."""
        self.socket.sendall(f"{text}\n".encode())
        return self.answers.readline()

    def close(self):
        self.answers.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def client(line):
    with Client(line) as client:
        client.say("ADD a")
        yield client


def test_a_line_without_faults_passes_everything_on(line, things, client):
    """A request that changes something is noted with what was said up to it, each one once."""
    assert client.say("COMMIT") == b"ok\n"
    client.say("ADD b")
    assert things.kept == ["a"]
    assert [(seen.body, seen.writes, seen.fault) for seen in line.exchanges()] == [
        (b"NAME ours\nADD a\nCOMMIT\n", True, "")
    ]
    assert line.exchanges()[0].carries("NAME ours")


def test_what_the_pattern_does_not_tell_meets_no_fault(line, things):
    """Another client's commit is none of the kit's business."""
    line.arm(Fault("lost"))
    with Client(line, "theirs") as theirs:
        theirs.say("ADD x")
        assert theirs.say("COMMIT") == b"ok\n"
    assert (things.kept, line.exchanges(), line.unfired()) == (["x"], (), (Fault("lost"),))


def test_a_request_may_arrive_in_pieces(line, things, client):
    """The fault acts when the pattern is complete."""
    line.arm(Fault("lost"))
    for piece in (b"COM", b"MI"):
        client.socket.sendall(piece)
    assert client.say("T") == b""
    assert (things.kept, line.unfired()) == (["a"], ())


@pytest.mark.parametrize("kind", ["lost", "dropped"])
@pytest.mark.parametrize("how", ["fin", "rst", "silence"])
def test_an_answer_gets_lost_after_the_effect_or_before_it(line, things, client, kind, how):
    """The client gets the end of its kind of loss; the system has the effect or never hears of it, and sees the end of
    its connection.
    """
    line.arm(Fault(kind, how=how))
    client.socket.settimeout(0.2 if how == "silence" else 10.0)
    match how:
        case "fin":
            assert client.say("COMMIT") == b""
        case "rst":
            with pytest.raises(ConnectionResetError):
                client.say("COMMIT")
        case _:
            with pytest.raises(TimeoutError):
                client.say("COMMIT")
    assert things.left.acquire(timeout=10.0)
    assert things.kept == (["a"] if kind == "lost" else [])
    assert line.unfired() == ()
    assert line.exchanges()[0].fault == f"{kind}({how})"


def question():
    """What an adapter is asked, or told to do."""
    return Call(
        run_id="r", action_id="a", marker="m-1", idempotency_key="k", args={}, before={}, allocated={}, effect={},
        after={}, reference="", attempt=1, sent_at_us=0, timeout_seconds=1.0, secret=str, deadline_us=1,
        still_wanted=lambda: True,
    )  # fmt: skip


def ask(line, things=None):
    """One read of an adapter behind the line."""
    return line.around_ask(question(), lambda _: Observation(seen="applied" if things and things.kept else "absent"))


def test_a_late_request_lands_after_the_reads_it_was_told(line, things, client):
    """The line breaks first; when the read is over the system is through with the request."""
    line.arm(Fault("late", after_reads=2))
    assert client.say("COMMIT") == b""
    ask(line)
    assert (things.kept, line.unfired()) == ([], (Fault("late"),))
    ask(line)
    assert (things.kept, line.unfired()) == (["a"], ())
    assert [(seen.method, seen.writes) for seen in line.exchanges()] == [
        ("SAID", True), ("LOOK", False), ("LOOK", False)
    ]  # fmt: skip


def test_a_request_that_never_lands_is_told(line, things, client):
    """The line stops, and what it kept back is gone."""
    line.arm(Fault("late"))
    assert client.say("COMMIT") == b""
    line.stop()
    assert things.left.acquire(timeout=10.0)
    assert (things.kept, line.unfired()) == ([], (Fault("late"),))


def test_an_unsent_call_is_refused_at_the_door(line, things):
    """While the call is made nobody listens; afterwards the line is where it was."""
    address = line.address
    line.arm(Fault("unsent"))

    def send(call):
        with pytest.raises(ConnectionRefusedError):
            Client(line)
        raise NotSent("refused")

    with pytest.raises(NotSent):
        line.around_send(question(), send, lambda question: Observation(seen="absent"))
    assert (line.exchanges(), line.unfired(), line.address) == ((), (), address)
    with Client(line) as client:
        assert client.say("ADD a") == b"ok\n"


def send(line, things):
    """One call of an adapter behind the line, that commits one thing."""

    def do(_):
        with Client(line) as client:
            client.say("ADD a")
            client.say("COMMIT")
        return Done(reference=str(len(things.kept)))

    return line.around_send(question(), do, lambda _: ask(line, things))


def test_what_would_change_bytes_is_done_at_the_boundary(line, things):
    """A second call, a refusal, an answer of before and a look of before are made as a `CallLine` makes them; only what
    went along the line is noted.
    """
    line.arm(Fault("twice"))
    assert (send(line, things).reference, things.kept) == ("2", ["a", "a"])
    line.arm(Fault("denied", status=403))
    with pytest.raises(Refused):
        send(line, things)
    assert (len(things.kept), line.unfired()) == (2, ())
    things.kept = []
    line.arm(Fault("stale"))
    send(line, things)
    assert [ask(line, things).seen for _ in range(2)] == ["absent", "applied"]
    assert len([seen for seen in line.exchanges() if seen.writes]) == 3
    line.arm(Fault("replayed"))
    assert line.unfired() == (Fault("replayed"),)
    assert send(line, things).reference == "1"
    assert (things.kept, line.unfired()) == (["a"], ())


def test_the_end_of_one_side_reaches_the_other(line, things, client):
    """A client that leaves is gone for the system, too, and a line that stops is gone for both."""
    with Client(line) as other:
        other.close()
        assert things.left.acquire(timeout=10.0)
    line.stop()
    assert client.answers.readline() == b""
    assert things.left.acquire(timeout=10.0)


def test_a_system_that_is_not_there_ends_the_connection(line):
    """The line itself still listens: only `unsent` refuses."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with TcpLine(f"tcp://127.0.0.1:{port}", write=b"COMMIT") as lonely:
        door = ("127.0.0.1", int(lonely.address.rpartition(":")[2]))
        with pytest.raises(ConnectionResetError), socket.create_connection(door, timeout=10.0) as client:
            client.recv(1)


@pytest.mark.parametrize("fault", [Fault("html"), Fault("status"), Fault("lost", how="cut_body")], ids=str)
def test_a_fault_that_the_line_cannot_make_is_refused(line, fault):
    """It knows no answers, and cuts none in the middle."""
    with pytest.raises(ValueError, match="this line cannot make"):
        line.arm(fault)


@pytest.mark.parametrize("upstream", ["http://127.0.0.1:1", "tcp://127.0.0.1", "127.0.0.1:80"])
def test_an_upstream_that_is_no_plain_address_is_refused(upstream):
    """The line speaks TCP to one host and port."""
    with pytest.raises(ValueError, match="is no `tcp://host:port`"):
        TcpLine(upstream, write=b"COMMIT")
