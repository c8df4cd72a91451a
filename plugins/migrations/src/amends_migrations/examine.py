"""`amends doctor` for migrations: every database and its scripts. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from amends.spi import DoctorFinding, Refused
from amends_migrations.faults import Unfit, said
from amends_migrations.options import Database, MigrationOptions
from amends_migrations.target import target_of


def examine(options: MigrationOptions, secret: Callable[[str], str]) -> list[DoctorFinding]:
    """One finding per database."""
    return [_database(options, name, database, secret) for name, database in sorted(options.databases.items())]


def _database(options: MigrationOptions, name: str, database: Database, secret: Callable[[str], str]) -> DoctorFinding:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - see moves.py

    subject = f"database {name}"
    if not (Path(database.scripts) / "versions").is_dir():
        return DoctorFinding("problem", subject, f"no `versions` folder in `{database.scripts}`", "correct `scripts`")
    try:
        now = target_of(options.address(database, secret), database.version_table).look()
    except Unfit as unfit:
        return DoctorFinding("problem", subject, str(unfit), "install the extra")
    except (OSError, Refused, SQLAlchemyError) as error:
        return DoctorFinding("problem", subject, said(error), "correct the address, or create the database")
    at = ", ".join(now.revisions) or "base"
    if now.leftovers:
        left = ", ".join(now.leftovers)
        return DoctorFinding("warning", subject, f"at {at}; left half-made: {left}", "drop what was left behind")
    return DoctorFinding("ok", subject, f"at {at}, fingerprint {now.fingerprint[:12]}")
