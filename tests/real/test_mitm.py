"""Each fault of the proxy fires once, does to the client what it says, and leaves upstream what it says.

Effects are counted at the system's own address, never through the line.
"""

import http.client
import select
import socket

import psycopg
import pytest

from systems.web import call

CUTS = {
    "fin": (http.client.RemoteDisconnected,),
    "rst": (ConnectionResetError,),
    "cut_body": (http.client.IncompleteRead,),
}


@pytest.fixture
def line(mitm, stripe_mock):
    """A fresh line before the Stripe mock; every fault armed on it must have fired."""
    opened = mitm.line(stripe_mock.url)
    yield opened
    assert opened.unfired() == []


@pytest.fixture
def shop(stripe_mock, request):
    """Charges whose description is the test's own name."""

    class Shop:
        name = request.node.name

        def charge(self, base, key=""):
            form = {"amount": 500, "currency": "eur", "source": "tok_visa", "description": self.name}
            headers = {"authorization": f"Bearer {stripe_mock.key}", **({"idempotency-key": key} if key else {})}
            return call("POST", f"{base}/v1/charges", form=form, headers=headers)

        def charges(self):
            found = stripe_mock.ask("GET", "charges?limit=100").data["data"]
            return sum(charge["description"] == self.name for charge in found)

    return Shop()


def test_a_line_without_faults_passes_everything_on(line, shop):
    """The answer is upstream's, and the request is counted."""
    answer = shop.charge(line.url)
    assert (answer.status, answer.data["amount"]) == (200, 500)
    assert shop.charges() == 1
    assert line.requests("POST", "/v1/*") == [
        {"line": line.port, "method": "POST", "path": "/v1/charges", "fault": "", "sent": 1, "status": 200}
    ]


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_request_is_dropped_before_upstream_has_it(line, shop, how):
    line.arm("drop_before_commit", how=how)
    with pytest.raises(CUTS[how]):
        shop.charge(line.url)
    assert (line.fired(), line.sent(), shop.charges()) == (1, 0, 0)


@pytest.mark.parametrize("how", CUTS)
def test_an_answer_is_lost_after_upstream_committed(line, shop, how):
    fault = line.arm("drop_after_commit", how=how)
    with pytest.raises(CUTS[how]):
        shop.charge(line.url)
    assert (line.fired(fault), line.sent(), shop.charges()) == (1, 1, 1)


def test_a_retry_with_the_key_after_a_lost_answer_finds_the_first_charge(line, shop):
    """The fault fires once; the second request of the key is replayed by upstream, not done again."""
    line.arm("drop_after_commit")
    with pytest.raises(CUTS["fin"]):
        shop.charge(line.url, key=shop.name)
    assert shop.charge(line.url, key=shop.name).status == 200
    assert (line.fired(), line.sent(), shop.charges()) == (1, 2, 1)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_an_error_is_told_after_upstream_committed(line, shop, status):
    line.arm("error_after_commit", status=status, body="upstream timed out")
    answer = shop.charge(line.url)
    assert (answer.status, answer.text) == (status, "upstream timed out")
    assert (line.fired(), line.requests()[0]["status"], shop.charges()) == (1, 200, 1)


def test_an_answer_is_half_of_what_it_was(line, shop):
    line.arm("truncate_answer")
    answer = shop.charge(line.url)
    assert (answer.status, answer.data, answer.text[:1]) == (200, None, "{")
    assert (line.fired(), shop.charges()) == (1, 1)


@pytest.mark.parametrize(("kind", "begins"), [("html_answer", "<html>"), ("empty_answer", "")])
def test_an_answer_says_nothing_of_the_effect(line, shop, kind, begins):
    line.arm(kind)
    answer = shop.charge(line.url)
    assert (answer.status, answer.data) == (200, None)
    assert answer.text.startswith(begins)
    assert (line.fired(), shop.charges()) == (1, 1)


def test_a_success_is_told_that_upstream_knows_nothing_of(line, shop):
    line.arm("answer_without_commit", body='{"id": "ch_1"}')
    answer = shop.charge(line.url)
    assert (answer.status, answer.data) == (200, {"id": "ch_1"})
    assert (line.fired(), line.sent(), shop.charges()) == (1, 0, 0)


