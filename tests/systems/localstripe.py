"""localstripe: payment intents, charges, refunds and events, and no idempotency at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from systems.catalog import BLOCKS, HERE
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["localstripe"]


class LocalStripe(System):
    """Stripe's v1 API under `url`/v1 for the secret key `key`."""

    key = "sk_test_amends"

    @classmethod
    def start(cls) -> Self:
        """Start it; raises NotInstalled, StartFailed."""
        require(_BLOCK)
        lease = Lease.take()
        url = f"http://127.0.0.1:{lease.port}/v1/charges"
        server = Server.start(
            "localstripe",
            [_BLOCK.python, HERE / "launch" / "run_localstripe.py", str(lease.port)],
            lease=lease,
            ready=lambda _: want("GET", url, headers={"authorization": f"Bearer {cls.key}"}),
        )
        return cls(server)

    def ask(self, method: str, path: str, form: Mapping[str, object] | None = None, key: str = "") -> Answer:
        """One request; `path` goes on after `/v1/`, `key` is an Idempotency-Key, which is ignored here."""
        headers = {"authorization": f"Bearer {self.key}", **({"idempotency-key": key} if key else {})}
        return call(method, f"{self.url}/v1/{path}", form=form, headers=headers)

    def reset(self) -> None:
        """Forget everything."""
        want("DELETE", f"{self.url}/_config/data")
