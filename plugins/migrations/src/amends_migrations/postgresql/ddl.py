"""A database's schema as statements that make it again, read from the catalogue: what a scratch copy is built from.

Each query gives statements of one kind. Their order among each other is not worked out: what fails is tried again
after the rest, until nothing more gets through. Whether the copy is true to its source is not for this module to
say; the caller compares what both look like.
"""

# ruff: noqa: S608 - queries are put together from constants of this package and names of the catalogue

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, text

from amends_migrations.faults import Unfit, said
from amends_migrations.postgresql.catalog import OF_NO_EXTENSION, USERS

_OWN = f"{USERS} AND {OF_NO_EXTENSION.format('pg_class', 'c')}"
_FROM = "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
_SEQUENCE = (
    "'INCREMENT ' || s.seqincrement || ' MINVALUE ' || s.seqmin ||"
    " ' MAXVALUE ' || s.seqmax || ' START ' || s.seqstart || ' CACHE ' || s.seqcache ||"
    " CASE WHEN s.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END"
)
_IDENTITY = f"""(
  SELECT ' GENERATED ' || CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END
    || ' AS IDENTITY (SEQUENCE NAME ' || s.seqrelid::regclass || ' ' || {_SEQUENCE} || ')'
  FROM pg_depend p JOIN pg_sequence s ON s.seqrelid = p.objid
  WHERE p.refobjid = c.oid AND p.refobjsubid = a.attnum AND p.deptype = 'i' AND p.classid = 'pg_class'::regclass)"""
_COLUMN = f"""quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
  || CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END
  || CASE WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') '
         || CASE a.attgenerated WHEN 'v' THEN 'VIRTUAL' ELSE 'STORED' END
       WHEN a.attidentity <> '' THEN {_IDENTITY}
       WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) ELSE '' END
  || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END"""

