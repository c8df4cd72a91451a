"""One fixture per system, for the whole session and started by the first test that asks; each xdist worker has its own.

A system that is not installed is an error: no test that needs one is ever skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from systems.emulate import GitHubEmulator, SlackEmulator
from systems.fast_feature import FastFeature
from systems.flagd import FlagdReader
from systems.jira820 import Jira820
from systems.localstripe import LocalStripe
from systems.mitm import Mitm
from systems.postgresql import PostgreSQL
from systems.sdks import Sdks
from systems.stripe_mock import StripeMock
from systems.unleash import Unleash
from systems.vendure import Vendure


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """PostgreSQL; take a fresh database from it: `postgresql.database("orders")`."""
    with PostgreSQL.start() as running:
        yield running


@pytest.fixture(scope="session")
def unleash(postgresql: PostgreSQL) -> Iterator[Unleash]:
    """Unleash; tests keep apart by the names of their flags."""
    with Unleash.start(postgresql) as running:
        yield running


@pytest.fixture(scope="session")
def slack_emulator() -> Iterator[SlackEmulator]:
    """Slack's Web API; tests keep apart by channels of their own or by their markers."""
    with SlackEmulator.start() as running:
        yield running


@pytest.fixture(scope="session")
def github_emulator() -> Iterator[GitHubEmulator]:
    """GitHub's REST API; tests keep apart by repositories of their own."""
    with GitHubEmulator.start() as running:
        yield running


@pytest.fixture(scope="session")
def stripe_mock() -> Iterator[StripeMock]:
    """Stripe with idempotency keys."""
    with StripeMock.start() as running:
        yield running


@pytest.fixture(scope="session")
def vendure(postgresql: PostgreSQL) -> Iterator[Vendure]:
    """A shop with one product."""
    with Vendure.start(postgresql) as running:
        yield running


@pytest.fixture(scope="session")
def mitm() -> Iterator[Mitm]:
    """The fault proxy; `mitm.line(url)` puts a line before a system."""
    with Mitm.start() as running:
        yield running


@pytest.fixture(scope="session")
def jira820() -> Iterator[Jira820]:
    """Jira Data Center 8.20; tests keep apart by issues of their own."""
    with Jira820.start() as running:
        yield running


@pytest.fixture(scope="session")
def localstripe() -> Iterator[LocalStripe]:
    """Stripe without idempotency."""
    with LocalStripe.start() as running:
        yield running


@pytest.fixture(scope="session")
def fast_feature() -> Iterator[FastFeature]:
    """A flag server with OFREP."""
    with FastFeature.start() as running:
        yield running


@pytest.fixture(scope="session")
def flagd_reader() -> FlagdReader:
    """OpenFeature's reader of flagd files."""
    return FlagdReader.ready()


@pytest.fixture(scope="session")
def sdks() -> Sdks:
    """The SDKs of Slack, Jira and Stripe."""
    return Sdks.ready()
