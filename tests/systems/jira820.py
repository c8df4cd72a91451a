"""jira820: Jira Data Center 8.20's REST v2 with workflow, changelog and JQL, seeded with a project."""

from __future__ import annotations

from typing import Self

from systems.catalog import BLOCKS
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["jira820"]


class Jira820(System):
    """REST v2 under `url`/rest/api/2. `project` is the key of a project with hundreds of issues; any token is taken."""

    token = "any-token-of-maya-4711"
    project = "BILL"

    @classmethod
    def start(cls) -> Self:
        """Start it, the same data at every start; raises NotInstalled, StartFailed."""
        require(_BLOCK)
        lease = Lease.take()
        url = f"http://127.0.0.1:{lease.port}/rest/api/2/serverInfo"
        server = Server.start(
            "jira820",
            [_BLOCK.python, "-m", "jira820"],
            lease=lease,
            ready=lambda _: want("GET", url),
            environment={
                "JIRA820_HOST": "127.0.0.1",
                "JIRA820_PORT": str(lease.port),
                "JIRA820_DATE": "2026-11-01",
                "JIRA820_PROJECT_KEY": cls.project,
            },
        )
        return cls(server)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """One request; `path` goes on after `/rest/api/2/`."""
        headers = {"authorization": f"Bearer {self.token}"}
        return call(method, f"{self.url}/rest/api/2/{path}", body, headers=headers)
