"""A staging database of a scenario: a SQLite file made from SQL, and what its schema is, in comparable words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_VERSIONS = "alembic_version"


def create_database(path: Path, sql: str) -> None:
    """Make a database file and run a script in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def describe_database(path: Path) -> frozenset[str]:
    """Every column, index, view, trigger and migration version, each as one line; two equal answers, equal schemas."""
    with closing(sqlite3.connect(path)) as connection:
        things = connection.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
        lines = {f"{kind}:{name}" for kind, name in things}
        for kind, name in things:
            if kind == "table":
                columns = connection.execute('SELECT name, type, "notnull" FROM pragma_table_info(?)', (name,))
                lines |= {f"column:{name}.{column}:{type_}:{required}" for column, type_, required in columns}
        if ("table", _VERSIONS) in things:
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            lines |= {f"version:{row[0]}" for row in rows}
    return frozenset(lines)
