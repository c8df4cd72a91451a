"""`amends sql`: ask the ledger. Read-only, bounded, exact at the moment of asking."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable

import click

from amends.core.errors import UnknownName
from amends.ports.ledger import Table
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option


@click.command()
@click.argument("query")
@click.argument("name", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--limit", default=1000, show_default=True, type=click.IntRange(1), help="At most so many rows.")
@output_option
def sql(session: Session, query: str, name: str | None, limit: int, *, as_csv: bool) -> None:
    """Ask the ledger in SQL, after everything of the journal has been mirrored.

    QUERY is one read-only statement; or `metrics`: every metric and what it says; `metrics NAME`: its rows; `views`:
    the tables and views, `views NAME`: the columns of one.
    """
    if query not in {"metrics", "views"} and name:
        raise click.UsageError("put the statement in quotes: it is one argument")
    with desk(session) as engine:
        if query == "metrics" and not name:
            table = _metrics(engine.sql)
        elif query == "views":
            table = _views(name)
        else:
            table = engine.sql(_rows_of(name) if name else query, max_rows=limit)
    _show(session, table, as_csv=as_csv)


def _metrics(ask: Callable[[str], Table]) -> Table:
    """Every metric, with the number of rows (one a day, tenant, workflow, …) it has now."""
    from amends.backends.duckdb_ledger import METRICS

    rows = tuple((m.name, m.unit, len(ask(_rows_of(m.name)).rows), m.sentence) for m in METRICS)
    return Table(("metric", "unit", "rows", "says"), rows)


def _rows_of(metric: str) -> str:
    """The statement for all rows of a metric. Raises `UnknownName`."""
    from amends.backends.duckdb_ledger import METRICS

    known = [one.name for one in METRICS]
    if metric not in known:
        raise UnknownName(f"no metric `{metric}`", hint=f"the metrics are {', '.join(known)}")
    return f"FROM {metric}"


def _views(name: str | None) -> Table:
    from amends.backends.duckdb_ledger import VIEWS

    if name is None:
        return Table(("view", "says"), tuple((view.name, view.sentence) for view in VIEWS))
    for view in VIEWS:
        if view.name == name:
            columns = tuple((column.name, column.type, column.unit, column.meaning) for column in view.columns)
            return Table(("column", "type", "unit", "meaning"), columns)
    raise UnknownName(f"no view `{name}`", hint="`amends sql views` lists them")


def _show(session: Session, table: Table, *, as_csv: bool) -> None:
    if session.output.as_json:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        session.output.document({"columns": list(table.columns), "rows": rows, "truncated": table.truncated})
        return
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([table.columns, *table.rows])
    else:
        session.output.table(table.columns, table.rows)
    if table.truncated:
        session.output.say(f"cut after {len(table.rows)} rows; raise --limit", "yellow")
