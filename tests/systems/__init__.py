"""The independent systems that tests talk to: installed beside the checkout, started lazily, stopped by process id.

    from systems import PostgreSQL
    with PostgreSQL.start() as postgresql:
        postgresql.database("orders")  # the address of a fresh database

Tests take the fixtures of `systems.fixtures`; `python -m systems` installs, lists and sweeps. tests/README.md tells how
to add one.
"""

from systems.catalog import BLOCKS, Block, Tier
from systems.emulate import GitHubEmulator, SlackEmulator
from systems.fast_feature import FastFeature
from systems.flagd import FlagdReader
from systems.jira820 import Jira820
from systems.localstripe import LocalStripe
from systems.mitm import HttpLine, Mitm, TcpLine
from systems.postgresql import PostgreSQL
from systems.sdks import Sdks
from systems.server import NotInstalled, Server, StartFailed
from systems.stripe_mock import StripeMock
from systems.unleash import Unleash
from systems.vendure import Vendure

__all__ = [
    "BLOCKS",
    "Block",
    "FastFeature",
    "FlagdReader",
    "GitHubEmulator",
    "HttpLine",
    "Jira820",
    "LocalStripe",
    "Mitm",
    "NotInstalled",
    "PostgreSQL",
    "Sdks",
    "Server",
    "SlackEmulator",
    "StartFailed",
    "StripeMock",
    "TcpLine",
    "Tier",
    "Unleash",
    "Vendure",
]
