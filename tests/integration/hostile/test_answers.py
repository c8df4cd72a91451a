"""What a system may answer: any status, headers, body and framing. No answer hangs or ends the engine, and none is
taken for proof of what it does not prove.
"""

import json
import os
import socket
import threading
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from amends import Engine
from amends.core.status import ActionStatus, Outcome
from amends.runtime.flights import Flights, call_of, classified, question_of
from amends.testing.conformance.project import write_project
from amends.testing.worlds import ledger_faults
from systems.matrices.git import start_of

ALLOWED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]
CALLS = {
    "partner": ("partner.reserve_inventory", {"order": "o-1", "sku": "S", "quantity": 1}),
    "slack": ("slack.ephemeral", {"channel": "C0B", "person": "maya", "text": "hello"}),
    "jira": ("jira.comment", {"key": "BILL-1", "text": "hello"}),
    "flags": ("flags.create", {"feature": "panel"}),
}


class Raw:
    """Answers every request with the bytes it is told to, and closes. Keeps method and path of what came."""

    def __init__(self):
        self.asked = []
        self.reads = b""
        self.writes = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def written(self):
        """The requests that could change something."""
        return [asked for asked in self.asked if asked[0] not in {"GET", "HEAD"}]

    def _serve(self):
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line):
        with line:
            try:
                line.settimeout(5)
                head, _, body = self._until(line, b"\r\n\r\n").partition(b"\r\n\r\n")
                fields = dict(row.split(b": ", 1) for row in head.lower().split(b"\r\n")[1:] if b": " in row)
                left = int(fields.get(b"content-length", b"0")) - len(body)
                while left > 0 and (more := line.recv(left)):
                    left -= len(more)
                method, path, *_ = head.decode("latin-1").split(" ")
                self.asked.append((method, path))
                line.sendall(self.reads if method in {"GET", "HEAD"} else self.writes)
            except (OSError, ValueError):
                return

    @staticmethod
    def _until(line, end):
        data = b""
        while end not in data and (more := line.recv(65536)):
            data += more
        return data

    def close(self):
        self._listener.close()


# --- answers --------------------------------------------------------------------------------------------------

BOMBS = (
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b"9" * 6_000,
    b'{"id": 1e999}',
    b'{"id": NaN}',
    b'{"id": "\\ud800"}',
    b"\xff\xfe{\x00}\x00",
    b'{"id": "res_000001", "id": "res_000002"}',
    b"null",
    b"[]",
    b'""',
    b"0",
    b"true",
    b"{}",
    b"",
    b"<html>ok</html>",
    b'{"ok": true}',
    b'{"ok": true, "message_ts": {"a": []}}',
    b'{"ok": "yes", "ts": 7}',
    b'{"ok": false, "error": ["x"]}',
    b'{"errorMessages": 7, "errors": [1]}',
    b'{"error": {"code": {"a": 1}}}',
    b'{"id": {"id": "x"}, "object": 7, "status": []}',
    b'{"name": 3, "description": null}',
    b'{"comments": "x", "total": -1, "values": 3, "issues": {}, "isLast": "no"}',
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "ok",
                    "error",
                    "errors",
                    "errorMessages",
                    "status",
                    "ts",
                    "message_ts",
                    "data",
                    "items",
                    "name",
                    "code",
                    "key",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
bodies = st.sampled_from(BOMBS) | st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode())
statuses = st.sampled_from(
    [
        100,
        101,
        200,
        201,
        202,
        204,
        206,
        300,
        301,
        302,
        307,
        308,
        400,
        401,
        403,
        404,
        408,
        409,
        410,
        413,
        422,
        425,
        429,
        451,
        499,
        500,
        502,
        503,
        504,
        599,
        700,
        999,
    ]
)
headers = st.lists(
    st.tuples(
        st.sampled_from(["Location", "Retry-After", "Content-Type", "Set-Cookie", "Content-Encoding", "X-Any", "Date"]),
        st.sampled_from(
            [
                "http://127.0.0.1:1/elsewhere",
                "9" * 400,
                "²",
                "-1",
                "1e999",
                "Wed, 21 Oct 99999 07:28:00 GMT",
                "gzip",
                "text/html",
                "application/json; charset=utf-7",
                "",
                "Fri, 31 Dec 9999 23:59:59 +9999",
                "a" * 9000,
            ]
        ),
    ),
    max_size=3,
)
FRAMES = ("length", "close", "chunked", "short", "long", "no number", "negative", "both", "bad chunk", "huge chunk")


