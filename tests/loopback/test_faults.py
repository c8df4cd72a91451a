"""Every told fault is really seen on the line, and the system's own count says what it did."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import pytest

from amends.testing.loopback import ControlError

PATH = "/v1/reservations"
BODY = {"sku": "A-1", "quantity": 2, "order": "o-1", "metadata": {"marker": "m-1"}}


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("fin", http.client.RemoteDisconnected),
        ("rst", ConnectionResetError),
        ("cut_body", http.client.IncompleteRead),
        ("never_answer", TimeoutError),
    ],
)
def test_the_answer_is_lost_after_the_commit(partner, how, error):
    """Each way of losing the answer raises its own error at the client, and the effect is there."""
    fault = partner.system.arm("drop_after_commit", method="POST", path=PATH, how=how)
    with pytest.raises(error) as caught:
        partner("POST", PATH, BODY, timeout=0.3)
    assert type(caught.value) is error
    assert partner.system.fired(fault) == 1
    assert partner.system.count("reservation") == 1
    (row,) = partner.system.requests("POST", PATH)
    assert (row["handled_status"], row["fault"]) == (201, "drop_after_commit")
    assert row["answered_status"] == (201 if how == "cut_body" else None)


@pytest.mark.parametrize(
    ("options", "status", "content"),
    [
        ({}, 500, b"internal_error"),
        ({"status": 504, "form": "html"}, 504, b"<html>"),
        ({"status": 502, "form": "empty"}, 502, b""),
        ({"status": 503, "form": "json", "body": {"x": 1}, "headers": {"Retry-After": "7"}}, 503, b'{"x": 1}'),
        ({"status": 409, "code": "strange_conflict"}, 409, b"strange_conflict"),
    ],
)
def test_an_error_is_answered_although_it_was_committed(partner, options, status, content):
    """Any status in any form, and still the effect is there."""
    partner.system.arm("error_after_commit", path=PATH, **options)
    answer = partner("POST", PATH, BODY)
    assert answer.status == status
    assert content in answer.raw
    assert answer.headers.get("Retry-After") == options.get("headers", {}).get("Retry-After")
    assert partner.system.count("reservation") == 1


@pytest.mark.parametrize(("kind", "there"), [("delay_before_commit", 0), ("delay_after_commit", 1)])
def test_a_delay_is_before_or_after_the_commit(partner, kind, there):
    """A client that times out finds nothing yet, or finds the effect; in the end it is there in both cases."""
    partner.system.arm(kind, path=PATH, seconds=0.6)
    with pytest.raises(TimeoutError):
        partner("POST", PATH, BODY, timeout=0.2)
    assert partner.system.count("reservation") == there
    time.sleep(0.6)
    assert partner.system.count("reservation") == 1


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"status": 403}, 403, "forbidden"),
        ({"status": 409, "code": "order_closed"}, 409, "order_closed"),
        ({"status": 422}, 422, "unprocessable"),
        ({"status": 429, "headers": {"Retry-After": "3"}}, 429, "rate_limited"),
        ({"status": 503}, 503, "internal_error"),
    ],
)
def test_a_refusal_commits_nothing(partner, options, status, code):
    """The refusal has the product's own shape, and nothing was done."""
    partner.system.arm("refuse", path=PATH, **options)
    answer = partner("POST", PATH, BODY)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert answer.headers.get("Retry-After") == options.get("headers", {}).get("Retry-After")
    assert partner.system.counts() == {}
    assert partner("POST", PATH, BODY).status == 201


def test_a_stored_refusal_is_replayed_under_its_key(partner):
    """Once a refusal is stored, the same key gets it again; a new key goes through."""
    partner.system.arm("refuse", path=PATH, status=402, code="declined", stored=True)
    for key, status in (("k1", 402), ("k1", 402), ("k2", 201)):
        assert partner("POST", PATH, BODY, headers={"Idempotency-Key": key}).status == status
    assert partner.system.fired() == 1


def test_a_refused_connection_is_refused_by_the_kernel_and_comes_back(partner):
    """While the port is closed the client gets ECONNREFUSED; the control API still answers; then it works again."""
    partner.system.arm("refuse_connection", how="stop_listening", seconds=0.3)
    with pytest.raises(ConnectionRefusedError):
        partner("POST", PATH, BODY)
    assert partner.system.fired() == 1
    assert partner.system.requests() == []
    deadline = time.monotonic() + 3
    while True:
        try:
            assert partner("POST", PATH, BODY).status == 201
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("how", ["close", "rst"])
def test_a_connection_is_cut_before_a_byte_is_read(partner, how):
    """Nothing was read, nothing is logged, nothing is done."""
    partner.system.arm("refuse_connection", how=how)
    with pytest.raises(ConnectionError):
        partner("POST", PATH, BODY)
    assert partner.system.fired() == 1
    assert partner.system.requests() == []
    assert partner.system.counts() == {}


