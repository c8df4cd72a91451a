"""The conformance kit: write one factory, get the fault matrix of an adapter (docs/adapter-in-an-hour.md)."""

from __future__ import annotations

from amends.testing.conformance.call_line import CallLine
from amends.testing.conformance.http_line import HttpLine
from amends.testing.conformance.line import Exchange, Fault, Line
from amends.testing.conformance.matrix import AdapterMatrix
from amends.testing.conformance.subject import Args, Denial, Subject
from amends.testing.conformance.tcp_line import TcpLine

__all__ = [
    "AdapterMatrix",
    "Args",
    "CallLine",
    "Denial",
    "Exchange",
    "Fault",
    "HttpLine",
    "Line",
    "Subject",
    "TcpLine",
]
