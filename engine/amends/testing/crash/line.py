"""The child's end of the line to the killer: it says where it is and waits until it may go on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

from amends.core.canonical import Json
from amends.testing.crash.gaps import Point


class Line:
    """An open line. It is a `Progress`, so an engine announces its milestones itself; it never raises.

    Whoever announces waits for the killer's go-ahead, so a process killed at a milestone has not gone past it. If the
    killer is gone, everybody goes on.
    """

    def __init__(self, port: int, name: str) -> None:
        self._lock = threading.Lock()
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.say("hello", name=name, pid=os.getpid())

    def reached(self, milestone: Point, run_id: str, action_id: str) -> None:
        """Announce a milestone and wait."""
        self.say("milestone", milestone=milestone, run_id=run_id, action_id=action_id)

    def say(self, word: str, **facts: Json) -> str:
        """Say anything; answers the killer's word: `g` go on, `q` end well, empty if nobody is there."""
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(json.dumps({"word": word, **facts}).encode() + b"\n")
            return self._socket.recv(1).decode()
        return ""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
