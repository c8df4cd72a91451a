"""The fault matrix of `migrations.upgrade` and `migrations.downgrade`, over databases of any kind.

Each call moves a database of its own: `billing` with two rows, between the revisions `r1` and `r2` (the column `note`
and its index). All share one folder of migration files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Subject

FILES = {
    "r1": """
from alembic import op
import sqlalchemy as sa

revision, down_revision = "r1", None


def upgrade():
    op.create_table("billing", sa.Column("id", sa.Integer, primary_key=True), sa.Column("amount", sa.Integer))


def downgrade():
    op.drop_table("billing")
""",
    "r2": """
from alembic import op
import sqlalchemy as sa

revision, down_revision = "r2", "r1"


def upgrade():
    op.add_column("billing", sa.Column("note", sa.String(20)))
    op.create_index("ix_note", "billing", ["note"])


def downgrade():
    op.drop_index("ix_note", "billing")
    op.drop_column("billing", "note")
""",
}
AT_R1 = (
    "CREATE TABLE billing (id INTEGER NOT NULL PRIMARY KEY, amount INTEGER)",
    "INSERT INTO billing VALUES (1, 42), (2, 7)",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
    "INSERT INTO alembic_version VALUES ('r1')",
)
UP = (
    "ALTER TABLE billing ADD COLUMN note VARCHAR(20)",
    "CREATE INDEX ix_note ON billing (note)",
    "UPDATE alembic_version SET version_num = 'r2'",
)
DOWN = (
    "DROP INDEX ix_note",
    "ALTER TABLE billing DROP COLUMN note",
    "UPDATE alembic_version SET version_num = 'r1'",
)
_TAKES_SECONDS = 15.0  # a runner starts, imports Alembic, and tries the files on a copy
LOOKED_AFTER = {
    "test_a_200_that_did_nothing_is_not_recorded_as_an_effect": "nobody stands between the adapter and its runner who"
    " could answer for it, and the runner has looked at the database after the move"
}


class Databases(ABC):
    """Databases of one kind, by number, and the one folder of migration files."""

    def __init__(self, folder: Path) -> None:
        self.scripts = folder / "migrations"
        self.made = 0
        versions = self.scripts / "versions"
        versions.mkdir(parents=True)
        for revision, text in FILES.items():
            (versions / f"{revision}.py").write_text(text, encoding="utf-8")

    @abstractmethod
    def create(self, name: str) -> None:
        """Make an empty database."""

    @abstractmethod
    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as another client, each for itself; the rows of the last one."""

    @abstractmethod
    def columns(self, name: str) -> Mapping[str, str]:
        """The columns of `billing` with their types, asked of the database's own catalogue."""

    def at(self, *statements: str) -> str:
        """A fresh database after these statements; its name."""
        self.made += 1
        name = f"d{self.made}"
        self.create(name)
        self.execute(name, *statements)
        return name

    def near(self) -> list[str]:
        """The databases of one test: it makes two at most, before its project is written or after that."""
        return [f"d{number}" for number in range(max(1, self.made - 1), self.made + 3)]


D = TypeVar("D", bound=Databases)


def _name(args: Args) -> str:
    return str(args["database"])


UPGRADE: Subject[Databases] = Subject(
    capability="migrations.upgrade",
    args=lambda databases, _: {"database": databases.at(*AT_R1), "to": "r2"},
    effects=lambda databases, args: int("note" in databases.columns(_name(args))),
    other=lambda args: {**args, "to": "head"},
    taken_away=lambda databases, args: _run(databases, args, *DOWN),
    edited=lambda databases, args: _run(databases, args, "UPDATE billing SET note = 'theirs' WHERE id = 1"),
    kept=lambda databases, args: (
        databases.execute(_name(args), "SELECT id FROM billing WHERE note = 'theirs'") == [(1,)]
    ),
    takes_seconds=_TAKES_SECONDS,
    exempt=LOOKED_AFTER,
)
DOWNGRADE: Subject[Databases] = Subject(
    capability="migrations.downgrade",
    args=lambda databases, _: {"database": databases.at(*AT_R1, *UP), "to": "r1"},
    effects=lambda databases, args: int("note" not in databases.columns(_name(args))),
    other=lambda args: {**args, "to": "base"},
    taken_away=lambda databases, args: _run(databases, args, *UP),
    edited=lambda databases, args: _run(databases, args, "ALTER TABLE billing ADD COLUMN note INTEGER"),
    kept=lambda databases, args: databases.columns(_name(args)).get("note") == "INTEGER",
    takes_seconds=_TAKES_SECONDS,
    exempt=LOOKED_AFTER,
)


def _run(databases: Databases, args: Args, *statements: str) -> None:
    databases.execute(_name(args), *statements)


class MigrationMatrix(AdapterMatrix[D], Generic[D]):
    """Both directions. A kind of database says how its addresses look."""

    subjects: ClassVar[tuple[Subject[Any], ...]] = (UPGRADE, DOWNGRADE)

    @abstractmethod
    def table(self, system: D, address: str, name: str) -> Mapping[str, Json]:
        """What `[adapters.migrations.databases.NAME]` says about where the database is."""

    def upstream(self, system: D) -> str:
        del system
        return ""

    def adapters(self, system: D, address: str) -> Mapping[str, Mapping[str, Json]]:
        databases: dict[str, Json] = {
            name: {**self.table(system, address, name), "scripts": str(system.scripts)} for name in system.near()
        }
        return {"migrations": {"databases": databases}}