@st.composite
def answers(draw):
    """One whole answer as bytes, its status (None: no HTTP), and whether its framing is whole."""
    if draw(st.integers(0, 9)) == 0:
        return (
            draw(st.sampled_from((b"", b"HTTP/1.1", b"SSH-2.0-x\r\n", b"\x00" * 50, b"HTTP/1.1 200 OK\r\n"))),
            None,
            False,
        )
    status, body, frame = draw(statuses), draw(bodies), draw(st.sampled_from(FRAMES[:3] * 4 + FRAMES))
    fields = {
        "length": f"Content-Length: {len(body)}\r\n",
        "close": "",
        "chunked": "Transfer-Encoding: chunked\r\n",
        "short": f"Content-Length: {len(body) + 7}\r\n",
        "long": f"Content-Length: {max(0, len(body) - 3)}\r\n",
        "no number": "Content-Length: many\r\n",
        "negative": "Content-Length: -5\r\n",
        "both": f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n",
        "bad chunk": "Transfer-Encoding: chunked\r\n",
        "huge chunk": "Transfer-Encoding: chunked\r\n",
    }[frame]
    sent = {
        "chunked": b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n",
        "both": b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n",
        "bad chunk": b"zz\r\n" + body,
        "huge chunk": b"ffffffffffffffffff\r\n" + body,
    }.get(frame, body)
    more = "".join(f"{name}: {value}\r\n" for name, value in draw(headers))
    head = f"HTTP/1.1 {status} Any\r\n{fields}{more}\r\n".encode("latin-1")
    return head + sent, status, frame in {"length", "close", "chunked", "long"}


GOOD_READS = {
    "jira": b'{"comments": [], "total": 0, "startAt": 0, "maxResults": 100, "key": "BILL-1", "id": "1", "fields": {}}',
    "flags": b'{"features": [], "name": "default", "environments": []}',
}


@pytest.fixture(scope="module")
def wire():
    raw = Raw()
    yield raw
    raw.close()


