"""The fault matrices of pull requests.

`PullMatrix`: over any server that speaks GitHub's REST API; effects are counted by what it says when somebody else asks
it. `MergeMatrix`: a merge, where API and repositories are at one address, so that it and the push that takes it back
pass one line; effects are counted in the repository.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Exchange, Subject
from amends.testing.loopback import LoopbackSystem
from amends.testing.loopback.git_http import GitHttp
from systems.matrices.git import (
    BASIC,
    PUSH_SECONDS,
    THEIRS,
    TOKEN,
    Forge,
    over_http,
    push_over,
    pushes,
    start_of,
    theirs_stay,
)
from systems.web import want

PROJECT = "acme/billing"
CROWD = 101  # more than a page of the adapter's
_API = "/api/v3"
_PASS_SECONDS = 30.0
_POLL_SECONDS = 0.02
_MARKER = "<!-- "  # how the adapter's bodies begin
_BY_ITS_BEFORE = {"test_the_request_names_our_action": "a state has no place for a mark; it is told by its before"}


@dataclass(frozen=True)
class Hub:
    """A server of pull requests at `url`; `branch` makes a branch of its project with a commit of its own."""

    url: str
    token: str
    project: str
    branch: Callable[[str], None]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Somebody else asks the API. Raises `Unexpected` where it says no."""
        url = f"{self.url}/repos/{self.project}/{path}"
        return want(method, url, body, headers={"authorization": f"Bearer {self.token}"})

    def pulls(self, branch: str) -> Iterator[Any]:
        """Every pull request of a branch."""
        owner, page = self.project.partition("/")[0], 1
        while found := self.ask("GET", f"pulls?head={owner}:{branch}&state=all&per_page=100&page={page}"):
            yield from found
            page += 1

    def open(self, branch: str) -> Any:
        """A pull request of somebody else's."""
        return self.ask("POST", "pulls", {"title": branch, "head": branch, "base": "main", "body": THEIRS})

    def set(self, number: Json, state: str) -> None:
        """Somebody else closes a pull request, or opens it again."""
        self.ask("PATCH", f"pulls/{number}", {"state": state})

    def merge(self, number: Json) -> None:
        """Somebody else merges a pull request."""
        self.ask("PUT", f"pulls/{number}/merge", {"merge_method": "merge"})


def _with_branch(hub: Hub, word: str) -> str:
    hub.branch(word)
    return word


def _ours(hub: Hub, args: Args) -> list[Any]:
    return [pull for pull in hub.pulls(str(args["branch"])) if pull["state"] == "open" and _MARKER in str(pull["body"])]


def _close_ours(hub: Hub, args: Args) -> None:
    for pull in _ours(hub, args):
        hub.set(pull["number"], "closed")


def _retitle(hub: Hub, args: Args) -> None:
    for pull in _ours(hub, args):
        hub.ask("PATCH", f"pulls/{pull['number']}", {"title": THEIRS})


def _crowd(hub: Hub, args: Args) -> None:
    """Pull requests of the same branch that were opened and closed."""
    for _ in range(CROWD):
        hub.set(hub.open(str(args["branch"]))["number"], "closed")


def _of(hub: Hub, args: Args) -> Any:
    return hub.ask("GET", f"pulls/{args['number']}")


def _reopen_and_merge(hub: Hub, args: Args) -> None:
    hub.set(args["number"], "open")
    hub.merge(args["number"])


DRAFT_PR = Subject[Hub](
    capability="git.draft_pr",
    args=lambda hub, word: {"repo": "billing", "branch": _with_branch(hub, word), "title": "Add", "body": "look"},
    effects=lambda hub, args: len(_ours(hub, args)),
    other=lambda args: {**args, "title": "Add it"},
    text="body",
    taken_away=_close_ours,
    edited=_retitle,
    kept=lambda hub, args: any(pull["title"] == THEIRS for pull in hub.pulls(str(args["branch"]))),
    crowd=_crowd,
)
CLOSE_PR = Subject[Hub](
    capability="git.close_pr",
    args=lambda hub, word: {"repo": "billing", "number": hub.open(_with_branch(hub, word))["number"]},
    effects=lambda hub, args: int(_of(hub, args)["state"] == "closed"),
    taken_away=lambda hub, args: hub.set(args["number"], "open"),
    edited=_reopen_and_merge,
    kept=lambda hub, args: bool(_of(hub, args)["merged_at"]),
    exempt=_BY_ITS_BEFORE,
)


