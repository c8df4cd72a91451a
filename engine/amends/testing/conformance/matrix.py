"""`AdapterMatrix`: the class an author derives from. One factory in, the whole fault matrix out.

    class TestShop(AdapterMatrix[LoopbackSystem]):
        subjects = (Subject(capability="shop.reserve", args=…, effects=…),)

        @contextmanager
        def system(self, folder):
            with LoopbackSystem.start("partner") as partner:
                yield partner

        def upstream(self, system):
            return system.url

        def adapters(self, system, address):
            return {"shop": {"plugin": "http", "base_url": address, "token": "env:SHOP_TOKEN"}}

        def secrets(self, system):
            return {"SHOP_TOKEN": "s3cret-of-the-shop"}

pytest collects the class; every test of `AboutCalls`, `AboutUndos`, `AboutContracts` and `AboutDrills` runs once per
subject.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Generic

from amends.core.canonical import Json
from amends.testing.conformance.about_calls import AboutCalls
from amends.testing.conformance.about_contracts import AboutContracts
from amends.testing.conformance.about_drills import AboutDrills
from amends.testing.conformance.about_undos import AboutUndos
from amends.testing.conformance.http_line import HttpLine
from amends.testing.conformance.line import Exchange, Line
from amends.testing.conformance.subject import S, Subject


class AdapterMatrix(AboutCalls, AboutUndos, AboutContracts, AboutDrills, ABC, Generic[S]):
    """The matrix of one adapter over one kind of system. pytest makes one instance for each test."""

    subjects: ClassVar[tuple[Subject[Any], ...]] = ()
    """The capabilities under test."""

    @abstractmethod
    def system(self, folder: Path) -> AbstractContextManager[S]:
        """Start the system; `folder` is empty and its own. One system serves all tests of a class in one process: they
        tell their things apart by the word that `Subject.args` is given.
        """

    @abstractmethod
    def upstream(self, system: S) -> str:
        """The system's address, `http://host:port`, in front of which an `HttpLine` is laid."""

    @abstractmethod
    def adapters(self, system: S, address: str) -> Mapping[str, Mapping[str, Json]]:
        """The `[adapters]` tables of `amends.toml`, by name, for a system that is reached at `address`."""

    def secrets(self, system: S) -> Mapping[str, str]:
        """Environment variables that hold the adapter's secrets. Their values are looked for in every file."""
        del system
        return {}

    def writes(self, exchange: Exchange) -> bool:
        """Whether a request changes something. Override where a read is a POST."""
        return exchange.method in {"POST", "PUT", "PATCH", "DELETE"}

    def line(self, system: S, folder: Path) -> Line:
        """The line that faults are made on; a `TcpLine` for a system that speaks something else than
        HTTP, a `CallLine` for one that has no wire.
        """
        del folder
        return HttpLine(self.upstream(system), writes=self.writes)