@pytest.fixture(scope="module")
def engine(wire, tmp_path_factory):
    """An engine whose four HTTP adapters reach the same careless server."""
    folder = write_project(
        tmp_path_factory.mktemp("hostile"),
        {
            "partner": {
                "plugin": "http",
                "base_url": wire.url,
                "contracts": "package:partner",
                "token": "env:T",
                "account": "a",
            },
            "slack": {"base_url": f"{wire.url}/api", "token": "env:T", "people": {"maya": "U0MAYA"}},
            "jira": {"base_url": wire.url, "token": "env:T", "email": "a@example.test", "customer_facing": False},
            "flags": {"base_url": wire.url, "token": "env:T", "tell": "person:maya"},
        },
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("T", "a-token-of-tests")
        with Engine.open(folder, mirror=False) as engine:
            yield engine


def called(engine, wire, adapter, number):
    """What came of one call of an adapter in a run of its own: action, outcome, requests that could have changed
    something. What waits in the outbox is sent as a release would.
    """
    before = len(wire.written)
    run = engine.run(workflow=f"{adapter}-{os.getpid()}", run_key=str(number), agent="agent")
    name, args = CALLS[adapter]
    result = run.call(name, {**args, **({"order": f"o-{number}"} if "order" in args else {})})
    action, outcome = run.state.actions[result.action_id], result.outcome
    if action.status is ActionStatus.QUEUED:
        offer, now_us = engine.kit.catalog.get(name), engine.kit.clock.now_us
        question = question_of(engine.kit, action, offer)
        call = call_of(question, deadline_us=now_us() + 5_000_000, still_wanted=lambda: True)
        outcome = classified(offer.capability.do, call, now_us, action, engine.kit.secrets).outcome
    return action, outcome, len(wire.written) - before


@pytest.mark.parametrize("adapter", CALLS)
def test_any_answer_to_a_write(engine, wire, adapter):
    """One write at most; `failed` only on a refusal that proves it; `succeeded` only on a whole 2xx; else unknown."""
    seen = Counter()
    number = iter(range(1_000_000))
    wire.reads = b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}"
    if adapter in GOOD_READS:
        good = GOOD_READS[adapter]
        wire.reads = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            len(good),
            good,
        )

    @settings(max_examples=max(40, settings.default.max_examples // 2), suppress_health_check=ALLOWED)
    @given(answers())
    def fuzz(answer):
        wire.writes, status, whole = answer
        _, outcome, written = called(engine, wire, adapter, next(number))
        seen[outcome] += 1
        assert written <= 1
        if outcome is Outcome.SUCCEEDED:
            assert whole
            assert 200 <= status < 300
        elif outcome is Outcome.FAILED and written:
            assert whole or status >= 400  # a refusing status proves it, and so does a whole body that says no
            assert 200 <= status < 500
            assert not 300 <= status < 400

    fuzz()
    assert wire.written, "nothing was ever sent"
    assert seen[Outcome.UNKNOWN] > 0, seen
    assert seen[Outcome.FAILED] > 0, seen


@pytest.mark.parametrize("adapter", CALLS)
def test_any_answer_to_a_read(engine, wire, adapter):
    """What `prepare` cannot read is no reason to write; what a probe cannot read proves nothing."""
    numbers = iter(range(1_000_000, 2_000_000))
    flights = Flights(engine.kit)
    counts = {"unread": 0, "looked": 0}

    @settings(max_examples=max(30, settings.default.max_examples // 3), suppress_health_check=ALLOWED)
    @given(answers())
    def fuzz(answer):
        wire.reads, status, _ = answer
        assume(status != 404)
        wire.writes = b""  # the answer to a write is lost: only looking can tell
        number = next(numbers)
        action, outcome, written = called(engine, wire, adapter, number)
        assert written <= 1
        assert outcome is not Outcome.SUCCEEDED
        if outcome is Outcome.FAILED:
            counts["unread"] += 1
            assert written == 0
        offer = engine.kit.catalog.get(CALLS[adapter][0])
        question = question_of(engine.kit, action, offer)
        before = len(wire.written)
        observed = flights.observe(offer.capability.probe, question, adapter)
        counts["looked"] += 1
        assert len(wire.written) == before
        assert observed.seen in {"applied", "absent", "many", "diverged", "inconclusive"}
        if status is None or not 200 <= status < 300:
            assert observed.seen in {"inconclusive", "absent"}
            assert observed.seen == "inconclusive" or status in {404, 410}

    fuzz()
    assert counts["looked"] > 10


def test_the_ledger_of_all_that_is_sound(engine):
    """After thousands of answers that nobody expected, rows are what the events say."""
    assert ledger_faults(engine.kit.journal) == []


def test_an_answer_that_leads_elsewhere_is_not_followed(engine, wire):
    """A redirect is no success and no refusal, and whoever it names hears nothing."""
    trap = Raw()
    try:
        for status in (301, 302, 303, 307, 308):
            there = (
                f"HTTP/1.1 {status} Go\r\nLocation: {trap.url}/v1/reservations\r\nContent-Length: 0\r\n\r\n".encode()
            )
            wire.writes = wire.reads = there
            _, outcome, written = called(engine, wire, "partner", 3_000_000 + status)
            assert written == 1
            assert outcome is Outcome.UNKNOWN
        assert trap.asked == []
    finally:
        trap.close()


@pytest.mark.parametrize(
    "answer",
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
            b"Content-Length: 4\r\n\r\nzzzz"
        ),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n"
        b"001e# service=git-upload-pack\n0000fff0" + b"0" * 40,
        b"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 No\r\n\r\n" + b"\xff" * 5000,
        b"\x00",
        b"",
    ],
)
def test_any_answer_of_a_git_server(answer, tmp_path, monkeypatch):
    """What cannot be read before a push is no push; nothing is said to be there or gone."""
    raw = Raw()
    raw.reads = raw.writes = answer
    start_of(tmp_path)
    repository = {"remote": f"{raw.url}/billing.git", "token": "env:T", "checkout": str(tmp_path / "agent")}
    monkeypatch.setenv("T", "a-token-of-tests")
    folder = write_project(tmp_path / "project", {"git": {"repositories": {"billing": repository}}})
    try:
        with Engine.open(folder, mirror=False) as engine:
            run = engine.run(workflow="git", run_key="1", agent="agent")
            result = run.call("git.create_branch", {"repo": "billing", "branch": "feature/x"})
        assert result.status in {ActionStatus.FAILED, ActionStatus.UNKNOWN}
        assert not any("receive-pack" in path and method == "POST" for method, path in raw.asked)
        assert raw.asked
    finally:
        raw.close()
