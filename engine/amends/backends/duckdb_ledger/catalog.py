"""How the ledger's tables, views and metrics are described: every column with its type, unit and meaning.

The descriptions are `views.py` and `metrics.py`, the SQL `sql/views/<name>.sql` and `sql/metrics/<name>.sql`. Tests
hold them, the database and `docs/ledger.md` to one another, so none can drift.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: SQL type, unit (empty where it has none) and meaning."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class View:
    """A table or view of the ledger, with one runnable example."""

    name: str
    sentence: str
    columns: tuple[Column, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: a view of this name, and a table macro of this name that takes `(since, until)`.

    `unit` is the unit of its headline columns; `selects` says which moment puts a fact into a day and a window.
    """

    name: str
    sentence: str
    unit: str
    selects: str
    columns: tuple[Column, ...]
    example: str


def columns(text: str) -> tuple[Column, ...]:
    """Columns from lines of `name | type | unit | meaning`."""
    parts = (line.split("|") for line in text.strip().splitlines())
    return tuple(Column(*(part.strip() for part in row)) for row in parts)
