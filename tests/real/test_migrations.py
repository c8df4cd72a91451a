"""The fault matrix over both directions on PostgreSQL, with faults on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from amends.core.canonical import Json
from amends.testing.conformance import Line, TcpLine
from systems.matrices.migrations import Databases, MigrationMatrix
from systems.postgresql import PostgreSQL

# The session of a move is called by its action; its COMMIT is what changes something for others.
COMMIT_OF_A_MOVE = rb"application_name\x00[0-9a-f]{8}-[0-9a-f-]{27}\x00.*UPDATE alembic_version .*COMMIT"


class OnServer(Databases):
    """Databases of a cluster of their own."""

    def __init__(self, folder: Path, server: PostgreSQL) -> None:
        super().__init__(folder)
        self.server = server

    def create(self, name: str) -> None:
        self.server.execute(f"CREATE DATABASE {name}")

    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.dsn_of(name), autocommit=True) as connection:
            found = [connection.execute(statement.encode()) for statement in statements][-1]
            return found.fetchall() if found.description else []

    def columns(self, name: str) -> Mapping[str, str]:
        where = "table_name = 'billing'"
        rows = self.execute(name, f"SELECT column_name, data_type FROM information_schema.columns WHERE {where}")
        return {column: kind.upper() for column, kind in rows}


class TestPostgreSQL(MigrationMatrix[OnServer]):
    """A line stands before the server: connections are refused, and a COMMIT or its answer gets lost."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[OnServer]:
        with PostgreSQL.start() as server:
            yield OnServer(folder, server)

    def line(self, system: OnServer, folder: Path) -> Line:
        return TcpLine(f"tcp://{system.server.host}:{system.server.port}", write=COMMIT_OF_A_MOVE)

    def table(self, system: OnServer, address: str, name: str) -> Mapping[str, Json]:
        return {"url": f"postgresql://{system.server.user}@{address.removeprefix('tcp://')}/{name}"}
