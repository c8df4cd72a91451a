"""What every system that is one server has: an address, a process, an end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from systems.server import Server


class System:
    """A running system. Make one with its class's `start`; leaving its `with` stops it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = server.url
        self.port = server.port

    def stop(self) -> None:
        """End it; raises StartFailed if a process lives on."""
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
