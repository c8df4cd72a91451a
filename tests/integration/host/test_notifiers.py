"""Notices really leave: through a process, and over a socket."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from amends.backends.notifiers import CommandNotifier, WebhookNotifier
from amends.ports.services import Notice
from amends.testing.fakes import StaticSecrets

NOTICE = Notice(
    "n-1", "escalation", "run-1", "Maya", "Undo of a payment failed", "Look at it — ünd now", 17, {"amount": 5}
)


def command(code, tmp_path, timeout_seconds=20.0):
    return CommandNotifier("page", [sys.executable, "-c", code], timeout_seconds=timeout_seconds, folder=tmp_path)


def webhook(url, timeout_seconds=20.0):
    return WebhookNotifier("hook", url, timeout_seconds=timeout_seconds, secrets=StaticSecrets({"env:HOOK": url}))


@pytest.fixture
def server():
    """A loopback receiver: `answers` is what it sends back, `got` what it was sent."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.got.append((self.path, self.headers["Content-Type"], json.loads(body)))
            if self.server.hold is not None:
                self.server.hold.wait(20)
            self.send_response(self.server.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    receiver.daemon_threads = True
    receiver.got, receiver.status, receiver.hold = [], 204, None
    receiver.url = f"http://127.0.0.1:{receiver.server_port}/hook?token=t0p-secret"
    thread = threading.Thread(target=receiver.serve_forever)
    thread.start()
    yield receiver
    if receiver.hold is not None:
        receiver.hold.set()
    receiver.shutdown()
    receiver.server_close()
    thread.join()


def test_a_command_gets_the_notice_on_its_input(tmp_path):
    """The whole document arrives, in the configured folder, and exit status 0 means delivered."""
    code = "import sys; open('got.json', 'wb').write(sys.stdin.buffer.read())"
    assert command(code, tmp_path).deliver(NOTICE).delivered
    got = json.loads((tmp_path / "got.json").read_bytes())
    assert got["notice_id"] == "n-1"
    assert got["body"] == NOTICE.body
    assert got["facts"] == {"amount": 5}


def test_a_command_that_fails_did_not_deliver(tmp_path):
    """Its status and its own words say why."""
    delivery = command("import sys; sys.exit('no route to pager')", tmp_path).deliver(NOTICE)
    assert not delivery.delivered
    assert "1" in delivery.detail
    assert "no route to pager" in delivery.detail


def test_a_command_that_hangs_is_ended(tmp_path):
    """Paging never blocks recovery for longer than its time limit."""
    delivery = command("import time; time.sleep(600)", tmp_path, timeout_seconds=0.3).deliver(NOTICE)
    assert not delivery.delivered
    assert "0.3 s" in delivery.detail


def test_a_command_that_does_not_exist_did_not_deliver(tmp_path):
    """A typo in the configuration is a failed delivery, never an exception."""
    delivery = CommandNotifier("page", ["./no-such-pager"], timeout_seconds=5, folder=tmp_path).deliver(NOTICE)
    assert not delivery.delivered
    assert "cannot start" in delivery.detail


def test_a_webhook_gets_the_notice_as_json(server):
    """A POST with the whole document; 2xx means delivered."""
    assert webhook(server.url).deliver(NOTICE).delivered
    path, kind, got = server.got[0]
    assert path.startswith("/hook")
    assert kind == "application/json"
    assert got["subject"] == NOTICE.subject
    assert got["until_us"] == 17


def test_a_webhook_may_be_named_by_a_secret_reference(server):
    """The URL often holds a token, so it may be a reference."""
    notifier = WebhookNotifier("hook", "env:HOOK", timeout_seconds=20, secrets=StaticSecrets({"env:HOOK": server.url}))
    assert notifier.deliver(NOTICE).delivered
    assert (
        not WebhookNotifier("hook", "env:NONE", timeout_seconds=20, secrets=StaticSecrets()).deliver(NOTICE).delivered
    )


@pytest.mark.parametrize("status", [302, 307, 404, 500])
def test_any_other_answer_is_no_delivery(server, status):
    """Redirects are not followed, and the detail never shows the URL's token."""
    server.status = status
    delivery = webhook(server.url).deliver(NOTICE)
    assert not delivery.delivered
    assert str(status) in delivery.detail
    assert "t0p-secret" not in delivery.detail
    assert len(server.got) == 1


def test_a_webhook_that_does_not_answer_in_time_did_not_deliver(server):
    """Paging never blocks recovery for longer than its time limit."""
    server.hold = threading.Event()
    delivery = webhook(server.url, timeout_seconds=0.3).deliver(NOTICE)
    assert not delivery.delivered
    assert delivery.detail


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x?token=t0p-secret", "ftp://t0p-secret/x", "not a url t0p-secret"])
def test_an_unreachable_webhook_is_a_failed_delivery(url):
    """Nobody listens, or the URL is none: told in words, without the URL."""
    delivery = webhook(url).deliver(NOTICE)
    assert not delivery.delivered
    assert delivery.detail
    assert "t0p-secret" not in delivery.detail
