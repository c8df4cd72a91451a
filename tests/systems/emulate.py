"""Slack and GitHub as an independent emulator keeps them: in memory, in a process each, the same at every start."""

from __future__ import annotations

from typing import Any, Self

from systems.catalog import BLOCKS, HERE
from systems.install import node
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import Answer, call, want

_BLOCK = BLOCKS["emulate"]
_SEED = HERE / "suites" / "emulate.seed.json"


class SlackEmulator(System):
    """Slack's Web API under `api_url`, which ends with a slash as slack_sdk wants it. `channel` is #amends' id. Any
    token stands for the workspace's admin, but `her_token` for Maya.
    """

    token = "xoxb-amends"
    her_token = "xoxp-maya"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.api_url = f"{self.url}/api/"
        channels = self.ask("conversations.list")["channels"]
        self.channel = str(next(found["id"] for found in channels if found["name"] == "amends"))

    @classmethod
    def start(cls) -> Self:
        """Start it; raises NotInstalled, StartFailed. Takes less than half a second."""
        return cls(_start("slack", "POST", "/api/auth.test", f"Bearer {cls.token}"))

    def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of the Web API and answer what it says, `ok` or not."""
        headers = {"authorization": f"Bearer {self.token}"}
        return dict(want("POST", f"{self.api_url}{method}", arguments, headers=headers))

    def messages(self, channel: str = "") -> list[dict[str, Any]]:
        """All messages of a channel (#amends unless named), the newest first."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self.ask("conversations.history", channel=channel or self.channel, limit=200, cursor=cursor)
            found += page["messages"]
            cursor = page["response_metadata"]["next_cursor"]
            if not cursor:
                return found

    def whispers(self, channel: str) -> int:
        """How many messages one person alone was shown in a channel (up to 20): no method lists them, its page does."""
        page = call("GET", f"{self.url}/?tab=messages&channel={channel}").text
        shown = page.partition("<h2>Ephemeral</h2>")[2].partition("</section>")[0]
        return shown.count(">ephemeral</span>")


class GitHubEmulator(System):
    """GitHub's REST API at `url`, for the user `owner` whose token is `token`."""

    token = "test_token_admin"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.owner = str(self.ask("GET", "/user").data["login"])

    @classmethod
    def start(cls) -> Self:
        """Start it; raises NotInstalled, StartFailed. Takes less than half a second."""
        return cls(_start("github", "GET", "/user", f"Bearer {cls.token}"))

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """One request to the REST API; `path` begins with a slash."""
        return call(method, f"{self.url}{path}", body, headers={"authorization": f"Bearer {self.token}"})

    def repository(self, name: str) -> str:
        """Make a repository with one commit on `main` and answer `owner/name`."""
        made = self.ask("POST", "/user/repos", {"name": name, "auto_init": True})
        return str(made.data["full_name"])


def _start(service: str, method: str, path: str, authorization: str) -> Server:
    require(_BLOCK, BLOCKS["node"])
    lease = Lease.take()
    url = f"http://127.0.0.1:{lease.port}{path}"
    return Server.start(
        f"emulate-{service}",
        [
            *(node(), _BLOCK.modules / "emulate" / "dist" / "index.js", "start"),
            *("--service", service, "--seed", _SEED, "--port", str(lease.port)),
        ],
        lease=lease,
        ready=lambda _: want(method, url, headers={"authorization": authorization}),
    )
