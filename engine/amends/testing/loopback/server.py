"""The sockets: two listeners on the loopback interface, one for the system and one for its control API.

What a `Delivery` says is done here literally: send, close in silence, reset, stop in the middle of the body, or never
answer while the client waits.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias, cast

from amends.testing.loopback import faults
from amends.testing.loopback.control import PREFIX, Control
from amends.testing.loopback.exchange import Delivery, Exchange
from amends.testing.loopback.faults import Fault
from amends.testing.loopback.store import Store
from amends.testing.loopback.system import System
from amends.testing.loopback.wire import Doc, Request, parse_request

App: TypeAlias = Callable[[Request], Delivery]

_POLL_S = 0.02
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_STOP_WAIT_S = 2.0


class _Handler(BaseHTTPRequestHandler):
    """One connection. Reads whole requests, hands them to the app and carries out its delivery."""

    protocol_version = "HTTP/1.1"
    timeout = 30.0
    disable_nagle_algorithm = True

    def serve(self) -> None:
        listener = cast("_Listener", self.server)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._deliver(listener, listener.app(parse_request(self.command, self.path, headers, raw)))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: the request log is in the store."""

    def _deliver(self, listener: _Listener, delivery: Delivery) -> None:
        head, content = delivery.response.head(), delivery.response.content()
        if delivery.cut is None:
            self.wfile.write(head + content)
            return
        self.close_connection = True
        if delivery.cut == "cut_body":
            self.wfile.write(head + content[: len(content) // 2] if content else head[: len(head) // 2])
        elif delivery.cut == "rst":
            listener.reset(self.connection)
        elif delivery.cut == "never_answer":
            _hold(self.connection, delivery.hold_s)


def _hold(connection: socket.socket, seconds: float) -> None:
    """Keep the line open in silence until the client leaves, the time is over or the server stops."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            if not connection.recv(4096):
                return
        except OSError:
            return


class _Listener(ThreadingHTTPServer):
    """A listening socket whose open connections can be cut, and which can refuse connections as told."""

    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, app: App, connection_fault: Callable[[], Fault | None]) -> None:
        self.app = app
        self._connection_fault = connection_fault
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": _POLL_S}, name="loopback listener", daemon=True
        )

    def start(self) -> None:
        """Accept connections from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection; returns when their threads have let go of them, or after a while."""
        self.shutdown()
        self.server_close()
        deadline = time.monotonic() + _STOP_WAIT_S
        while time.monotonic() < deadline:
            with self._lock:
                for connection in self._open:
                    _shut(connection)
                if not self._open:
                    break
            time.sleep(0.005)
        self._thread.join(_STOP_WAIT_S)

    def reset(self, connection: socket.socket) -> None:
        """Make the coming close a reset (RST) instead of an orderly end (FIN)."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        with self._lock:
            self._open.discard(connection)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse the connection before a byte of it is read, when a fault says so."""
        fault = self._connection_fault()
        if fault is not None:
            if fault.options["how"] == "rst":
                request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            else:
                _shut(request)
            return False
        with self._lock:
            self._open.add(request)
        return True

    def shutdown_request(self, request: Any) -> None:
        """End a connection; one that is to be reset is closed without the FIN of an orderly shutdown."""
        with self._lock:
            orderly = request in self._open
            self._open.discard(request)
        if orderly:
            super().shutdown_request(request)
        else:
            self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left, or a line cut by stop(), is not an error; anything else is shown."""
        import sys  # noqa: PLC0415 - only here, and only when something went wrong

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class LoopbackServer:
    """One running loopback system in this process."""

    def __init__(self, system: System, state: Path | None = None, port: int = 0) -> None:
        self._store = Store(state)
        self._exchange = Exchange(system, self._store)
        self._control = Control(self._exchange, self._addresses, self._pause)
        self._main = self._listen(port)
        self._port: int = self._main.server_address[1]
        self._side = _Listener(0, self._answer_control, lambda: None)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where the system answers."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def control_url(self) -> str:
        """Where its control API answers, also while the system itself refuses connections."""
        return f"http://127.0.0.1:{self._side.server_address[1]}"

    def start(self) -> None:
        """Listen on both ports."""
        self._main.start()
        self._side.start()

    def stop(self) -> None:
        """Close ports and connections; late landings that have not happened are dropped."""
        self._exchange.stopping.set()
        with self._lock:
            self._main.stop()
        self._side.stop()
        self._store.close()

    def _addresses(self) -> Doc:
        return {"url": self.url, "control_url": self.control_url}

    def _listen(self, port: int) -> _Listener:
        return _Listener(port, self._answer, self._draw_connection)

    def _answer(self, request: Request) -> Delivery:
        if request.path.startswith(PREFIX):
            return self._answer_control(request)
        return self._exchange.handle(request)

    def _answer_control(self, request: Request) -> Delivery:
        return Delivery(self._control.handle(request))

    def _draw_connection(self) -> Fault | None:
        with self._store.transaction() as rows:
            return faults.draw_connection(rows)

    def _pause(self, seconds: float) -> None:
        """Stop listening now; listen again on the same port after some seconds."""
        with self._lock:
            self._main.stop()

        def resume() -> None:
            if self._exchange.stopping.wait(seconds):
                return
            with self._lock:
                self._main = self._listen(self._port)
                self._main.start()

        threading.Thread(target=resume, name="resume listening", daemon=True).start()
