"""A partner over real sockets, the http adapter on it, and calls as the engine makes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import pytest

from amends.core.canonical import Json, normalise_map
from amends.spi import AdapterContext, Call, Capability, DoctorFinding, Observation, PolicyContribution
from amends.testing.loopback import LoopbackSystem
from amends_http import plugin

TOKENS = {
    "env:TOKEN": "partner-token",
    "env:OTHER": "other-token",
    "env:BAD": "nobody",
    "env:STRIPE": "sk_test_amends",
}


@dataclass
class Shelf:
    """What the hooks registered."""

    capabilities: dict[str, Capability] = field(default_factory=dict)
    contributions: list[PolicyContribution] = field(default_factory=list)
    examinations: list[Callable[[], list[DoctorFinding]]] = field(default_factory=list)

    def capability(self, capability: Capability) -> None:
        self.capabilities[capability.contract.capability] = capability

    def policies(self, contribution: PolicyContribution) -> None:
        self.contributions.append(contribution)

    def doctor(self, examine: Callable[[], list[DoctorFinding]]) -> None:
        self.examinations.append(examine)


def context(url: str, base_path: Path, name: str = "partner", **options: Json) -> AdapterContext:
    given: dict[str, Json] = {
        "base_url": url,
        "contracts": "package:partner",
        "token": "env:TOKEN",
        "account": "acct_main",
        **options,
    }
    return AdapterContext(name, name, "acme", "sandbox", given, TOKENS.__getitem__, str(base_path))


def load(where: AdapterContext) -> Shelf:
    shelf = Shelf()
    plugin.amends_register_capabilities(where, shelf)
    plugin.amends_register_policies(where, shelf)
    plugin.amends_register_doctor(where, shelf)
    return shelf


@dataclass
class Driver:
    """Calls a capability the way the engine does, and remembers what the engine would record."""

    capability: Capability
    args: Mapping[str, Any]
    action: str = "act-1"
    action_id: str = ""  # a twin's own id: it is looked up under the marker of the action it is a twin of
    timeout_seconds: float = 3.0
    before: dict[str, Json] = field(default_factory=dict)
    after: dict[str, Json] = field(default_factory=dict)
    effect: dict[str, Json] = field(default_factory=dict)
    reference: str = ""

    def call(self, rung: str = "", observed: Observation | None = None, undo: str = "undo-1", **changes: Any) -> Call:
        arguments = self.capability.arguments.model_validate(dict(self.args)).model_dump(mode="json")
        known: dict[str, Any] = {
            "run_id": "run-1",
            "action_id": self.action_id or self.action,
            "marker": self.action,
            "idempotency_key": f"key-{self.action}",
            "args": normalise_map(arguments),
            "before": self.before,
            "allocated": {},
            "effect": self.effect,
            "after": self.after,
            "reference": self.reference,
            "attempt": 1,
            "sent_at_us": None,
            "timeout_seconds": self.timeout_seconds,
            "secret": {"env:CARD": "card-canary"}.__getitem__,
            "deadline_us": 0,
            "still_wanted": lambda: True,
            "rung": rung,
            "undo_key": f"key-{undo}",
            "undo_marker": undo,
            "observed": observed,
        }
        return Call(**{**known, **changes})

    def prepare(self) -> None:
        self.before = normalise_map(dict(self.capability.prepare(self.call()).before))

    def do(self) -> Any:
        self.prepare()
        receipt = self.capability.do(self.call())
        self.reference = receipt.reference
        self.effect = normalise_map(dict(receipt.effect))
        self.after = normalise_map(dict(getattr(receipt, "after", {})))
        return receipt

    def probe(self) -> Observation:
        return self.capability.probe(self.call())

    def undo(self, rung: str, **changes: Any) -> Any:
        return self.capability.undo(self.call(rung, self.probe(), **changes))

    def verify(self) -> Observation:
        return self.capability.verify_undone(self.call())


@pytest.fixture
def partner() -> Iterator[LoopbackSystem]:
    with LoopbackSystem.start("partner") as system:
        yield system
        assert system.unfired() == [], "a fault that was armed never fired"


@pytest.fixture
def shelf(partner: LoopbackSystem, tmp_path: Path) -> Shelf:
    return load(context(partner.url, tmp_path))


@pytest.fixture
def driver(shelf: Shelf) -> Callable[..., Driver]:
    def make(name: str, action: str = "act-1", **args: Any) -> Driver:
        return Driver(shelf.capabilities[f"partner.{name}"], args, action)

    return make


@pytest.fixture
def tokens() -> dict[str, str]:
    """What secret references resolve to."""
    return TOKENS


@pytest.fixture
def make_driver() -> Callable[..., Driver]:
    """A driver of any capability."""

    def make(capability: Capability, action: str = "act-1", **args: Any) -> Driver:
        return Driver(capability, args, action)

    return make


@dataclass(frozen=True)
class Heard:
    """One request as a scripted partner heard it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


Say: TypeAlias = Callable[[Heard], tuple[int, Mapping[str, str], Any]]


@dataclass
class Scripted:
    """A partner that answers as a test says, and keeps what it heard."""

    url: str
    heard: list[Heard]


@pytest.fixture
def scripted() -> Iterator[Callable[[Say], Scripted]]:
    """Start partners that answer by a function: status, headers, JSON body."""
    servers: list[ThreadingHTTPServer] = []

    def start(say: Say) -> Scripted:
        heard: list[Heard] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                parts = urlsplit(self.path)
                size = int(self.headers.get("Content-Length") or 0)
                names = {name.lower(): value for name, value in self.headers.items()}
                heard.append(
                    Heard(self.command, parts.path, dict(parse_qsl(parts.query)), names, self.rfile.read(size))
                )
                status, headers, body = say(heard[-1])
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer  # noqa: N815 - the base class looks for these names

            def log_message(self, *_: object) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return Scripted(f"http://127.0.0.1:{server.server_port}", heard)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def adapter(tmp_path: Path) -> Callable[..., Shelf]:
    """Load an adapter with other options, or with contract files of one's own (`files`: name -> text)."""

    def make(
        url: str = "http://127.0.0.1:9", files: Mapping[str, str] | None = None, name: str = "partner", **options: Json
    ) -> Shelf:
        if files is not None:
            folder = tmp_path / "contracts"
            folder.mkdir(exist_ok=True)
            for file, text in files.items():
                (folder / file).write_text(text)
            options["contracts"] = "contracts"
        return load(context(url, tmp_path, name, **options))

    return make
