"""One statement of people's SQL, bounded in rows and time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import cast

import duckdb

from amends.backends.duckdb_ledger.connection import Unreadable, first_line, is_damage
from amends.core.errors import AmendsError, InvalidInput, SystemUnavailable
from amends.ports.ledger import SqlValue, Table

_INTERRUPT_AGAIN_SECONDS = 0.05


def run(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Sequence[SqlValue],
    *,
    max_rows: int,
    give_up: float,
    timeout_seconds: float,
    as_of_us: int,
) -> Table:
    """The answer to one statement; `give_up` is a reading of `time.monotonic`. Raises `InvalidInput` with the
    database's words, `SystemUnavailable` when the time is over or memory runs out, `Unreadable` for a damaged file.
    """
    with _interrupted_at(connection, give_up) as expired:
        try:
            statement = _only_statement(connection, sql)
            connection.execute(f"SET VARIABLE as_of_us = {as_of_us:d}::BIGINT")
            answer = connection.execute(statement, list(parameters))
            names = tuple(str(column[0]) for column in answer.description or ())
            rows = answer.fetchmany(max_rows + 1) if names else []
        except duckdb.Error as error:
            raise _translated(error, expired=expired.is_set(), timeout_seconds=timeout_seconds) from error
    shown = tuple(tuple(plain(value) for value in row) for row in rows[:max_rows])
    return Table(columns=names, rows=shown, truncated=len(rows) > max_rows)


def plain(value: object) -> SqlValue:
    """A database value as a port value: times as ISO text in UTC, durations in seconds, structures as JSON text."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time_of_day):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = {str(key): plain(item) for key, item in cast("dict[object, object]", value).items()}
        return json.dumps(fields, default=str, ensure_ascii=False)
    return str(value)


def _only_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the query holds a lone surrogate", hint="send valid Unicode") from None
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InvalidInput(f"the query has {len(statements)} statements", hint="send one statement at a time")
    return statements[0]


@contextmanager
def _interrupted_at(connection: duckdb.DuckDBPyConnection, give_up: float) -> Generator[threading.Event]:
    done, expired = threading.Event(), threading.Event()

    def watch() -> None:
        if done.wait(max(give_up - time.monotonic(), 0)):
            return
        expired.set()
        connection.interrupt()
        while not done.wait(_INTERRUPT_AGAIN_SECONDS):  # an interrupt between two calls is lost
            connection.interrupt()

    watcher = threading.Thread(target=watch, name="amends-ledger-query", daemon=True)
    watcher.start()
    try:
        yield expired
    finally:
        done.set()
        watcher.join()


def _translated(error: duckdb.Error, *, expired: bool, timeout_seconds: float) -> AmendsError:
    words = first_line(error)
    if isinstance(error, duckdb.InterruptException) and expired:
        return SystemUnavailable(
            f"the query took longer than {timeout_seconds:g} s", hint="narrow it, or allow it more time"
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return SystemUnavailable(
            f"the query needs more memory than it may have: {words}", hint="narrow it, or raise the memory limit"
        )
    if is_damage(error):
        return Unreadable(f"the ledger file is damaged: {words}", hint="refresh: it is made anew from the journal")
    return InvalidInput(
        f"the query is refused: {words}", hint="docs/ledger.md lists tables and columns", detail=str(error)
    )
