"""What a SQLite database looks like: its revision and its schema as comparable items. Reads only, through SQLAlchemy.

Actions are judged by the items they touch, so that somebody else's table on a shared database makes nobody's
migration doubtful; the fingerprint is over everything, the version table apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from amends_migrations.target import Snapshot

_BUSY_SECONDS = 5.0
_BATCH_PREFIX = "_alembic_tmp_"  # a batch operation's new table, until it takes the old one's name
_EXPRESSION = -2  # the column number of an indexed expression


@contextmanager
def reading(file: Path) -> Generator[Connection]:
    """A read-only connection; no file is created. Raises `OSError` or SQLAlchemy's errors if it cannot be read."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no database at `{file}`")
    with _connection(f"file:{_uri(file)}?mode=ro&uri=true") as connection:
        connection.exec_driver_sql("BEGIN")  # one state for all reads; the driver begins nothing for them by itself
        yield connection


@contextmanager
def writing(file: Path, *, lasting: bool = True) -> Generator[Connection]:
    """A connection that may change the database, made for one use. What is not lasting need not survive a crash."""
    with _connection(f"file:{_uri(file)}?mode=rw&uri=true") as connection:
        if not lasting:
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
            connection.commit()
        yield connection


@contextmanager
def _connection(database: str) -> Generator[Connection]:
    engine = create_engine(f"sqlite:///{database}", poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _uri(file: Path) -> str:
    return file.as_uri().removeprefix("file://")


def snapshot(connection: Connection, version_table: str, droppable: Iterable[str] = ()) -> Snapshot:
    """Look at the database, in one read transaction; see `Target.look`."""
    kept = [table for table in _names(connection, "table") if table != version_table]
    return Snapshot(
        revisions=revisions(connection, version_table),
        items={name: _canonical(definition) for name, definition in _items(connection, kept)},
        orders={table: tuple(column["name"] for column in _columns(connection, table)) for table in kept},
        leftovers=tuple(f"table:{table}" for table in kept if table.startswith(_BATCH_PREFIX)),
        rows=_occupied(connection, droppable),
    )


def revisions(connection: Connection, version_table: str) -> tuple[str, ...]:
    """What the version table says; nothing if it is not there."""
    if version_table not in _names(connection, "table"):
        return ()
    rows = connection.execute(text(f"SELECT version_num FROM {quoted(version_table)} ORDER BY 1"))  # noqa: S608 - a checked name
    return tuple(str(row[0]) for row in rows)


def broken(connection: Connection) -> dict[str, str]:
    """Views that cannot be read and foreign keys that lead nowhere, with why."""
    found: dict[str, str] = {}
    tables = set(_names(connection, "table"))
    for view in _names(connection, "view"):
        try:
            connection.execute(text(f"SELECT * FROM {quoted(view)} LIMIT 0"))  # noqa: S608 - names of the schema itself
        except Exception as error:  # noqa: BLE001 - whatever the driver raises: the view does not work
            found[f"view `{view}`"] = str(getattr(error, "orig", error))
    for table in sorted(tables):
        for row in _pragma(connection, "foreign_key_list", table):
            if row["table"] not in tables:
                found[f"table `{table}`"] = f"its foreign key refers to `{row['table']}`"
    return found


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _occupied(connection: Connection, droppable: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in droppable:
        kind, _, rest = name.partition(":")
        table, _, column = rest.partition(".")
        known = {facts["name"]: facts for facts in _columns(connection, table)}
        if not known or (kind == "column" and column not in known):
            continue
        condition = ""
        if kind == "column":
            default = known[column]["dflt_value"]
            condition = f" WHERE {quoted(column)} IS NOT NULL"
            condition += f" AND {quoted(column)} IS NOT ({default})" if default is not None else ""
        count = connection.execute(text(f"SELECT count(*) FROM {quoted(table)}{_literal(condition)}"))  # noqa: S608 - names of the schema itself
        found[name] = int(count.scalar_one())
    return found


def _items(connection: Connection, tables: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    flags = {row["name"]: row for row in _rows(connection, "PRAGMA table_list")}
    for table in tables:
        listed = flags.get(table, {})
        yield f"table:{table}", {"without_rowid": listed.get("wr", 0), "strict": listed.get("strict", 0)}
        for column in _columns(connection, table):
            facts = {key: column[key] for key in ("type", "notnull", "dflt_value", "pk", "hidden")}
            yield f"column:{table}.{column['name']}", facts
        yield from _constraints(connection, table)
    for kind in ("view", "trigger"):
        for row in _rows(connection, f"SELECT name, sql FROM sqlite_master WHERE type = '{kind}' ORDER BY name"):  # noqa: S608 - two words
            yield f"{kind}:{row['name']}", {"sql": _spaced(row["sql"])}


def _constraints(connection: Connection, table: str) -> Iterator[tuple[str, dict[str, Any]]]:
    keys: dict[int, list[dict[str, Any]]] = {}
    for row in _pragma(connection, "foreign_key_list", table):
        keys.setdefault(row["id"], []).append(row)
    for parts in keys.values():
        pairs = [f"{part['from']}->{part['to']}" for part in sorted(parts, key=lambda part: part["seq"])]
        rules = {"on_update": parts[0]["on_update"], "on_delete": parts[0]["on_delete"]}
        yield f"foreign:{table}:{parts[0]['table']}:{','.join(pairs)}", rules
    for index in _pragma(connection, "index_list", table):
        keys_of = [row for row in _pragma(connection, "index_xinfo", index["name"]) if row["key"]]
        columns = [[row["name"], row["desc"], row["coll"]] for row in keys_of]
        found = _rows(connection, "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = :name", index["name"])
        sql = _spaced(found[0]["sql"] or "") if found else ""
        facts = {
            "columns": columns,
            "unique": index["unique"],
            "origin": index["origin"],
            "where": sql[sql.upper().find(" WHERE ") :] if index["partial"] else "",
            "expression": sql if any(row["cid"] == _EXPRESSION for row in keys_of) else "",
        }
        automatic = index["name"].startswith("sqlite_autoindex_")
        name = ",".join(str(column[0]) for column in columns) if automatic else index["name"]
        yield f"index:{table}.{name}", facts
    for check in inspect(connection).get_check_constraints(table):
        yield f"check:{table}:{_spaced(check['sqltext'])}", {"name": check["name"]}


def _names(connection: Connection, kind: str) -> list[str]:
    rows = _rows(
        connection,
        "SELECT name FROM sqlite_master WHERE type = :name AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        kind,
    )
    return [str(row["name"]) for row in rows]


def _columns(connection: Connection, table: str) -> list[dict[str, Any]]:
    return _pragma(connection, "table_xinfo", table)


def _pragma(connection: Connection, pragma: str, name: str) -> list[dict[str, Any]]:
    return _rows(connection, f"PRAGMA {pragma}({_literal(quoted(name))})")


def _rows(connection: Connection, sql: str, name: str = "") -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(text(sql), {"name": name} if ":name" in sql else {}).mappings()]


def _literal(sql: str) -> str:
    """Keep colons in names and defaults from being read as parameters."""
    return sql.replace(":", "\\:")


def _spaced(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()


def _canonical(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, sort_keys=True, ensure_ascii=False)
