"""fast-feature: a flag server with a JSON admin API and OpenFeature's remote protocol (OFREP), in memory."""

from __future__ import annotations

from typing import Any, Self

from systems.catalog import BLOCKS
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["fast_feature"]


class FastFeature(System):
    """The flags under `flags_url` (GET, POST; GET, PUT, DELETE of `/{key}`); evaluation under `ofrep_url`."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.flags_url = f"{self.url}/admin/api/flags"
        self.ofrep_url = f"{self.url}/ofrep/v1/evaluate/flags"

    @classmethod
    def start(cls) -> Self:
        """Start it without a flag; raises NotInstalled, StartFailed."""
        require(_BLOCK)
        lease = Lease.take()
        url = f"http://127.0.0.1:{lease.port}/admin/api/flags"
        server = Server.start(
            "fast_feature",
            [_BLOCK.folder / "bin" / "fast-feature", "serve", "--host", "127.0.0.1", "--port", str(lease.port)],
            lease=lease,
            ready=lambda _: want("GET", url),
            environment={"FAST_FEATURE_ADMIN": "true"},
        )
        return cls(server)

    def ask(self, method: str, key: str = "", body: object = None) -> Answer:
        """One request to the admin API, about one flag or all."""
        return call(method, f"{self.flags_url}/{key}" if key else self.flags_url, body)

    def evaluate(self, key: str, **context: Any) -> Answer:
        """What a consumer is told by OFREP."""
        return call("POST", f"{self.ofrep_url}/{key}", {"context": context})
