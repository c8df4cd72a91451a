"""What a PostgreSQL database looks like, from its catalogue: revision and schema as comparable items. Reads only.

Everything of the users' schemas but the version table and what extensions own. Names in `public` stand alone, others
carry their schema. Owners, grants and statistics are not looked at.
"""

# ruff: noqa: S608 - queries are put together from constants of this package and names of the catalogue

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from amends_migrations.target import Snapshot

# Tables, sequences and the like of users: `c` with its schema `n` and its shown name.
USERS = """n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'"""
OF_NO_EXTENSION = (
    "NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{0}'::regclass AND d.objid = {1}.oid AND d.deptype = 'e')"
)
_RELATIONS = f"""
  SELECT c.*, n.nspname, CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname AS shown
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE {USERS} AND {OF_NO_EXTENSION.format("pg_class", "c")} AND c.oid <> :version
"""
_TABLES = f"SELECT * FROM ({_RELATIONS}) c WHERE relkind IN ('r', 'p', 'f')"
_SHOWN = "CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END"

_ITEMS = (
    f"""SELECT 'schema:' || n.nspname, '{{}}'::jsonb FROM pg_namespace n
    WHERE {USERS} AND n.nspname <> 'public' AND {OF_NO_EXTENSION.format("pg_namespace", "n")}""",
    "SELECT 'extension:' || extname, jsonb_build_object('version', extversion) FROM pg_extension",
    f"""SELECT 'type:' || {_SHOWN} || t.typname, jsonb_build_object(
      'kind', t.typtype,
      'labels', (SELECT jsonb_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
      'base', format_type(nullif(t.typbasetype, 0), t.typtypmod), 'default', t.typdefault, 'notnull', t.typnotnull,
      'checks', (SELECT jsonb_object_agg(conname, pg_get_constraintdef(oid)) FROM pg_constraint
                 WHERE contypid = t.oid AND contype = 'c'),
      'parts', (SELECT jsonb_agg(jsonb_build_array(attname, format_type(atttypid, atttypmod)) ORDER BY attnum)
                FROM pg_attribute WHERE attrelid = nullif(t.typrelid, 0) AND attnum > 0 AND NOT attisdropped))
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE {USERS} AND {OF_NO_EXTENSION.format("pg_type", "t")}
      AND (t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND c.relkind = 'c'))""",
    f"""SELECT 'table:' || c.shown, jsonb_build_object(
      'kind', c.relkind, 'persistence', c.relpersistence, 'options', to_jsonb(c.reloptions),
      'partition_key', pg_get_partkeydef(c.oid), 'bound', pg_get_expr(c.relpartbound, c.oid),
      'parents', (SELECT jsonb_agg(inhparent::regclass::text ORDER BY inhseqno) FROM pg_inherits
                  WHERE inhrelid = c.oid),
      'row_security', c.relrowsecurity, 'forced', c.relforcerowsecurity,
      'comment', obj_description(c.oid, 'pg_class'))
    FROM ({_TABLES}) c""",
    f"""SELECT 'column:' || c.shown || '.' || a.attname, jsonb_build_object(
      'type', format_type(a.atttypid, a.atttypmod), 'notnull', a.attnotnull, 'identity', a.attidentity,
      'generated', a.attgenerated, 'default', pg_get_expr(d.adbin, d.adrelid),
      'collation', CASE WHEN a.attcollation <> t.typcollation THEN a.attcollation::regcollation::text END,
      'comment', col_description(c.oid, a.attnum))
    FROM ({_TABLES}) c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum""",
    f"""SELECT 'constraint:' || c.shown || '.' || k.conname,
      jsonb_build_object('sql', pg_get_constraintdef(k.oid), 'validated', k.convalidated)
    FROM ({_TABLES}) c JOIN pg_constraint k ON k.conrelid = c.oid WHERE k.contype IN ('c', 'f', 'p', 'u', 'x')""",
    f"""SELECT 'index:' || c.shown, jsonb_build_object(
      'sql', pg_get_indexdef(i.indexrelid), 'valid', i.indisvalid AND i.indisready)
    FROM ({_RELATIONS}) c JOIN pg_index i ON i.indexrelid = c.oid WHERE i.indrelid <> :version""",
    f"""SELECT CASE c.relkind WHEN 'v' THEN 'view:' ELSE 'materialized:' END || c.shown,
      jsonb_build_object('sql', pg_get_viewdef(c.oid))
    FROM ({_RELATIONS}) c WHERE c.relkind IN ('v', 'm')""",
    f"""SELECT 'sequence:' || c.shown, jsonb_build_object(
      'type', format_type(s.seqtypid, NULL), 'start', s.seqstart, 'increment', s.seqincrement,
      'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle)
    FROM ({_RELATIONS}) c JOIN pg_sequence s ON s.seqrelid = c.oid""",
    f"""SELECT 'trigger:' || c.shown || '.' || g.tgname,
      jsonb_build_object('sql', pg_get_triggerdef(g.oid), 'enabled', g.tgenabled)
    FROM ({_RELATIONS}) c JOIN pg_trigger g ON g.tgrelid = c.oid WHERE NOT g.tgisinternal""",
    f"""SELECT 'rule:' || c.shown || '.' || r.rulename, jsonb_build_object('sql', pg_get_ruledef(r.oid))
    FROM ({_RELATIONS}) c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'""",
    f"""SELECT 'policy:' || c.shown || '.' || p.polname, jsonb_build_object(
      'command', p.polcmd, 'permissive', p.polpermissive, 'using', pg_get_expr(p.polqual, p.polrelid),
      'check', pg_get_expr(p.polwithcheck, p.polrelid))
    FROM ({_TABLES}) c JOIN pg_policy p ON p.polrelid = c.oid""",
    f"""SELECT 'function:' || {_SHOWN} || f.proname || '(' || pg_get_function_identity_arguments(f.oid) || ')',
      jsonb_build_object('kind', f.prokind, 'sql', CASE WHEN f.prokind <> 'a' THEN pg_get_functiondef(f.oid) END)
    FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
    WHERE {USERS} AND {OF_NO_EXTENSION.format("pg_proc", "f")}""",
)
_LEFTOVERS = f"""SELECT 'index:' || c.shown FROM ({_RELATIONS}) c JOIN pg_index i ON i.indexrelid = c.oid
  WHERE c.relkind = 'i' AND NOT (i.indisvalid AND i.indisready) ORDER BY 1"""