@pytest.mark.parametrize(("key", "effects"), [("", 2), ("two", 1)])
def test_upstream_gets_a_request_twice(line, shop, key, effects):
    """Without a key that makes two charges before the client is answered, with one a single one."""
    line.arm("make_two")
    assert shop.charge(line.url, key=key).status == 200
    assert (line.fired(), line.sent(), shop.charges()) == (1, 2, effects)
    assert line.faults()[0]["landed"] == 1


@pytest.mark.parametrize(("kind", "effects"), [("delay_before_commit", 0), ("delay_after_commit", 1)])
def test_a_client_waits_before_or_after_upstream_committed(line, shop, kind, effects):
    """The client has no byte of an answer; only a look at upstream tells the two apart."""
    line.arm(kind, seconds=60)
    form = f"amount=500&currency=eur&source=tok_visa&description={shop.name}"
    head = "POST /v1/charges HTTP/1.1\r\nHost: line\r\nAuthorization: Bearer sk_test_amends\r\n"
    kind_of_body = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", line.port), timeout=20) as client:
        client.sendall((head + kind_of_body + form).encode())
        while [row["status"] for row in line.requests()] != [200 * effects]:
            assert not select.select([client], [], [], 0.02)[0]
        assert (line.fired(), line.sent(), shop.charges()) == (1, effects, effects)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)


def test_an_answer_that_is_late_is_whole(line, shop):
    line.arm("delay_before_commit", seconds=0.1)
    line.arm("delay_after_commit", seconds=0.1, skip=1)
    assert [shop.charge(line.url).data["amount"] for _ in range(2)] == [500, 500]
    assert (line.fired(), line.sent(), shop.charges()) == (2, 2, 2)


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_request_lands_after_the_client_was_cut_off(line, shop, how):
    """Nothing is there when the client looks, and the effect is when it landed."""
    fault = line.arm("land_late", seconds=0.5, how=how)
    with pytest.raises(CUTS[how]):
        shop.charge(line.url)
    assert (line.fired(), shop.charges()) == (1, 0)
    line.wait_until_landed(fault)
    assert (line.sent(), shop.charges()) == (1, 1)


def test_faults_take_the_requests_that_they_name(line, shop):
    """By method, path, content, `skip` and `times`; a cleared fault fires no more."""
    line.arm("error_after_commit", path="/v1/charges", contains=shop.name, skip=1, times=1)
    assert [shop.charge(line.url).status for _ in range(3)] == [200, 503, 200]
    line.arm("error_after_commit", method="writes", times=None)
    assert [shop.charge(line.url).status for _ in range(2)] == [503, 503]
    line.clear_faults()
    assert shop.charge(line.url).status == 200
    assert shop.charges() == 6


def test_a_fault_that_cannot_be_meant_is_refused(mitm, stripe_mock):
    with pytest.raises(ValueError, match="make_two has no seconds; it has none"):
        mitm.line(stripe_mock.url).arm("make_two", seconds=1)


@pytest.fixture
def table(postgresql):
    """A database with an empty table."""
    dsn = postgresql.database("mitm")
    postgresql.execute("CREATE TABLE paid (amount int)", dsn)
    return dsn


@pytest.mark.parametrize(("kind", "rows"), [("drop_after_commit", 1), ("drop_before_commit", 0)])
def test_a_lost_commit_of_postgresql_is_there_or_not(mitm, postgresql, table, kind, rows):
    """The client sees the same broken connection; only the server knows."""
    line = mitm.tcp_line(postgresql.host, postgresql.port)
    fault = line.arm(kind)
    address = table.replace(f":{postgresql.port}/", f":{line.port}/")
    connection = psycopg.connect(address)
    connection.execute("INSERT INTO paid VALUES (42)")
    with pytest.raises(psycopg.OperationalError):
        connection.commit()
    assert connection.broken
    assert line.fired(fault) == 1
    assert postgresql.execute("SELECT count(*) FROM paid", table) == [(rows,)]
