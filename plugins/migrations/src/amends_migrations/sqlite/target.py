"""A SQLite file as a target."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, text

from amends_migrations.faults import Held
from amends_migrations.notes import Note
from amends_migrations.sqlite import lock, schema
from amends_migrations.target import Snapshot, TransactionStatus


class SqliteTarget:
    """`kind` is `sqlite3`. Statements commit one by one, whatever the migration means; transactions have no names."""

    kind = "sqlite3"

    def __init__(self, file: Path, version_table: str, *, lasting: bool = True) -> None:
        self._file = file
        self._version_table = version_table
        self._lasting = lasting

    def look(self, droppable: Iterable[str] = ()) -> Snapshot:
        with schema.reading(self._file) as connection:
            return schema.snapshot(connection, self._version_table, droppable)

    def busy(self, marker: str) -> str:
        del marker  # the lock is gone with the process: nothing goes on without it
        try:
            lock.require_free(self._file)
        except Held as held:
            return str(held)
        return ""

    def statuses(self, transactions: Sequence[int]) -> tuple[TransactionStatus, ...]:
        return tuple("forgotten" for _ in transactions)

    def broken(self) -> dict[str, str]:
        with schema.reading(self._file) as connection:
            return schema.broken(connection)

    def rows_digest(self, before: Snapshot) -> str:
        total = 0
        with schema.reading(self._file) as connection:
            for table, columns in sorted(before.orders.items()):
                names = ", ".join(schema.quoted(column) for column in columns)
                statement = text(f"SELECT {names} FROM {schema.quoted(table)}".replace(":", "\\:"))  # noqa: S608 - names of the schema itself
                for row in connection.execute(statement):
                    whole = hashlib.sha256(repr((table, tuple(row))).encode()).digest()
                    total = (total + int.from_bytes(whole, "big")) % 2**256
        return f"{total:064x}"

    def writing(self) -> AbstractContextManager[Connection]:
        return schema.writing(self._file, lasting=self._lasting)

    @contextmanager
    def migrating(self, *, marker: str, wait_seconds: float, limit_seconds: float, note: Note) -> Generator[Connection]:
        del limit_seconds  # a killed process leaves no statement behind
        with lock.locked(self._file, wait_seconds, marker), schema.writing(self._file) as connection:
            event.listen(connection, "before_cursor_execute", lambda *_: note.outside(), once=True)
            yield connection

    @contextmanager
    def empty_copy(self) -> Generator[SqliteTarget]:
        with self._temporary() as copy, schema.reading(self._file) as source, copy.writing() as target:
            order = "CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, rowid"
            statements = source.execute(text(f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY {order}"))  # noqa: S608 - fixed words
            for (sql,) in statements:
                _make(target, str(sql))
            for revision in schema.revisions(source, self._version_table):
                statement = f"INSERT INTO {schema.quoted(self._version_table)} VALUES (:revision)"  # noqa: S608 - a checked name
                target.execute(text(statement), {"revision": revision})
            target.commit()
            yield copy

    @contextmanager
    def full_copy(self) -> Generator[SqliteTarget]:
        with self._temporary() as copy, schema.reading(self._file) as source, copy.writing() as target:
            _driver(source).backup(_driver(target))
            yield copy

    @contextmanager
    def _temporary(self) -> Generator[SqliteTarget]:
        with tempfile.TemporaryDirectory(prefix="amends-migrations-") as folder:
            file = Path(folder) / "copy.db"
            file.touch()
            yield SqliteTarget(file, self._version_table, lasting=False)


def _make(target: Connection, sql: str) -> None:
    try:
        target.exec_driver_sql(sql)
    except Exception as error:
        if "already exists" not in str(error):  # the tables behind a virtual table come with it
            raise


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
