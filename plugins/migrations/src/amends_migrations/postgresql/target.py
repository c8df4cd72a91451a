"""A PostgreSQL database as a target."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, text

from amends_migrations.delta import difference
from amends_migrations.faults import Unfit
from amends_migrations.notes import Note
from amends_migrations.postgresql import catalog, ddl, sessions
from amends_migrations.postgresql.scratch import scratch
from amends_migrations.target import Snapshot, TransactionStatus

_TABLES = f"""SELECT CAST(CAST(c.oid AS regclass) AS text), (
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND {catalog.USERS} AND (:every OR c.oid = :version)"""  # noqa: S608 - constants


class PostgresqlTarget:
    """`kind` is `postgresql`. The whole path is one transaction, but for what the files take out of it."""

    kind = "postgresql"

    def __init__(self, url: str, version_table: str) -> None:
        self._url = url
        self._version_table = version_table

    def look(self, droppable: Iterable[str] = ()) -> Snapshot:
        with sessions.looking(self._url) as connection:
            return catalog.snapshot(connection, self._version_table, droppable)

    def busy(self, marker: str) -> str:
        with sessions.connected(self._url, "amends look") as connection:
            return sessions.at_work(connection, self._version_table, marker)

    def statuses(self, transactions: Sequence[int]) -> tuple[TransactionStatus, ...]:
        if not transactions:
            return ()
        with sessions.connected(self._url, "amends look") as connection:
            return sessions.statuses(connection, transactions)

    def broken(self) -> dict[str, str]:
        return {}  # the server lets nothing dangle

    def rows_digest(self, before: Snapshot) -> str:
        with sessions.looking(self._url) as connection:
            return catalog.rows_digest(connection, self._version_table, before)

    def writing(self) -> AbstractContextManager[Connection]:
        return sessions.connected(self._url, "amends rehearsal")

    @contextmanager
    def migrating(self, *, marker: str, wait_seconds: float, limit_seconds: float, note: Note) -> Generator[Connection]:
        watch = sessions.Watch(note, wait_seconds)
        with sessions.connected(self._url, marker, watch=watch) as connection:
            sessions.lock(connection, self._version_table, wait_seconds=wait_seconds)
            sessions.limit(connection, limit_seconds)
            yield connection

    def empty_copy(self) -> AbstractContextManager[PostgresqlTarget]:
        return self._copy(rows=False)

    def full_copy(self) -> AbstractContextManager[PostgresqlTarget]:
        return self._copy(rows=True)

    @contextmanager
    def _copy(self, *, rows: bool) -> Generator[PostgresqlTarget]:
        with scratch(self._url) as url:
            copy = PostgresqlTarget(url, self._version_table)
            with sessions.looking(self._url) as source, copy.writing() as target:
                version = catalog.version_oid(source, self._version_table)
                wanted = catalog.snapshot(source, self._version_table)
                ddl.make_again(source, target, lambda: _fill(source, target, version, every=rows))
            _require_true(wanted, copy.look())
            yield copy


def _require_true(wanted: Snapshot, made: Snapshot) -> None:
    """A rehearsal on something else than the database proves nothing."""
    whole = {name: what for name, what in wanted.items.items() if name not in wanted.leftovers}
    unlike, _ = difference(whole, made.items)
    if unlike or wanted.revisions != made.revisions:
        names = ", ".join(sorted(unlike)) or "the revision"
        raise Unfit(f"no true copy of the database can be made; it differs in {names}", code="no_copy")


def _fill(source: Connection, target: Connection, version: int, *, every: bool) -> None:
    """Copy the rows of the version table, or of every table and the state of every sequence."""
    tables = source.execute(text(_TABLES), {"every": every, "version": version})
    for table, columns in tables.all():
        if columns:
            _copy_rows(source, target, table, columns)
    if every:
        states = source.exec_driver_sql(
            "SELECT format('SELECT setval(%%L, %%s)', format('%%I.%%I', schemaname, sequencename), last_value)"
            " FROM pg_sequences WHERE last_value IS NOT NULL"
        )
        for (statement,) in states.all():
            target.exec_driver_sql(statement.replace("%", "%%"))


def _copy_rows(source: Connection, target: Connection, table: str, columns: str) -> None:
    with _cursor(source) as reader, _cursor(target) as writer:
        out = reader.copy(f"COPY (SELECT {columns} FROM ONLY {table}) TO STDOUT (FORMAT binary)")  # noqa: S608 - names of the catalogue
        into = writer.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)")
        with out as rows, into as sink:
            for block in rows:
                sink.write(block)


def _cursor(connection: Connection) -> Any:
    driver: Any = connection.connection.driver_connection
    return driver.cursor()
