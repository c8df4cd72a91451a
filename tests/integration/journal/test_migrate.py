"""Another ledger format is met with its remedy, and a migration is whole or not at all."""

import sqlite3
from contextlib import closing

import pytest

from amends.backends.sqlite_journal import SqliteJournal
from amends.backends.sqlite_journal.lock import WriteLock
from amends.backends.sqlite_journal.migrate import migrate
from amends.backends.sqlite_journal.schema import read_meta
from amends.core.errors import ConfigError, InvalidInput, JournalBusy, JournalUnavailable
from amends.core.events import LEDGER_FORMAT
from amends.testing.fakes import SimClock


@pytest.fixture
def database(opened, commit, folder):
    """A journal of three events that nobody uses."""
    journal = opened()
    for place in range(3):
        journal.commit(commit(after=place))
    journal.close()
    return folder / "journal.sqlite"


@pytest.fixture
def migrated(database):
    """Migrate with told steps."""

    def run(migrations=None, **changes):
        parts = {"clock": SimClock(), "busy_seconds": 0.05, "migrations": migrations or {}, **changes}
        return migrate(database, database.with_name("journal.lock"), **parts)

    return run


def set_format(database, value):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (value,))


def format_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return read_meta(connection, "format")


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (str(LEDGER_FORMAT + 1), "install the engine version that wrote it, or a later one"),
        (str(LEDGER_FORMAT - 1), "run `amends journal migrate`"),
        ("nonsense", "restore a backup"),
    ],
)
def test_another_format_is_refused_with_its_remedy(database, opened, found, remedy):
    """Newer, older, or none at all: nothing is read from it and nothing written to it."""
    set_format(database, found)
    with pytest.raises(ConfigError, match=f"ledger format `{found}`") as caught:
        opened()
    assert remedy in caught.value.hint


def test_the_present_format_needs_nothing(database, migrated):
    """And leaves no copy behind."""
    assert migrated() == (LEDGER_FORMAT, LEDGER_FORMAT)
    assert list(database.parent.glob("*.format-*")) == []


def test_steps_lead_from_format_to_format(database, migrated, opened):
    """Each once, in order; what the journal was stays beside it; events are as they were."""
    steps = {LEDGER_FORMAT: lambda c: c.execute("CREATE TABLE one(x)"), LEDGER_FORMAT + 1: add_two}
    assert migrated(steps, to=LEDGER_FORMAT + 2) == (LEDGER_FORMAT, LEDGER_FORMAT + 2)
    assert format_of(database) == str(LEDGER_FORMAT + 2)
    kept = database.with_name(f"journal.format-{LEDGER_FORMAT}.sqlite")
    assert format_of(kept) == str(LEDGER_FORMAT)
    set_format(database, str(LEDGER_FORMAT))
    assert len(opened().events("run-1")) == 3


def add_two(connection):
    connection.execute("INSERT INTO one VALUES (2)")


def test_a_step_that_fails_changes_nothing(database, migrated):
    """The step before it holds; its own half is rolled back."""

    def fails(connection):
        connection.execute("CREATE TABLE half(x)")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    steps = {LEDGER_FORMAT: lambda c: c.execute("CREATE TABLE one(x)"), LEDGER_FORMAT + 1: fails}
    with pytest.raises(JournalUnavailable):
        migrated(steps, to=LEDGER_FORMAT + 2)
    assert format_of(database) == str(LEDGER_FORMAT + 1)
    with closing(sqlite3.connect(database)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert ("one" in names, "half" in names) == (True, False)


def test_a_gap_in_the_table_is_said_before_anything_is_done(database, migrated):
    """The remedy is an engine between."""
    with pytest.raises(ConfigError, match=f"nothing leads from ledger format `{LEDGER_FORMAT}`") as caught:
        migrated({LEDGER_FORMAT + 1: add_two}, to=LEDGER_FORMAT + 2)
    assert "engine version that followed" in caught.value.hint
    assert list(database.parent.glob("*.format-*")) == []


@pytest.mark.parametrize("found", ["999", "nonsense", ""])
def test_a_format_that_is_newer_or_unknown_is_not_touched(database, migrated, found):
    """Same words as on opening."""
    set_format(database, found)
    with pytest.raises(ConfigError, match=f"ledger format `{found}`"):
        migrated()
    assert format_of(database) == found


def test_a_copy_that_is_in_the_way_is_not_overwritten(database, migrated):
    """It may be the only good one."""
    database.with_name(f"journal.format-{LEDGER_FORMAT}.sqlite").write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        migrated({LEDGER_FORMAT: add_two}, to=LEDGER_FORMAT + 1)
    assert format_of(database) == str(LEDGER_FORMAT)


def test_a_journal_somebody_writes_is_busy(database, migrated):
    """The write lock is taken first."""
    lock = WriteLock(database.with_name("journal.lock"), SimClock())
    lock.acquire()
    with closing(lock), pytest.raises(JournalBusy):
        migrated()


def test_where_there_is_no_journal_none_is_made(tmp_path):
    """A wrong folder is said as such."""
    with pytest.raises(JournalUnavailable):
        SqliteJournal.migrate(tmp_path, clock=SimClock())
    assert not (tmp_path / "journal.sqlite").exists()
