"""A database that can be looked at, tried on a copy, and moved: one Protocol, two kinds.

What differs between SQLite and PostgreSQL is behind it; what a migration is and when it may run is not. An item is
one thing a migration can make, change or drop (`column:billing.note`), with its definition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from amends_migrations.faults import Unfit
from amends_migrations.notes import Note

if TYPE_CHECKING:
    from sqlalchemy import Connection

SQLITE = "sqlite:///"
POSTGRESQL = ("postgresql://", "postgresql+psycopg://", "postgres://")
TransactionStatus: TypeAlias = Literal["committed", "aborted", "in progress", "forgotten"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look: the revisions in the version table, every schema item, the order of columns per table, items that an
    earlier migration left behind half-made, and the rows found in what was asked for.
    """

    revisions: tuple[str, ...]
    items: Mapping[str, str]
    orders: Mapping[str, tuple[str, ...]]
    leftovers: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def fingerprint(self) -> str:
        """SHA-256 over items and orders, the same on every machine."""
        facts = {"items": dict(self.items), "orders": {name: list(order) for name, order in self.orders.items()}}
        return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Target(Protocol):
    """One database with its version table. Connections are fresh for each use."""

    @property
    def kind(self) -> str:
        """What a drill certificate is about besides the files: `sqlite3` or `postgresql`."""
        ...

    def look(self, droppable: Iterable[str] = ()) -> Snapshot:
        """The database now, in one read transaction. `rows` counts what each table or column among `droppable` holds:
        for a column, values that are neither NULL nor its default. Raises `OSError` or SQLAlchemy's errors.
        """
        ...

    def busy(self, marker: str) -> str:
        """Who migrates now, in words; empty if nobody does. Also a statement of the session `marker` that goes on
        after its client was killed.
        """
        ...

    def statuses(self, transactions: Sequence[int]) -> tuple[TransactionStatus, ...]:
        """What became of transactions that were noted before their commit."""
        ...

    def broken(self) -> dict[str, str]:
        """Views that cannot be read and foreign keys that lead nowhere, with why."""
        ...

    def rows_digest(self, before: Snapshot) -> str:
        """A digest of every row of the tables of `before`, in their columns then; independent of the order of rows."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection that may change the database, made for one use."""
        ...

    def migrating(
        self, *, marker: str, wait_seconds: float, limit_seconds: float, note: Note
    ) -> AbstractContextManager[Connection]:
        """The same, under the one lock per database and known as `marker`; no statement outlives `limit_seconds` where
        the server can be told so. Raises `Held` if the lock does not come free in time; it is never broken by age.
        """
        ...

    def empty_copy(self) -> AbstractContextManager[Target]:
        """A temporary database with the same schema and revision, and no rows. Raises `Unfit` if none can be made."""
        ...

    def full_copy(self) -> AbstractContextManager[Target]:
        """A temporary copy of everything, taken while others use the database. Raises `Unfit` if none can be made."""
        ...


def target_of(url: str, version_table: str) -> Target:
    """The database at `url` (as `MigrationOptions.address` gives it). Raises `Unfit` if its driver is not installed."""
    if url.startswith(SQLITE):
        from amends_migrations.sqlite.target import SqliteTarget  # noqa: PLC0415 - SQLAlchemy is heavy

        return SqliteTarget(Path(url.removeprefix(SQLITE)), version_table)
    if find_spec("psycopg") is None:
        raise Unfit("PostgreSQL needs the extra `amends-migrations[postgresql]`", code="no_driver")
    from amends_migrations.postgresql.target import PostgresqlTarget  # noqa: PLC0415 - SQLAlchemy is heavy

    return PostgresqlTarget(url, version_table)
