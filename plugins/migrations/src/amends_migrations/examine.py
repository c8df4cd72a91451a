"""`amends doctor` for migrations: every database and its scripts. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from amends.spi import DoctorFinding, Refused
from amends_migrations.options import Database, MigrationOptions


def examine(options: MigrationOptions, secret: Callable[[str], str]) -> list[DoctorFinding]:
    """One finding per database."""
    return [_database(options, name, database, secret) for name, database in sorted(options.databases.items())]


def _database(options: MigrationOptions, name: str, database: Database, secret: Callable[[str], str]) -> DoctorFinding:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - see moves.py

    from amends_migrations import schema  # noqa: PLC0415

    subject = f"database {name}"
    if not (Path(database.scripts) / "versions").is_dir():
        return DoctorFinding("problem", subject, f"no `versions` folder in `{database.scripts}`", "correct `scripts`")
    try:
        file = options.file(database, secret)
        with schema.reading(file) as connection:
            now = schema.snapshot(connection, database.version_table)
    except (OSError, Refused, SQLAlchemyError) as error:
        return DoctorFinding("problem", subject, str(error), "correct `url`, or create the database")
    at = ", ".join(now.revisions) or "base"
    return DoctorFinding("ok", subject, f"at {at}, fingerprint {now.fingerprint[:12]}")