_COLUMNS = f"""SELECT c.shown, c.nspname, c.relname, a.attname, a.attgenerated,
    pg_get_expr(d.adbin, d.adrelid) AS "default"
  FROM ({_TABLES}) c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum ORDER BY c.shown, a.attnum"""
_CONSTANT = re.compile(r"(-?\d+(\.\d+)?|true|false|NULL|'([^']|'')*')(::[\w .\"\[\](),]+)?", re.ASCII)


def snapshot(connection: Connection, version_table: str, droppable: Iterable[str] = ()) -> Snapshot:
    """Look at the database, in the transaction of `connection`; see `Target.look`."""
    version = version_oid(connection, version_table)
    revisions: tuple[str, ...] = ()
    if version:
        rows = connection.execute(text(f"SELECT version_num FROM {quoted(version_table)} ORDER BY 1"))
        revisions = tuple(str(row[0]) for row in rows)
    connection.execute(text("SET LOCAL search_path = pg_catalog"))  # definitions name every schema
    of = {"version": version}
    items = {
        str(name): json.dumps(facts, sort_keys=True, ensure_ascii=False)
        for name, facts in connection.execute(text(_literal(" UNION ALL ".join(_ITEMS))), of)
    }
    columns = connection.execute(text(_COLUMNS), of).all()
    orders: dict[str, tuple[str, ...]] = {}
    for row in columns:
        orders[row.shown] = (*orders.get(row.shown, ()), *([row.attname] if row.attname else []))
    leftovers = tuple(str(row[0]) for row in connection.execute(text(_LEFTOVERS), of))
    return Snapshot(revisions, items, orders, leftovers, _occupied(connection, columns, set(droppable)))


def version_oid(connection: Connection, version_table: str) -> int:
    """The version table, as the session's search path finds it; 0 if it is not there."""
    found = connection.execute(text("SELECT to_regclass(:name)::oid"), {"name": quoted(version_table)}).scalar_one()
    return int(found or 0)


def rows_digest(connection: Connection, version_table: str, before: Snapshot) -> str:
    """See `Target.rows_digest`. The server adds up the rows' hashes."""
    version = version_oid(connection, version_table)
    connection.execute(text("SET LOCAL search_path = pg_catalog"))
    names = {row.shown: (row.nspname, row.relname) for row in connection.execute(text(_COLUMNS), {"version": version})}
    sums: list[str] = []
    for table, columns in sorted(before.orders.items()):
        if table not in names:
            sums.append(f"{table}: gone")
            continue
        row = f"ROW({', '.join(quoted(column) for column in columns)})::text"
        digest = f"SELECT count(*) || '/' || coalesce(sum(hashtextextended({row}, 0)::numeric), 0)"
        digest += f" FROM ONLY {_qualified(*names[table])}"
        sums.append(f"{table}: {connection.execute(text(_literal(digest))).scalar_one()}")
    return "; ".join(sums)


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _occupied(connection: Connection, columns: Sequence[Row[Any]], wanted: set[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in columns:
        table, column = f"table:{row.shown}", f"column:{row.shown}.{row.attname}"
        relation = _qualified(row.nspname, row.relname)
        if table in wanted and table not in found:
            found[table] = _count(connection, relation, "true")
        if column in wanted and not row.attgenerated:  # what is generated comes back by itself
            name = quoted(row.attname)
            condition = f"{name} IS NOT NULL"
            if row.default is not None and _CONSTANT.fullmatch(row.default):
                condition += f" AND {name} IS DISTINCT FROM ({row.default})"
            found[column] = _count(connection, relation, condition)
    return found


def _count(connection: Connection, relation: str, condition: str) -> int:
    statement = _literal(f"SELECT count(*) FROM {relation} WHERE {condition}")
    return int(connection.execute(text(statement)).scalar_one())


def _qualified(schema: str, table: str) -> str:
    return f"{quoted(schema)}.{quoted(table)}"


def _literal(sql: str) -> str:
    """Keep colons in names, constants and strings from being read as parameters; `:version` is one."""
    return re.sub(r"(?<!:):(?!:|version\b)", r"\\:", sql)
