"""A bare client over a real socket, so that what a fault does to the line is seen and not guessed."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from amends.testing.loopback import LoopbackSystem

CREDENTIALS = {
    "partner": "Bearer partner-token",
    "unleash": "*:*.unleash-admin",
    "jira": "Basic " + base64.b64encode(b"agent@example.test:jira-token").decode(),
    "slack": "Bearer xoxb-loopback",
    "portal": "",
}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class Client:
    """Sends one request per connection and never sends one twice."""

    def __init__(self, system: LoopbackSystem, credential: str | None = None) -> None:
        self.system = system
        self.credential = CREDENTIALS[system.name] if credential is None else credential

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 5.0,
    ) -> Answer:
        address = urlsplit(self.system.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self.credential:
            sent["Authorization"] = self.credential
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if form is not None:
            content, sent["Content-Type"] = urlencode(form).encode(), "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


def _system(name: str) -> Iterator[Client]:
    with LoopbackSystem.start(name) as system:
        yield Client(system)


@pytest.fixture
def partner() -> Iterator[Client]:
    yield from _system("partner")


@pytest.fixture
def unleash() -> Iterator[Client]:
    yield from _system("unleash")


@pytest.fixture
def jira() -> Iterator[Client]:
    yield from _system("jira")


@pytest.fixture
def slack() -> Iterator[Client]:
    yield from _system("slack")


@pytest.fixture
def portal() -> Iterator[Client]:
    yield from _system("portal")
