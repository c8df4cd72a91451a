"""Unleash, the real flag server, on a PostgreSQL database of its own; and Unleash's own client as a second reader."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time

from systems.catalog import BLOCKS, HERE
from systems.install import node
from systems.leases import Lease
from systems.postgresql import PostgreSQL
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["unleash"]
_CLIENT = BLOCKS["unleash_client"]
_READER = HERE / "launch" / "unleash_reader.py"


class Unleash(System):
    """A running server. `admin_token` may do everything; `client_token` reads the environment `environment`."""

    admin_token = "*:*.amends-admin"
    client_token = "default:development.amends-client"
    environment = "development"
    project = "default"

    def __init__(self, server: Server, database: str) -> None:
        super().__init__(server)
        self.database = database

    @classmethod
    def start(cls, postgresql: PostgreSQL) -> Unleash:
        """Start it on a fresh database; raises NotInstalled, StartFailed. Takes about four seconds."""
        require(_BLOCK, BLOCKS["node"], _CLIENT)
        lease = Lease.take()
        database = postgresql.database("unleash")
        url = f"http://127.0.0.1:{lease.port}"
        server = Server.start(
            "unleash",
            [node(), _BLOCK.modules / "unleash-server" / "dist" / "server.js"],
            lease=lease,
            ready=lambda _: want("GET", f"{url}/api/admin/projects", headers={"authorization": cls.admin_token}),
            environment={
                "DATABASE_URL": database,
                "DATABASE_SSL": "false",
                "HTTP_HOST": "127.0.0.1",
                "HTTP_PORT": str(lease.port),
                "INIT_ADMIN_API_TOKENS": cls.admin_token,
                "INIT_BACKEND_API_TOKENS": cls.client_token,
                "CHECK_VERSION": "false",
                "SEND_TELEMETRY": "false",
            },
        )
        return cls(server, database)

    def admin(self, method: str, path: str, body: object = None) -> Answer:
        """One request to the admin API; `path` goes on after `/api/admin/`."""
        return call(method, f"{self.url}/api/admin/{path}", body, headers={"authorization": self.admin_token})

    def client_sees(self, flag: str, user_id: str = "") -> bool:
        """Whether Unleash's own client, in a fresh process without a memory, finds the flag on.

        The server tells its clients of a change up to about a second later than its admin API does.
        """
        with tempfile.TemporaryDirectory() as cache:
            said = subprocess.run(
                [_CLIENT.python, _READER, f"{self.url}/api", self.client_token, flag, user_id, cache],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        return bool(json.loads(said)["enabled"])

    def wait_until_client_sees(self, flag: str, *, on: bool, user_id: str = "", seconds: float = 20.0) -> None:
        """Look until the client finds the flag on or off; raises TimeoutError."""
        until = time.monotonic() + seconds
        while self.client_sees(flag, user_id) is not on:
            if time.monotonic() > until:
                raise TimeoutError(f"the client does not see `{flag}` {'on' if on else 'off'} after {seconds:g} s")

    def version(self) -> str:
        """What the server says it is."""
        return str(
            want("GET", f"{self.url}/api/admin/ui-config", headers={"authorization": self.admin_token})["version"]
        )
