"""Trying a migration where it can hurt nobody: on an empty copy of the schema, or on a full copy for a drill."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from amends_migrations import schema, scripts
from amends_migrations.schema import Snapshot
from amends_migrations.scripts import Step, Unfit


@contextmanager
def empty_copy(file: Path, version_table: str) -> Generator[Path]:
    """A temporary database with the same schema and revision, and no rows."""
    with _temporary() as copy, schema.reading(file) as source, schema.writing(copy) as target:
        order = "CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, rowid"
        statements = source.execute(text(f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY {order}"))  # noqa: S608 - fixed words
        for (sql,) in statements:
            _make(target, str(sql))
        rows = _version_rows(source, version_table)
        for revision in rows:
            statement = f"INSERT INTO {schema.quoted(version_table)} VALUES (:revision)"  # noqa: S608 - a checked name
            target.execute(text(statement), {"revision": revision})
        target.commit()
        yield copy


@contextmanager
def full_copy(file: Path) -> Generator[Path]:
    """A temporary copy of everything, taken while others use the database."""
    with _temporary() as copy, schema.reading(file) as source, schema.writing(copy) as target:
        _driver(source).backup(_driver(target))
        yield copy


def look(file: Path, version_table: str) -> Snapshot:
    """The database now."""
    with schema.reading(file) as connection:
        return schema.snapshot(connection, version_table)


def go(file: Path, steps: Sequence[Step], *, up: bool, version_table: str) -> None:
    """Run the steps. Raises whatever they raise."""
    with schema.writing(file) as connection:
        scripts.run(connection, steps, up=up, version_table=version_table)


def attempt(file: Path, steps: Sequence[Step], *, up: bool, version_table: str) -> Snapshot:
    """Run the steps on an empty copy of the database as it is now; the schema they lead to.

    Raises `Unfit` naming what stands in the way: an error, a view that would break, a foreign key left hanging.
    """
    with empty_copy(file, version_table) as copy:
        with schema.reading(copy) as connection:
            broken_before = schema.broken(connection)
        try:
            go(copy, steps, up=up, version_table=version_table)
        except Exception as error:
            raise Unfit(f"tried on an empty copy, it fails: {_said(error)}", code="blocked") from error
        with schema.reading(copy) as connection:
            broken_after = schema.broken(connection)
        news = {name: why for name, why in broken_after.items() if name not in broken_before}
        if news:
            raise Unfit(
                "it would break " + "; ".join(f"{name} ({why})" for name, why in sorted(news.items())), code="blocked"
            )
        return look(copy, version_table)


def rows_digest(file: Path, before: Snapshot) -> str:
    """A digest of every row of the tables of `before`, in their columns then; independent of the order of rows."""
    total = 0
    with schema.reading(file) as connection:
        for table, columns in sorted(before.orders.items()):
            names = ", ".join(schema.quoted(column) for column in columns)
            statement = text(f"SELECT {names} FROM {schema.quoted(table)}".replace(":", "\\:"))  # noqa: S608 - names of the schema itself
            for row in connection.execute(statement):
                whole = hashlib.sha256(repr((table, tuple(row))).encode()).digest()
                total = (total + int.from_bytes(whole, "big")) % 2**256
    return f"{total:064x}"


@contextmanager
def _temporary() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="amends-migrations-") as folder:
        file = Path(folder) / "copy.db"
        file.touch()
        yield file


def _make(target: Connection, sql: str) -> None:
    try:
        target.exec_driver_sql(sql)
    except Exception as error:
        if "already exists" not in str(error):  # the tables behind a virtual table come with it
            raise


def _version_rows(source: Connection, version_table: str) -> tuple[str, ...]:
    return schema.snapshot(source, version_table).revisions


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _said(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error)
