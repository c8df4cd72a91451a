"""stripe-stateful-mock: charges, refunds and customers with true idempotency keys, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from systems.catalog import BLOCKS, HERE
from systems.install import node
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["stripe_mock"]


class StripeMock(System):
    """Stripe's v1 API under `url`/v1 for the secret key `key`."""

    key = "sk_test_amends"

    @classmethod
    def start(cls) -> Self:
        """Start it; raises NotInstalled, StartFailed."""
        require(_BLOCK, BLOCKS["node"])
        lease = Lease.take()
        url = f"http://127.0.0.1:{lease.port}/v1/charges"
        server = Server.start(
            "stripe_mock",
            [node(), HERE / "launch" / "stripe_mock.cjs", str(lease.port)],
            lease=lease,
            ready=lambda _: want("GET", url, headers={"authorization": f"Bearer {cls.key}"}),
            environment={"NODE_PATH": str(_BLOCK.modules)},
        )
        return cls(server)

    def ask(self, method: str, path: str, form: Mapping[str, object] | None = None, key: str = "") -> Answer:
        """One request; `path` goes on after `/v1/`, `key` is an Idempotency-Key."""
        headers = {"authorization": f"Bearer {self.key}", **({"idempotency-key": key} if key else {})}
        return call(method, f"{self.url}/v1/{path}", form=form, headers=headers)

    def listed(self, path: str) -> list[dict[str, Any]]:
        """A list to its end, such as `charges`; raises Unexpected."""
        found: list[dict[str, Any]] = []
        asked = f"{self.url}/v1/{path}{'&' if '?' in path else '?'}limit=100"
        while True:
            after = f"&starting_after={found[-1]['id']}" if found else ""
            page = want("GET", asked + after, headers={"authorization": f"Bearer {self.key}"})
            found += page["data"]
            if not page["has_more"]:
                return found