BEFORE_ROWS = (
    f"""SELECT format('CREATE SCHEMA IF NOT EXISTS %I', nspname) FROM pg_namespace n
    WHERE {USERS} AND {OF_NO_EXTENSION.format("pg_namespace", "n")}""",
    """SELECT format('CREATE EXTENSION IF NOT EXISTS %I WITH SCHEMA %I VERSION %L', extname, nspname, extversion)
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace""",
    f"""SELECT format('CREATE TYPE %s AS ENUM (%s)', t.oid::regtype,
      (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE t.typtype = 'e' AND {USERS} AND {OF_NO_EXTENSION.format("pg_type", "t")}""",
    f"""SELECT format('CREATE DOMAIN %s AS %s', t.oid::regtype, format_type(t.typbasetype, t.typtypmod))
      || coalesce(' DEFAULT ' || t.typdefault, '') || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
      || coalesce((SELECT string_agg(format(' CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)), ''
                              ORDER BY conname)
                   FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'), '')
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE t.typtype = 'd' AND {USERS} AND {OF_NO_EXTENSION.format("pg_type", "t")}""",
    f"""SELECT format('CREATE TYPE %s AS (%s)', c.reltype::regtype,
      (SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
       FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped))
    {_FROM} WHERE c.relkind = 'c' AND {_OWN}""",
    f"""SELECT format('CREATE SEQUENCE %s AS %s ', c.oid::regclass, format_type(s.seqtypid, NULL)) || {_SEQUENCE}
    {_FROM} JOIN pg_sequence s ON s.seqrelid = c.oid WHERE {_OWN} AND NOT EXISTS (
      SELECT FROM pg_depend p WHERE p.objid = c.oid AND p.classid = 'pg_class'::regclass AND p.deptype = 'i')""",
    f"""SELECT format('CREATE %s %s ', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED TABLE' ELSE 'TABLE' END,
      c.oid::regclass) || CASE WHEN c.relispartition THEN (SELECT format('PARTITION OF %s %s', inhparent::regclass,
           pg_get_expr(c.relpartbound, c.oid)) FROM pg_inherits WHERE inhrelid = c.oid)
         ELSE '(' || coalesce((SELECT string_agg({_COLUMN}, ', ' ORDER BY a.attnum)
           FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
           LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attislocal), '') || ')'
           || coalesce((SELECT format(' INHERITS (%s)', string_agg(inhparent::regclass::text, ', ' ORDER BY inhseqno))
                        FROM pg_inherits WHERE inhrelid = c.oid HAVING count(*) > 0), '') END
      || coalesce(' PARTITION BY ' || pg_get_partkeydef(c.oid), '')
      || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
    {_FROM} WHERE c.relkind IN ('r', 'p') AND {_OWN}""",
    f"""SELECT pg_get_functiondef(f.oid) FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
    WHERE f.prokind <> 'a' AND {USERS} AND {OF_NO_EXTENSION.format("pg_proc", "f")}""",
)
AFTER_ROWS = (
    f"""SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.oid::regclass, k.conname, pg_get_constraintdef(k.oid))
    {_FROM} JOIN pg_constraint k ON k.conrelid = c.oid
    WHERE {_OWN} AND k.contype IN ('c', 'f', 'p', 'u', 'x') AND k.conislocal AND k.conparentid = 0
    ORDER BY strpos('puxcf', k.contype::text)""",
    f"""SELECT pg_get_indexdef(i.indexrelid) {_FROM} JOIN pg_index i ON i.indexrelid = c.oid
    WHERE {_OWN} AND NOT c.relispartition AND i.indisvalid AND i.indisready
      AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype IN ('p', 'u', 'x'))""",
    f"""SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', c.oid::regclass, p.refobjid::regclass, a.attname)
    {_FROM} JOIN pg_depend p ON p.objid = c.oid AND p.classid = 'pg_class'::regclass AND p.deptype = 'a'
    JOIN pg_attribute a ON a.attrelid = p.refobjid AND a.attnum = p.refobjsubid WHERE c.relkind = 'S' AND {_OWN}""",
    f"""SELECT format('CREATE %s %s AS %s', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END,
      c.oid::regclass, pg_get_viewdef(c.oid)) {_FROM} WHERE c.relkind IN ('v', 'm') AND {_OWN}""",
    f"""SELECT pg_get_ruledef(r.oid) {_FROM} JOIN pg_rewrite r ON r.ev_class = c.oid
    WHERE {_OWN} AND r.rulename <> '_RETURN'""",
    f"""SELECT pg_get_triggerdef(g.oid) {_FROM} JOIN pg_trigger g ON g.tgrelid = c.oid
    WHERE {_OWN} AND NOT g.tgisinternal AND g.tgparentid = 0""",
    f"""SELECT format('ALTER TABLE %s %s TRIGGER %I', c.oid::regclass, CASE g.tgenabled WHEN 'D' THEN 'DISABLE'
      WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE REPLICA' END, g.tgname)
    {_FROM} JOIN pg_trigger g ON g.tgrelid = c.oid
    WHERE {_OWN} AND NOT g.tgisinternal AND g.tgenabled <> 'O'""",
    f"""SELECT format('ALTER TABLE %s %s ROW LEVEL SECURITY', c.oid::regclass, verb) {_FROM},
      LATERAL (VALUES ('ENABLE', c.relrowsecurity), ('FORCE', c.relforcerowsecurity)) v (verb, wanted)
    WHERE wanted AND c.relkind IN ('r', 'p') AND {_OWN}""",
    f"""SELECT format('CREATE POLICY %I ON %s AS %s FOR %s', p.polname, c.oid::regclass,
      CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
      CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
        ELSE 'ALL' END)
      || coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
      || coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
    {_FROM} JOIN pg_policy p ON p.polrelid = c.oid WHERE {_OWN}""",
    f"""SELECT format('COMMENT ON %s %s IS %L', CASE WHEN m.objsubid = 0 THEN 'TABLE' ELSE 'COLUMN' END,
      c.oid::regclass || coalesce('.' || quote_ident(a.attname), ''), m.description)
    {_FROM} JOIN pg_description m ON m.objoid = c.oid AND m.classoid = 'pg_class'::regclass
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = m.objsubid AND m.objsubid > 0
    WHERE c.relkind IN ('r', 'p') AND {_OWN}""",
)


def make_again(source: Connection, target: Connection, rows: Callable[[], None]) -> None:
    """Make the schema of `source` in the empty database of `target`, calling `rows` when the tables are there and
    nothing yet stands in the way of filling them. Raises `Unfit` naming the first thing that cannot be made.
    """
    source.execute(text("SET LOCAL search_path = pg_catalog"))  # every statement names its schemas
    target.execute(text("SET LOCAL search_path = pg_catalog"))
    target.execute(text("SET LOCAL check_function_bodies = off"))
    _make(target, _statements(source, BEFORE_ROWS))
    rows()
    _make(target, _statements(source, AFTER_ROWS))
    target.commit()


def _statements(source: Connection, queries: Sequence[str]) -> list[str]:
    return [str(row[0]) for query in queries for row in source.exec_driver_sql(query.replace("%", "%%"))]


def _make(target: Connection, statements: list[str]) -> None:
    while statements:
        stuck: dict[str, Exception] = {}
        for statement in statements:
            try:
                with target.begin_nested():
                    target.exec_driver_sql(statement.replace("%", "%%"))
            except Exception as error:  # noqa: BLE001 - whatever it is: it may get through after the others
                stuck[statement] = error
        if len(stuck) == len(statements):
            first, why = next(iter(stuck.items()))
            what = " ".join(first.split()[:4])
            raise Unfit(f"no copy of the database can be made: `{what} …`: {said(why)}", code="no_copy") from why
        statements = list(stuck)
