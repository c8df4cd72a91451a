"""Scratch databases: made beside the source for one rehearsal or drill, and dropped after it.

Each is named after the source and guarded by an advisory lock of its maker's session. A maker that was killed leaves
one behind without a lock: the next one drops it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError

from amends_migrations.faults import Unfit, said
from amends_migrations.postgresql.catalog import quoted
from amends_migrations.postgresql.sessions import connected

_LOCK_CLASS = 0x616D7363  # "amsc"
_PREFIX = "amends_scratch"


@contextmanager
def scratch(url: str) -> Generator[str]:
    """The address of a new, empty database with the encoding, locale and search path of the one at `url`.

    Raises `Unfit` if the role may not make one.
    """
    with connected(url, "amends scratch", autocommit=True) as keeper:
        own = keeper.execute(text("SELECT oid FROM pg_database WHERE datname = current_database()")).scalar_one()
        _sweep(keeper, f"{_PREFIX}_{own}_")
        number = keeper.execute(text("SELECT txid_current()")).scalar_one()
        name = f"{_PREFIX}_{own}_{number}"
        _try_lock(keeper, name)
        try:
            _create(keeper, name)
        except DBAPIError as error:
            raise Unfit(
                f"no scratch database can be made: {said(error)}; give the role CREATEDB", code="no_scratch"
            ) from error
        try:
            yield make_url(url).set(database=name).render_as_string(hide_password=False)
        finally:
            _drop(keeper, name)


def _create(keeper: Connection, name: str) -> None:
    facts = keeper.execute(
        text("SELECT to_jsonb(d) FROM pg_database d WHERE datname = current_database()")
    ).scalar_one()
    encoding = keeper.execute(text("SELECT pg_encoding_to_char(:number)"), {"number": facts["encoding"]}).scalar_one()
    wanted = [f"ENCODING '{encoding}'", f"LC_COLLATE '{facts['datcollate']}'", f"LC_CTYPE '{facts['datctype']}'"]
    locale = facts.get("datlocale") or facts.get("daticulocale")
    if facts.get("datlocprovider") == "i" and locale:
        wanted += ["LOCALE_PROVIDER icu", f"ICU_LOCALE '{locale}'"]
    if facts.get("datlocprovider") == "b" and locale:
        wanted += ["LOCALE_PROVIDER builtin", f"BUILTIN_LOCALE '{locale}'"]
    keeper.exec_driver_sql(f"CREATE DATABASE {quoted(name)} TEMPLATE template0 {' '.join(wanted)}")
    path = keeper.execute(text("SHOW search_path")).scalar_one()
    keeper.exec_driver_sql(f"ALTER DATABASE {quoted(name)} SET search_path = {path or chr(39) * 2}")


def _sweep(keeper: Connection, prefix: str) -> None:
    names = keeper.execute(
        text("SELECT datname FROM pg_database WHERE starts_with(datname::text, :prefix)"), {"prefix": prefix}
    )
    for (name,) in names.all():
        if _try_lock(keeper, name):
            _drop(keeper, name)


def _drop(keeper: Connection, name: str) -> None:
    keeper.exec_driver_sql(f"DROP DATABASE IF EXISTS {quoted(name)} WITH (FORCE)")
    keeper.execute(text("SELECT pg_advisory_unlock(:class, :object)"), _key(name))


def _try_lock(keeper: Connection, name: str) -> bool:
    return bool(keeper.execute(text("SELECT pg_try_advisory_lock(:class, :object)"), _key(name)).scalar_one())


def _key(name: str) -> dict[str, int]:
    return {"class": _LOCK_CLASS, "object": int(name.rpartition("_")[2]) & 0x7FFFFFFF}
