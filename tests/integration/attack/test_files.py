"""The files themselves: bits flipped, pages torn, files cut or removed, and logs that are missing or foreign."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from amends import Engine
from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import AmendsError, CorruptLedger
from amends.runtime.verifying import differences

PAGE = 4096
FLIPS_A_PAGE = 2
CLOCK = SystemClock()
TABLES = {
    "events": "*",
    "streams": "*",
    "totals": "*",
    "rows": "kind, key, run_id, status, body, epoch, due_us, active",  # no event says how often a row was written
}


def held(database):
    """All that recovery and people rely on; what SQLite raises if it cannot be read."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            return {
                table: sorted(map(repr, connection.execute(f"SELECT {columns} FROM {table}")))
                for table, columns in TABLES.items()
            }
    except sqlite3.Error as error:
        return str(error)


def found_by_verify(folder):
    try:
        with closing(SqliteJournal.open(folder, clock=CLOCK, ids=UuidV7(CLOCK))) as journal:
            return [*journal.verify(), *differences(journal)]
    except AmendsError as error:
        return [error.message]


@pytest.fixture
def attack(project, journal_file):
    """Write these bytes in place of the journal; what `verify` finds, and whether the content is as it was."""
    sound = journal_file.read_bytes()
    before = held(journal_file)

    def put(content):
        for log in journal_file.parent.glob("journal.sqlite-*"):
            log.unlink()
        journal_file.write_bytes(content)
        return found_by_verify(journal_file.parent), held(journal_file) == before

    assert put(sound) == ([], True)
    return sound, put


def test_no_flipped_bit_is_silent(attack):
    """In every page: reported, or nothing that the journal holds is different. Plain SQLite reads many as good."""
    sound, put = attack
    dice = random.Random(20)
    silent, reported = [], 0
    for page in range(0, len(sound), PAGE):
        for at in (page + dice.randrange(PAGE) for _ in range(FLIPS_A_PAGE)):
            content = bytearray(sound)
            content[at] ^= 1 << dice.randrange(8)
            problems, same = put(bytes(content))
            reported += bool(problems)
            if not problems and not same:
                silent.append(at)
    assert silent == []
    assert reported


@pytest.mark.parametrize("filling", [b"\0", b"\xa5"])
def test_no_torn_page_is_silent(attack, filling):
    """Of every page the second half was never written."""
    sound, put = attack
    reported = 0
    for page in range(0, len(sound), PAGE):
        half = page + PAGE // 2
        problems, same = put(sound[:half] + filling * (PAGE // 2) + sound[page + PAGE :])
        reported += bool(problems)
        assert problems or same, f"page {page // PAGE}"
    assert reported > 3


def test_no_cut_is_silent(attack):
    """Cut at any page, inside a page, or to nothing: an empty file is not taken for a new journal."""
    sound, put = attack
    for length in (0, 1, 100, PAGE, *range(PAGE * 2, len(sound), PAGE * 4), len(sound) - 700):
        problems, _ = put(sound[:length])
        assert problems, f"cut to {length} bytes"


@pytest.mark.parametrize("length", [0, 100, PAGE * 3, None])
def test_a_cut_or_removed_journal_sends_nothing_and_comes_back(length, safe, amends, effects, project, journal_file):
    """The engine does not open over it, so no call is made; the backup comes back whole."""
    before = effects()
    if length is None:
        journal_file.unlink()
    else:
        journal_file.write_bytes(journal_file.read_bytes()[:length])
    told = amends("ledger", "verify", "--json")
    assert told.code == 8
    assert "restore" in told.said
    with pytest.raises(CorruptLedger), Engine.open(project) as engine:
        engine.run(workflow="order", run_key="1", agent="coder")
    assert effects() == before
    safe()


def plain_count(storage, copy):
    """How many events plain SQLite finds in a copy, without a complaint."""
    shutil.copytree(storage, copy)
    with closing(sqlite3.connect(copy / "journal.sqlite")) as connection:
        return connection.execute("SELECT count(*) FROM events").fetchone()[0]


def without_log(log, elsewhere):
    log.unlink()


def emptied_log(log, elsewhere):
    log.write_bytes(b"")


def flipped_log(log, elsewhere):
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 4
    log.write_bytes(content)


def torn_log(log, elsewhere):
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def foreign_log(log, elsewhere):
    with closing(SqliteJournal.open(elsewhere, clock=CLOCK, ids=UuidV7(CLOCK))):
        shutil.copyfile(elsewhere / log.name, log)


@pytest.mark.parametrize("damage", [without_log, emptied_log, flipped_log, torn_log, foreign_log])
def test_a_lost_log_is_said(damage, killed, amends, effects, project, tmp_path):
    """SQLite opens what is left as if nothing had been there, which is the control. The journal remembers how far it
    had come, so the same call is not sent a second time over a ledger that forgot it; put back, everything is there.
    """
    log, before = killed / "journal.sqlite-wal", effects()
    ever = plain_count(killed, tmp_path / "counted")
    shutil.copytree(killed, tmp_path / "whole")
    damage(log, tmp_path / "other")
    assert plain_count(killed, tmp_path / "control") < ever
    for _ in range(2):
        told = amends("ledger", "verify", "--json")
        assert told.code == 8
        assert "lost events" in told.said
    with pytest.raises(CorruptLedger), Engine.open(project) as engine:
        engine.run(workflow="order", run_key="late", agent="coder")
    assert effects() == before
    shutil.rmtree(killed)
    (tmp_path / "whole").rename(killed)
    assert amends("ledger", "verify").code == 0


def test_a_loss_may_be_accepted(killed, amends):
    """Who has no backup goes on by removing the lock's file, as the hint says."""
    (killed / "journal.sqlite-wal").unlink()
    told = amends("ledger", "verify", "--json")
    assert "journal.lock" in told.said
    (killed / "journal.lock").unlink()
    assert amends("ledger", "verify", "--json").code in {0, 1}  # 1: the ledger was ahead, and says so once
    assert amends("ledger", "verify", "--json").code == 0