def test_an_answer_without_a_commit_is_a_lie_that_looks_genuine(partner):
    """201 with an id that a read does not find."""
    partner.system.arm("answer_without_commit", method="POST", path=PATH)
    answer = partner("POST", PATH, BODY)
    assert answer.status == 201
    assert partner("GET", f"{PATH}/{answer.json['id']}").status == 404
    assert partner.system.counts() == {}


def test_an_undo_that_did_nothing_is_seen_by_a_separate_read(partner):
    """The provider says released, the object says held."""
    key = partner("POST", PATH, BODY).json["id"]
    partner.system.arm("answer_without_commit", path=f"{PATH}/*/release", status=204)
    assert partner("POST", f"{PATH}/{key}/release").status == 204
    assert partner("GET", f"{PATH}/{key}").json["status"] == "held"
    assert partner.system.count("reservation") == 1


@pytest.mark.parametrize(("kind", "start"), [("html_answer", b"<html>"), ("empty_answer", b"")])
def test_a_success_is_answered_with_something_that_is_no_json(partner, kind, start):
    """Status 200, and a body that cannot be parsed; the effect is there."""
    partner.system.arm(kind, path=PATH)
    answer = partner("POST", PATH, BODY)
    assert answer.status == 200
    assert answer.raw.startswith(start)
    with pytest.raises(json.JSONDecodeError):
        _ = answer.json
    assert partner.system.count("reservation") == 1


def test_a_late_landing_is_absent_now_and_there_later(partner):
    """The zombie write: the client is cut at once, the commit comes later."""
    partner.system.arm("land_late", path=PATH, seconds=0.3, how="rst")
    with pytest.raises(ConnectionResetError):
        partner("POST", PATH, BODY)
    assert partner("GET", PATH).json["data"] == []
    time.sleep(0.5)
    (found,) = partner("GET", f"{PATH}?metadata.marker=m-1").json["data"]
    assert partner.system.effects()[0]["reference"] == found["id"]
    assert partner.system.effects()[0]["request_seq"] == partner.system.requests("POST")[0]["seq"]


@pytest.mark.parametrize(("key", "expected"), [({}, 2), ({"Idempotency-Key": "k"}, 1)])
def test_a_resend_before_a_late_landing_makes_two_unless_keyed(partner, key, expected):
    """The zombie and the resend are one request to a provider that has keys, and two to one that has none."""
    partner.system.arm("land_late", path=PATH, seconds=0.2)
    with pytest.raises(http.client.RemoteDisconnected):
        partner("POST", PATH, BODY, headers=key)
    assert partner("POST", PATH, BODY, headers=key).status == 201
    time.sleep(0.4)
    assert partner.system.count("reservation") == expected


def test_make_two_leaves_twins_of_one_request(partner):
    """One request, one answer, two effects."""
    partner.system.arm("make_two", path=PATH)
    answer = partner("POST", PATH, BODY)
    twins = partner("GET", f"{PATH}?metadata.marker=m-1").json["data"]
    assert len(twins) == 2
    assert answer.json["id"] in {twin["id"] for twin in twins}
    assert {row["request_seq"] for row in partner.system.effects()} == {1}


def test_lists_lag_while_reads_by_id_do_not(partner):
    """Absent from a list proves little: the object is there, and shows up later."""
    key = partner("POST", PATH, BODY).json["id"]
    fault = partner.system.arm("lag_reads", path=f"{PATH}*", seconds=0.4)
    assert partner("GET", PATH).json["data"] == []
    assert partner("GET", f"{PATH}/{key}").status == 200
    time.sleep(0.5)
    assert len(partner("GET", PATH).json["data"]) == 1
    assert partner.system.fired(fault) == 3


def test_reads_by_id_can_lag_too(partner):
    """A 404 for an id just given out."""
    key = partner("POST", PATH, BODY).json["id"]
    partner.system.arm("lag_reads", path=f"{PATH}/*", seconds=5, by_id=True, times=2)
    assert [partner("GET", f"{PATH}/{key}").status for _ in range(3)] == [404, 404, 200]


