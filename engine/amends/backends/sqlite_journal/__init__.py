"""The journal of one host: SQLite in WAL mode, written by many threads and processes, one at a time."""

from amends.backends.sqlite_journal.journal import DATABASE_NAME, SqliteJournal

__all__ = ["DATABASE_NAME", "SqliteJournal"]
