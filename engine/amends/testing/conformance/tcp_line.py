"""`TcpLine`: a transparent proxy in front of any system that speaks over TCP, such as a database server.

    line = TcpLine("tcp://127.0.0.1:5432", write=rb"COMMIT")

The line knows nothing of the protocol. A client's request that changes something is told by a pattern: a regular
expression over what the client has said on one connection since its last such request, or from the beginning (so that
what names the connection can be part of it). A fault acts when the pattern has just matched.

The answer to such a request is what the system says next, so the protocol has to be one of question and answer. When
a line breaks, the system has seen the end of its connection before the client notices: what the system makes of that
is over by then. Bytes are never changed; faults for which they would have to be are made at the adapter's boundary, as
a `CallLine` makes them.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from amends.core.evidence import Observation
from amends.spi import Call, Question, Receipt
from amends.testing.conformance.armed import Armed
from amends.testing.conformance.call_line import CallLine
from amends.testing.conformance.line import Cut, Exchange, Fault, FaultKind

_ON_THE_WIRE: frozenset[FaultKind] = frozenset({"unsent", "dropped", "lost", "late"})
_AT_THE_BOUNDARY: frozenset[FaultKind] = frozenset({"replayed", "denied", "twice", "stale"})
_CHUNK = 65_536
_REMEMBERED = 1_048_576
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_UPSTREAM_SECONDS = 30.0


class TcpLine:
    """A line to the system at `upstream` (`tcp://host:port`). `write` is the pattern of a request that changes
    something. A context manager.
    """

    kinds: frozenset[FaultKind] = _ON_THE_WIRE | _AT_THE_BOUNDARY
    cuts: frozenset[Cut] = frozenset({"fin", "rst", "silence"})

    def __init__(self, upstream: str, *, write: bytes) -> None:
        parts = urlsplit(upstream)
        if parts.scheme != "tcp" or parts.hostname is None or parts.port is None:
            raise ValueError(f"`{upstream}` is no `tcp://host:port`")
        self._upstream = (parts.hostname, parts.port)
        self._pattern = re.compile(write, re.DOTALL)
        self._lock = threading.Lock()
        self._armed = Armed(_ON_THE_WIRE, self.cuts)
        self._boundary = CallLine()
        self._talks: set[_Talk] = set()
        self._landing: tuple[Callable[[], None], int] | None = None
        self._door = _Door(0, self._welcome)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._door.port}"

    def arm(self, fault: Fault) -> None:
        if fault.kind in _AT_THE_BOUNDARY:
            self._boundary.arm(fault)
        else:
            self._armed.add(fault)

    def unfired(self) -> tuple[Fault, ...]:
        landing = (Fault("late"),) if self._landing is not None else ()
        return (*self._armed.unfired(), *self._boundary.unfired(), *landing)

    def exchanges(self) -> tuple[Exchange, ...]:
        return self._armed.exchanges()

    def around_send(
        self, call: Call, send: Callable[[Call], Receipt], ask: Callable[[Question], Observation]
    ) -> Receipt:
        return self._boundary.around_send(call, lambda made: self._along(made, send), ask)

    def _along(self, call: Call, send: Callable[[Call], Receipt]) -> Receipt:
        if not self._armed.next_is("unsent"):
            return send(call)
        self._door.shut()
        try:
            return send(call)
        finally:
            self._door = _Door(self._door.port, self._welcome)

    def around_ask(self, question: Question, ask: Callable[[Question], Observation]) -> Observation:
        seen = self._boundary.around_ask(question, ask)
        self._armed.note(Exchange("LOOK", question.marker, {}, b""))
        with self._lock:
            landing = self._landing
            if landing is not None:
                self._landing = (landing[0], landing[1] - 1)
        if landing is not None and landing[1] <= 1:
            landing[0]()
            self._landing = None
        return seen

    def stop(self) -> None:
        self._door.shut()
        with self._lock:
            talks = list(self._talks)
        for talk in talks:
            talk.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- what the connections ask of their line -------------------------------------------------------------

    def completes(self, said: bytes) -> bool:
        """Whether these words of a client are a request that changes something."""
        return self._pattern.search(said) is not None

    def met(self, said: bytes) -> Fault | None:
        """A request that changes something has come: it is noted, and this is the fault that it meets."""
        fault = self._armed.write()
        self._armed.note(Exchange("SAID", self.address, {}, said, writes=True, fault=str(fault or "")))
        return fault

    def lands_later(self, land: Callable[[], None], after_reads: int) -> None:
        """Keep a request back until this many reads have gone by."""
        with self._lock:
            self._landing = (land, after_reads)

    def over(self, talk: _Talk) -> None:
        """A connection has ended."""
        with self._lock:
            self._talks.discard(talk)

    def _welcome(self, client: socket.socket) -> None:
        try:
            system = socket.create_connection(self._upstream, timeout=_UPSTREAM_SECONDS)
        except OSError:
            _reset(client)
            return
        system.settimeout(None)
        talk = _Talk(self, client, system)
        with self._lock:
            self._talks.add(talk)
        talk.begin()


class _Talk:
    """One connection of a client, and the line's own to the system for it."""

    def __init__(self, line: TcpLine, client: socket.socket, system: socket.socket) -> None:
        self._line = line
        self._client = client
        self._system = system
        self._said = b""
        self._broken = False  # nothing reaches the client any more
        self._may_land = threading.Event()
        self._forth = threading.Thread(target=self._carry_forth, daemon=True)
        self._back = threading.Thread(target=self._carry_back, daemon=True)
        self._last = threading.Thread(target=self._tidy, daemon=True)

    def begin(self) -> None:
        """Carry bytes both ways until either side ends it."""
        self._forth.start()
        self._back.start()
        self._last.start()

    def end(self) -> None:
        """Cut both sides off, and wait until it is over."""
        for side in (self._client, self._system):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self._may_land.set()
        self._last.join()

    def _carry_forth(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(_CHUNK):
                self._said = (self._said + data)[-_REMEMBERED:]
                if self._line.completes(self._said):
                    fault, self._said = self._line.met(self._said), b""
                    if fault is not None:
                        self._go_wrong(data, fault)
                        return
                self._system.sendall(data)
        _half_close(self._system)

    def _carry_back(self) -> None:
        with contextlib.suppress(OSError):
            while (data := self._system.recv(_CHUNK)) and not self._broken:
                self._client.sendall(data)
        if not self._broken:
            _half_close(self._client)

    def _go_wrong(self, data: bytes, fault: Fault) -> None:
        self._broken = True
        match fault.kind:
            case "late":
                self._line.lands_later(self._land, fault.after_reads)
                self._cut(fault.how)
                self._may_land.wait()
                self._finish(data)
            case "lost":
                self._finish(data)
                self._cut(fault.how)
            case _:
                self._hang_up()
                self._cut(fault.how)

    def _land(self) -> None:
        """Let the system have what was kept back, and wait until it is through with it."""
        self._may_land.set()
        self._forth.join()

    def _finish(self, data: bytes) -> None:
        """Let the system have the request; its answer goes no further."""
        self._system.sendall(data)
        self._back.join()
        self._hang_up()

    def _hang_up(self) -> None:
        """End the connection to the system, and wait until the system has ended it, too."""
        _half_close(self._system)
        with contextlib.suppress(OSError):
            self._system.settimeout(_UPSTREAM_SECONDS)
            while self._system.recv(_CHUNK):
                pass

    def _cut(self, how: Cut) -> None:
        """What the client sees of a broken line; silence lasts until it leaves or the line stops."""
        if how == "silence":
            while self._client.recv(_CHUNK):
                pass
        elif how == "rst":
            _reset(self._client)
        else:
            self._client.shutdown(socket.SHUT_RDWR)

    def _tidy(self) -> None:
        self._forth.join()
        self._back.join()
        self._client.close()
        self._system.close()
        self._line.over(self)


class _Door:
    """The listening socket of a line."""

    def __init__(self, port: int, welcome: Callable[[socket.socket], None]) -> None:
        self._socket = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self._welcome = welcome
        self._shut = False
        self._thread = threading.Thread(target=self._listen, name="tcp line", daemon=True)
        self._thread.start()

    def shut(self) -> None:
        """Refuse connections from now on."""
        self._shut = True
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            pass  # it wakes `accept`, on every kind of host
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while True:
            client, _ = self._socket.accept()
            if self._shut:
                client.close()
                return
            self._welcome(client)


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    client.close()


def _half_close(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(socket.SHUT_WR)
