"""Integration: amounts in other currencies, through the rates service's stand-in.

The stand-in answers as late as `rates_service.json` says. Since the rates team moved, that is later than we wait.
"""

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from billing.rates import converted_cents

LATE_SECONDS = json.loads((Path(__file__).parent / "rates_service.json").read_text())["answers_after_seconds"]


class RatesService(BaseHTTPRequestHandler):
    """Answers every currency with the same rate."""

    leaving = threading.Event()

    def do_GET(self) -> None:
        if self.leaving.wait(LATE_SECONDS):
            return
        body = json.dumps({"rate": 1.1}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class RatesServiceTest(unittest.TestCase):
    """What the panel shows to customers outside the euro."""

    def setUp(self) -> None:
        self.service = ThreadingHTTPServer(("127.0.0.1", 0), RatesService)
        threading.Thread(target=self.service.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def tearDown(self) -> None:
        RatesService.leaving.set()
        self.service.shutdown()
        self.service.server_close()

    def test_a_total_is_shown_in_dollars(self) -> None:
        host, port = self.service.server_address[:2]
        self.assertEqual(converted_cents(f"http://{host}:{port}", 15_050, "USD"), 16_555)