@pytest.mark.parametrize(("says", "status"), [("absent", None), ("present", "held"), ("stale", "held")])
def test_reads_lie_as_told_and_the_truth_is_unchanged(partner, says, status):
    """After a release, a GET says that there is nothing, or that it is still held."""
    key = partner("POST", PATH, BODY).json["id"]
    partner("POST", f"{PATH}/{key}/release")
    partner.system.arm("lie_reads", path=f"{PATH}/*", says=says)
    answer = partner("GET", f"{PATH}/{key}")
    assert (answer.json.get("status") if answer.status == 200 else None) == status
    assert partner("GET", f"{PATH}/{key}").json["status"] == "released"
    assert partner.system.objects("reservations")[0]["status"] == "released"


def test_already_gone_meets_the_undo_with_the_work_done(partner):
    """Somebody else releases just before: our release is refused with already_released."""
    key = partner("POST", PATH, BODY).json["id"]
    partner.system.arm("already_gone", path=f"{PATH}/*/release")
    answer = partner("POST", f"{PATH}/{key}/release")
    assert (answer.status, answer.json["error"]["code"]) == (409, "already_released")
    events = [(event["event"], event["actor"]) for event in partner.system.effect_events() if event["effect_seq"] == 1]
    assert events == [("created", "agent"), ("removed", "foreign")]


def test_a_fault_counts_skips_and_matches(partner):
    """It lets the first pass, fires twice, only on the order it is about, and says how often."""
    fault = partner.system.arm("refuse", path=PATH, status=503, where={"order": "o-2"}, skip=1, times=2)
    statuses = [partner("POST", PATH, {**BODY, "order": order}).status for order in ("o-1", "o-2", "o-2", "o-2", "o-2")]
    assert statuses == [201, 201, 503, 503, 201]
    (row,) = partner.system.faults()
    assert (row["id"], row["seen"], row["fired"]) == (fault, 4, 2)
    assert partner.system.unfired() == []


def test_faults_of_different_phases_fire_together_and_of_one_phase_in_turn(partner):
    """Two effects and a lost answer from one request; of two lost answers the first armed comes first."""
    partner.system.arm("make_two", path=PATH)
    first = partner.system.arm("drop_after_commit", path=PATH, how="rst")
    second = partner.system.arm("drop_after_commit", path=PATH, how="fin")
    with pytest.raises(ConnectionResetError):
        partner("POST", PATH, BODY)
    assert (partner.system.fired(first), partner.system.fired(second)) == (1, 0)
    assert partner.system.count("reservation") == 2
    with pytest.raises(http.client.RemoteDisconnected):
        partner("POST", PATH, BODY)
    assert partner.system.requests("POST")[0]["fault"] == "make_two,drop_after_commit"


def test_a_fault_armed_in_vain_is_reported(partner):
    """A test can tell that its fault never fired."""
    partner.system.arm("refuse", path="/nowhere")
    partner("POST", PATH, BODY)
    assert [row["kind"] for row in partner.system.unfired()] == ["refuse"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"kind": "explode"}, "unknown fault `explode`"),
        ({"kind": "make_two", "seconds": 1}, "has no `seconds`"),
        ({"kind": "drop_after_commit", "how": "gently"}, "it may be fin, rst"),
    ],
)
def test_a_fault_described_wrongly_is_refused_with_what_there_is(partner, spec, text):
    """Nothing is armed by a typing error."""
    with pytest.raises(ControlError, match=text):
        partner.system.arm(**spec)
    assert partner.system.faults() == []


def test_cleared_faults_stay_counted(partner):
    """After clearing, requests go through and the count can still be read."""
    partner.system.arm("refuse", path=PATH, times=None)
    partner("POST", PATH, BODY)
    partner.system.clear_faults()
    assert partner("POST", PATH, BODY).status == 201
    assert partner.system.fired() == 1


def test_parallel_clients_are_counted_exactly(partner):
    """Sixteen clients at once: every fault fires as often as told and every effect is counted."""
    partner.system.arm("refuse", path=PATH, status=503, times=5)
    statuses: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(4):
            status = partner("POST", PATH, BODY).status
            with lock:
                statuses.append(status)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (statuses.count(503), statuses.count(201)) == (5, 59)
    assert partner.system.fired() == 5
    assert partner.system.count("reservation") == 59
    assert len({doc["id"] for doc in partner.system.objects("reservations")}) == 59
    assert len(partner.system.requests("POST")) == 64


def test_one_connection_serves_many_requests(partner):
    """HTTP/1.1 keep-alive: a client may reuse its connection."""
    host, port = partner.system.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=2) as line:
        for _ in range(3):
            line.sendall(b"GET /v1/reservations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer partner-token\r\n\r\n")
            assert line.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert len(partner.system.requests("GET")) == 3
