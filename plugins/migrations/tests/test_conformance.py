"""The fault matrix over both directions on SQLite files; tests/real has it on PostgreSQL, also on the wire."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from amends.core.canonical import Json
from amends.testing.conformance import CallLine, Line
from systems.matrices.migrations import Databases, MigrationMatrix


class Files(Databases):
    """SQLite files beside the migrations."""

    def file(self, name: str) -> Path:
        return self.scripts.parent / f"{name}.db"

    def create(self, name: str) -> None:
        self.file(name).touch()

    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file(name), isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    def columns(self, name: str) -> Mapping[str, str]:
        return {row[1]: row[2] for row in self.execute(name, "PRAGMA table_info(billing)")}


class TestSqlite(MigrationMatrix[Files]):
    """Over files; faults are made at the adapter's own boundary."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Files]:
        yield Files(folder)

    def line(self, system: Files, folder: Path) -> Line:
        return CallLine()

    def table(self, system: Files, address: str, name: str) -> Mapping[str, Json]:
        return {"url": f"sqlite:///{system.file(name)}"}
