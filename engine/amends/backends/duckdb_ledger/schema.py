"""The SQL of the ledger, as packaged: tables once, views and metrics anew whenever their text changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from operator import attrgetter

import duckdb

from amends.backends.duckdb_ledger.metrics import METRICS
from amends.backends.duckdb_ledger.views import VIEWS
from amends.ports.journal import EVENT_COLUMNS, EventRecord

COLUMNS = ("seq", *EVENT_COLUMNS, "prev_hash", "hash")  # of an event, in the ledger and in a sealed file
NUMBERS = frozenset({"seq", "ts_us", "run_seq", "generation", "attempt", "epoch"})
columns_of: Callable[[EventRecord], tuple[object, ...]] = attrgetter(*EVENT_COLUMNS)
TABLE_VERSION = 2  # of sql/tables.sql and sql/planned.sql: another number makes every mirror anew
TABLES = ("events", "problems")


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables and everything above them in an empty database."""
    connection.execute(text("tables.sql"))
    connection.execute("INSERT INTO internal.mirror VALUES (?, '', '', 0, '', 0)", [TABLE_VERSION])
    create_views(connection)


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Make views and metrics as this version has them, and drop those it no longer has."""
    for name, kind in connection.execute(_FOUND).fetchall():
        connection.execute(f'DROP {kind} "{name}"')
    connection.execute(text("internal.sql"))
    for view in VIEWS:
        if view.name not in TABLES:
            connection.execute(f"CREATE VIEW {view.name} AS {text(f'views/{view.name}.sql')}")
    for metric in METRICS:
        name, select = metric.name, text(f"metrics/{metric.name}.sql")
        connection.execute(f"CREATE MACRO {name}(since, until) AS TABLE {select}")
        connection.execute(f"CREATE VIEW {name} AS FROM {name}('-infinity', 'infinity')")
    connection.execute("UPDATE internal.mirror SET sql_digest = ?", [sql_digest()])


@cache
def sql_digest() -> str:
    """Identity of the SQL that this version would install."""
    names = ["internal.sql"]
    names += [f"views/{view.name}.sql" for view in VIEWS if view.name not in TABLES]
    names += [f"metrics/{metric.name}.sql" for metric in METRICS]
    return hashlib.sha256("\0".join(text(name) for name in names).encode()).hexdigest()


@cache
def text(name: str) -> str:
    """A packaged SQL file."""
    return files("amends.backends.duckdb_ledger").joinpath("sql", *name.split("/")).read_text(encoding="utf-8")


_FOUND = """
SELECT view_name, 'VIEW' FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal
UNION ALL
SELECT DISTINCT function_name, 'MACRO TABLE' FROM duckdb_functions()
WHERE schema_name = 'main' AND NOT internal AND function_type = 'table_macro'
"""