class PullMatrix(AdapterMatrix[Hub]):
    """A subclass says how its server is started."""

    subjects = (DRAFT_PR, CLOSE_PR)

    def upstream(self, system: Hub) -> str:
        return system.url

    def adapters(self, system: Hub, address: str) -> Mapping[str, Mapping[str, Json]]:
        pulls: dict[str, Json] = {"api": address, "project": system.project, "token": "env:HUB_TOKEN"}
        remote = "https://git.invalid/billing.git"  # pull requests are the API's alone
        return {"git": {"repositories": {"billing": {"remote": remote, "pull_requests": pulls}}}}

    def secrets(self, system: Hub) -> Mapping[str, str]:
        return {"HUB_TOKEN": system.token}

    def writes(self, exchange: Exchange) -> bool:
        """Comments are corrections, and no request that a call is about."""
        return exchange.method != "GET" and not exchange.target.endswith("/comments")


# --- merges -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Host:
    """API and repositories at one address, `url`."""

    url: str
    hub: Hub
    forge: Forge


def _to_merge(host: Host, word: str) -> Args:
    pull = host.hub.open(_with_branch(host.hub, word))
    return {"repo": "billing", "number": pull["number"], "head": pull["head"]["sha"], "message": "ours"}


MERGE_PR = Subject[Host](
    capability="git.merge_pr",
    args=_to_merge,
    effects=lambda host, args: int(host.forge.has("main", _of(host.hub, args)["title"])),
    text="message",
    edited=lambda host, _: push_over(host.forge, {"branch": "main"}),
    kept=lambda host, _: theirs_stay(host.forge, {"branch": "main"}),
    takes_seconds=PUSH_SECONDS,
)


class MergeMatrix(AdapterMatrix[Host]):
    """The loopback GitHub and `git http-backend`, over one bare repository. Merges are real."""

    subjects = (MERGE_PR,)

    @contextmanager
    def system(self, folder: Path) -> Generator[Host]:
        with GitHttp(folder, wanted=BASIC) as server:
            forge = start_of(folder, server.url)
            with loopback_hub(forge) as hub, one_host(hub.url, forge.url) as url:
                yield Host(url, hub, forge)

    def upstream(self, system: Host) -> str:
        return system.url

    def adapters(self, system: Host, address: str) -> Mapping[str, Mapping[str, Json]]:
        pulls: dict[str, Json] = {"api": f"{address}{_API}", "project": system.hub.project, "token": "env:GIT_TOKEN"}
        return {"git": {"repositories": {"billing": {**over_http(address), "pull_requests": pulls}}}}

    def secrets(self, system: Host) -> Mapping[str, str]:
        return {"GIT_TOKEN": TOKEN}

    def writes(self, exchange: Exchange) -> bool:
        return pushes(exchange) or exchange.method == "PUT"


@contextmanager
def loopback_hub(forge: Forge) -> Generator[Hub]:
    """The loopback GitHub over a forge. It opens a second pull request of a branch, so that twins can be."""
    repositories = {PROJECT: str(forge.remote)}
    settings: dict[str, Any] = {"repositories": repositories, "tokens": {TOKEN: "agent"}, "one_per_head": False}
    with LoopbackSystem.start("github", settings=settings) as hub:
        yield Hub(hub.url, TOKEN, PROJECT, branch=lambda name: forge.move(name, forge.commit(name, "main")))


@contextmanager
def one_host(api: str, repositories: str) -> Generator[str]:
    """Answers the address of a server that passes on to `api` what is asked under `/api/v3`, and the rest to
    `repositories`.
    """
    server = _OneHost(api, repositories)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="one host", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _OneHost(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api: str, repositories: str) -> None:
        self.api, self.repositories = api, repositories
        super().__init__(("127.0.0.1", 0), _PassOn)


class _PassOn(BaseHTTPRequestHandler):
    """One connection: one request, by HTTP/1.0, so that its end is the end of the answer."""

    def serve(self) -> None:
        host = cast("_OneHost", self.server)
        api = self.path.startswith(f"{_API}/")
        connection = HTTPConnection(urlsplit(host.api if api else host.repositories).netloc, timeout=_PASS_SECONDS)
        try:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            connection.request(self.command, self.path.removeprefix(_API), body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = serve  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""
