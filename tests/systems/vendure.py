"""Vendure, a real shop on a PostgreSQL database of its own, with one product, as `vendure/server.cjs` seeds it."""

from __future__ import annotations

import json
from typing import Any

from systems.catalog import BLOCKS, HERE
from systems.install import node
from systems.leases import Lease
from systems.postgresql import PostgreSQL
from systems.server import Server, require
from systems.system import System
from systems.web import want

_BLOCK = BLOCKS["vendure"]


class Vendure(System):
    """A running shop. `admin_url` is its admin GraphQL API for the bearer `token`; the rest are the seeds' ids."""

    def __init__(self, server: Server, database: str) -> None:
        super().__init__(server)
        seeds = _seeds(server)
        self.database = database
        self.admin_url = str(seeds["url"])
        self.token = str(seeds["token"])
        self.variant = str(seeds["variant"])
        self.customer = str(seeds["customer"])
        self.shipping = str(seeds["shipping"])
        self.stock = int(seeds["stock"])

    @classmethod
    def start(cls, postgresql: PostgreSQL) -> Vendure:
        """Start it on a fresh database and seed it; raises NotInstalled, StartFailed. Takes about four seconds."""
        require(_BLOCK, BLOCKS["node"])
        lease = Lease.take()
        database = postgresql.database("vendure")
        server = Server.start(
            "vendure",
            [node(), HERE / "vendure" / "server.cjs", str(lease.port)],
            lease=lease,
            ready=_seeds,
            environment={"NODE_PATH": str(_BLOCK.modules), "DATABASE_URL": database},
        )
        return cls(server, database)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """One query or mutation of the admin API; raises ValueError with the errors it answers."""
        headers = {"authorization": f"Bearer {self.token}"}
        said = want("POST", self.admin_url, {"query": query, "variables": variables}, headers=headers)
        if said.get("errors"):
            raise ValueError(said["errors"])
        return dict(said["data"])

    def stock_on_hand(self) -> int:
        """How many pieces of the product are in the store."""
        found = self.ask("query ($id: ID!) { productVariant(id: $id) { stockOnHand } }", id=self.variant)
        return int(found["productVariant"]["stockOnHand"])


def _seeds(server: Server) -> dict[str, Any]:
    """The line that the shop prints once it is ready; raises StopIteration before that."""
    lines = server.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(json.loads(next(line for line in lines if line.startswith('{"url"'))))
