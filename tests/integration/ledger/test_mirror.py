"""The mirror is a complete copy of the journal, whatever happens to its file."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import astuple

import duckdb
import pytest

from amends.backends.duckdb_ledger import DuckdbLedger, Limits
from amends.backends.duckdb_ledger.connection import open_reader
from amends.backends.duckdb_ledger.files import mirror_lock
from amends.backends.duckdb_ledger.mirror import COLUMNS, SHOWN_PROBLEMS
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import CallerError, JournalUnavailable, SystemUnavailable
from amends.ports.journal import Commit
from amends.testing.fakes import SequentialIds
from amends.testing.ledger_builder import EventList, records
from amends.testing.memory_journal import MemoryJournal
from amends.testing.run_builder import RunBuilder

ALL_ROWS = f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY seq"

HOLDER = """
import sys, duckdb
held = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reader")
held.execute("FROM events LIMIT 1").fetchall()
print("holding", flush=True)
sys.stdin.read()
"""


KILLED = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("SET wal_autocheckpoint = '1GB'")
connection.execute("INSERT INTO events BY NAME SELECT * EXCLUDE ts FROM events WHERE seq = 1")
os.kill(os.getpid(), 9)
"""


def as_rows(stored):
    return tuple((x.seq, *astuple(x.event), x.prev_hash, x.hash) for x in stored)


def is_exact(ledger, events):
    return ledger.query(ALL_ROWS).rows == as_rows(events.stored)


def damage(folder):
    """Overwrite the block that a checkpoint rewrites in place."""
    with (folder / "ledger.duckdb").resolve().open("r+b") as file:
        file.seek(12_288)
        file.write(b"\0" * 4_096)


@pytest.fixture
def hold(folder):
    """Another process that opens the ledger file and keeps it."""
    running = []

    def start(role):
        command = [sys.executable, "-c", HOLDER, str((folder / "ledger.duckdb").resolve()), role]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout.readline() == "holding\n"
        return process

    yield start
    for process in running:
        process.communicate()


# --- copying ----------------------------------------------------------------------------------------------------


def test_mirror_equals_the_journal_row_by_row(ledger, events, add_run):
    """Every column of every event arrives unchanged, at first and later."""
    add_run()
    first = ledger.refresh()
    assert (first.max_seq, first.events, first.rebuilt, first.problems) == (len(events.stored),) * 2 + (True, ())
    assert is_exact(ledger, events)
    add_run()
    second = ledger.refresh()
    assert (second.max_seq, second.rebuilt) == (len(events.stored), False)
    assert is_exact(ledger, events)


def test_an_empty_journal_has_an_empty_ledger(ledger):
    """Views and metrics exist before the first event."""
    assert ledger.refresh().events == 0
    assert ledger.query("FROM unknown_rate").rows == ()


def test_a_first_query_needs_no_refresh(ledger, events, add_run):
    """Where there is no file yet, a query makes one."""
    add_run()
    assert is_exact(ledger, events)


def test_nothing_new_leaves_the_file_alone(ledger, folder, add_run):
    """A refresh with nothing to do does not even open the file."""
    add_run()
    ledger.refresh()
    with mirror_lock(folder / "mirror.lock", timeout_seconds=0):
        assert ledger.refresh().rebuilt is False


def test_a_journal_is_mirrored_through_its_port(open_ledger, clock):
    """A whole journal serves as the source, in pages of whatever size it answers."""
    journal = MemoryJournal()
    run = RunBuilder(clock).planned("a").decided().intent().succeeded()
    journal.commit(Commit(run.run_id, 0, records(run.events)))
    ledger = open_ledger(source=journal)
    ledger.refresh()
    assert ledger.query(ALL_ROWS).rows == as_rows(journal.events_after(0))


def test_an_older_duckdb_can_read_the_file(ledger, folder, add_run):
    """The file is written in the storage version of DuckDB 1.5."""
    add_run()
    ledger.refresh()
    with duckdb.connect(str((folder / "ledger.duckdb").resolve()), read_only=True) as connection:
        tags = connection.execute("SELECT tags FROM duckdb_databases() WHERE NOT internal").fetchall()
    assert tags == [({"storage_version": "v1.5.0+"},)]


def test_a_journal_that_fails_leaves_the_mirror_as_it_was(ledger, events, add_run, monkeypatch):
    """A refresh that cannot read on appends nothing, and the next one goes on from there."""
    add_run()
    ledger.refresh()
    before = list(events.stored)
    add_run()
    real = events.events_after
    calls = []

    def failing(seq, *, limit=10_000):
        calls.append(seq)
        if len(calls) > 2:
            raise JournalUnavailable("the disk is gone", hint="bring it back")
        return real(seq, limit=min(limit, 2))

    monkeypatch.setattr(events, "events_after", failing)
    with pytest.raises(JournalUnavailable):
        ledger.refresh()
    assert ledger.query(ALL_ROWS).rows == as_rows(before)
    monkeypatch.setattr(events, "events_after", real)
    assert ledger.refresh().rebuilt is False
    assert is_exact(ledger, events)


# --- corrupt journal rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        {"payload": "{torn"},
        {"payload": "lone surrogate \ud800"},
        {"payload": '{"kind": "another"}'},
        {"ts_us": 2**62},
        {"ts_us": "yesterday"},
        {"kind": "never_heard_of"},
        {"outcome": "failed"},
    ],
    ids=str,
)
def test_a_corrupt_row_is_reported_and_blocks_nothing(columns, ledger, events, folder, add_run):
    """The row is mirrored as far as it can be, named in `problems`, and every view and metric still answers."""
    add_run()
    events.bend(2, **columns)
    add_run()
    state = ledger.refresh()
    assert state.events == len(events.stored)
    assert state.problems
    assert all(problem.startswith("event seq 2 (run `run-1`): ") for problem in state.problems)
    assert {row[0] for row in ledger.query("SELECT seq FROM problems").rows} == {2}
    with duckdb.connect(str((folder / "ledger.duckdb").resolve()), read_only=True) as connection:
        views = connection.execute("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        for schema, name in views:
            connection.execute(f"FROM {schema}.{name}").fetchall()
    assert ("run-2",) in ledger.query("SELECT run_id FROM runs").rows
    assert ledger.refresh().problems == state.problems


def shown(ledger):
    names = ledger.query("SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'").rows
    return {name for (name,) in names}


def test_a_removed_row_breaks_the_chain_and_is_reported(ledger, events, add_run):
    """What is missing shows at the event after it."""
    add_run()
    del events.stored[2]
    assert ledger.refresh().problems == ("event seq 4 (run `run-1`): does not chain to the event before it in its run",)


def test_many_problems_are_counted(ledger, events, add_run):
    """A report stays readable; the table has them all."""
    while len(events.stored) <= SHOWN_PROBLEMS:
        add_run()
    for stored in list(events.stored):
        events.bend(stored.seq, tenant="mallory")
    found = ledger.refresh().problems
    assert len(found) == SHOWN_PROBLEMS + 1
    assert found[-1].startswith(f"and {len(events.stored) - SHOWN_PROBLEMS} more")


# --- doubt: set aside and made anew -------------------------------------------------------------------------------


def made_anew(state, folder, reason):
    assert state.rebuilt
    (note,) = state.problems
    assert reason in note
    assert list(folder.glob("ledger.*.aside.duckdb"))


def test_a_torn_checkpoint_is_made_good(ledger, events, folder, add_run):
    """A file that does not open is set aside; the ledger is whole again."""
    add_run()
    ledger.refresh()
    damage(folder)
    made_anew(ledger.refresh(), folder, "cannot be opened")
    assert is_exact(ledger, events)
    assert ledger.refresh().problems == ()


@pytest.mark.parametrize("content", [b"", b"this is no database" * 999], ids=["empty", "text"])
def test_a_foreign_file_is_made_good(content, ledger, events, folder, add_run):
    """Whatever was put in its place is kept aside."""
    add_run()
    ledger.refresh()
    (folder / "ledger.duckdb").unlink()
    (folder / "ledger.duckdb").write_bytes(content)
    made_anew(ledger.refresh(), folder, "cannot be opened")
    assert is_exact(ledger, events)


def test_a_missing_file_is_made_again(ledger, events, folder, add_run):
    """The link leads nowhere: that is a start like the first one."""
    add_run()
    ledger.refresh()
    (folder / "ledger.duckdb").resolve().unlink()
    assert ledger.refresh().rebuilt
    assert is_exact(ledger, events)


def test_damage_met_by_a_query_is_made_good_by_the_next_refresh(ledger, open_ledger, events, folder, add_run):
    """Even where nothing is new."""
    add_run()
    ledger.refresh()
    damage(folder)
    with pytest.raises(SystemUnavailable, match="cannot be opened"):
        ledger.query("FROM events")
    assert ledger.refresh().rebuilt
    assert is_exact(ledger, events)


def test_a_journal_restored_to_an_older_state_is_noticed(ledger, events, folder, add_run):
    """The mirror must not keep events that the journal no longer has."""
    add_run()
    kept = list(events.stored)
    add_run()
    ledger.refresh()
    events.stored[:] = kept
    made_anew(ledger.refresh(), folder, f"the journal at {len(kept)}")
    assert is_exact(ledger, events)


def test_a_restored_journal_that_went_on_differently_is_noticed(ledger, events, folder, clock, add_run):
    """Same length, same generation, other events."""
    add_run()
    kept = list(events.stored)
    add_run()
    ledger.refresh()
    events.stored[:] = kept
    clock.advance(1)
    add_run()
    made_anew(ledger.refresh(), folder, f"differs from the journal at seq {len(events.stored)}")
    assert is_exact(ledger, events)


def test_another_journal_is_noticed(ledger, events, folder, add_run):
    """A replaced journal has another generation."""
    add_run()
    ledger.refresh()
    events.generation = "generation-2"
    made_anew(ledger.refresh(), folder, "another journal")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM events WHERE seq = 2", "does not hold"),
        ("INSERT INTO events BY NAME SELECT * EXCLUDE ts FROM events WHERE seq = 2", "does not hold"),
        ("UPDATE internal.mirror SET table_version = 0", "another version"),
        ("DROP TABLE internal.mirror", "mirror does not exist"),
    ],
)
def test_a_file_somebody_wrote_to_is_noticed(sql, reason, ledger, folder, add_run):
    """Rows added or removed, or the book-keeping changed, by another hand."""
    add_run()
    ledger.refresh()
    with duckdb.connect(str((folder / "ledger.duckdb").resolve())) as connection:
        connection.execute(sql)
    made_anew(ledger.refresh(), folder, reason)
    assert ledger.query("SELECT count(*) FROM events").rows == ((5,),)


def test_views_are_renewed_without_copying_again(ledger, folder, events, add_run):
    """A version with other SQL changes views and metrics, and drops what it no longer has."""
    add_run()
    ledger.refresh()
    with duckdb.connect(str((folder / "ledger.duckdb").resolve())) as connection:
        connection.execute("CREATE OR REPLACE VIEW runs AS SELECT 1 AS old; CREATE VIEW gone AS SELECT 1")
        connection.execute("UPDATE internal.mirror SET sql_digest = 'older'")
    add_run()
    assert ledger.refresh().rebuilt is False
    assert ledger.query("SELECT count(run_id) FROM runs").rows == ((2,),)
    assert "gone" not in shown(ledger)


def test_rebuild_starts_over(ledger, events, folder, add_run):
    """On demand, from the journal alone."""
    add_run()
    before = ledger.refresh()
    first = (folder / "ledger.duckdb").resolve()
    after = ledger.rebuild()
    assert (after.rebuilt, after.events) == (True, before.events)
    assert (folder / "ledger.duckdb").resolve() != first
    assert not first.exists()
    assert is_exact(ledger, events)


def test_only_the_last_doubtful_files_are_kept(ledger, folder, add_run):
    """Repeated damage does not fill the disk."""
    add_run()
    for _ in range(4):
        ledger.refresh()
        damage(folder)
    ledger.refresh()
    names = sorted(path.name for path in folder.glob("*.duckdb"))
    assert names == ["ledger.3.aside.duckdb", "ledger.4.aside.duckdb", "ledger.5.duckdb", "ledger.duckdb"]


# --- others at the same file --------------------------------------------------------------------------------------


def test_a_reader_that_stays_does_not_block_the_mirror(ledger, events, folder, hold, add_run):
    """It keeps the generation it has; the ledger goes on in a new one, copied and not made anew."""
    add_run()
    ledger.refresh()
    old = (folder / "ledger.duckdb").resolve()
    hold("reader")
    add_run()
    state = ledger.refresh()
    assert (state.rebuilt, state.problems) == (False, ())
    assert (folder / "ledger.duckdb").resolve() != old
    assert is_exact(ledger, events)


def test_a_query_of_this_process_does_not_block_the_mirror(ledger, events, folder, add_run):
    """A long query here counts as a reader like any other."""
    add_run()
    ledger.refresh()
    path = (folder / "ledger.duckdb").resolve()
    with open_reader(lambda: path, Limits(), patience_seconds=0) as reader:
        add_run()
        state = ledger.refresh()
        assert (state.rebuilt, state.max_seq) == (False, len(events.stored))
        assert reader.execute("SELECT count(*) FROM events").fetchall() == [(5,)]
    assert is_exact(ledger, events)


def test_what_a_killed_mirror_left_in_its_log_is_copied_too(ledger, events, folder, hold, add_run):
    """The write-ahead log of a file that was never closed belongs to it."""
    add_run()
    ledger.refresh()
    path = (folder / "ledger.duckdb").resolve()
    add_run()
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
    assert killed.wait() == -9
    assert path.with_name(f"{path.name}.wal").exists()
    hold("reader")
    assert ledger.refresh().rebuilt is True  # what it wrote is not of this journal: noticed in the copy
    assert is_exact(ledger, events)


def test_a_foreign_writer_keeps_its_file_and_nothing_else(ledger, events, folder, hold, add_run):
    """Somebody has it open for writing: it cannot be copied, so the ledger is made anew beside it."""
    add_run()
    ledger.refresh()
    writer = hold("writer")
    add_run()
    state = ledger.refresh()
    assert state.rebuilt
    assert f"process `{writer.pid}` keeps the ledger file" in state.problems[0]
    assert is_exact(ledger, events)


def test_a_writer_that_stays_is_named_to_a_query(ledger, hold, add_run):
    """A query waits its own time and then says who is in the way."""
    add_run()
    ledger.refresh()
    writer = hold("writer")
    with pytest.raises(SystemUnavailable, match=f"process `{writer.pid}` keeps the ledger file"):
        ledger.query("FROM events", timeout_seconds=0.05)


def test_a_held_mirror_lock_is_waited_for_and_named(open_ledger, folder, add_run):
    """Bounded, with the holder's process in the message."""
    add_run()
    ledger = open_ledger(lock_timeout_seconds=0.05)
    ledger.refresh()
    add_run()
    with mirror_lock(folder / "mirror.lock", timeout_seconds=0), pytest.raises(SystemUnavailable) as caught:
        ledger.refresh()
    assert caught.value.data["pid"].isdigit()
    assert ledger.refresh().rebuilt is False


REFRESHER = """
import sys
from pathlib import Path
from amends.backends.duckdb_ledger import DuckdbLedger, Limits
from amends.backends.duckdb_ledger.connection import open_reader
from amends.backends.sqlite_journal import SqliteJournal
from amends.testing.fakes import SequentialIds, SimClock

folder, target = Path(sys.argv[1]), int(sys.argv[2])
journal = SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(int(sys.argv[3])))
ledger = DuckdbLedger(journal, folder, SimClock(), lock_timeout_seconds=30.0, reader_patience_seconds=30.0)
built, rounds, count = 0, 0, 0
while count < target:
    committed = journal.info().max_seq
    built += ledger.refresh().rebuilt
    ((count, distinct, last),) = ledger.query("SELECT count(*), count(DISTINCT seq), max(seq) FROM events").rows
    assert count == distinct == last >= committed, (count, distinct, last, committed)
    rounds += 1
journal.close()
print(built, rounds)
"""


def test_two_processes_refresh_a_growing_journal(folder, clock):
    """Every answer is whole and exact, every event arrives once, and the file was made once."""
    runs = [RunBuilder(clock, run_id=f"run-{n}").planned(f"a{n}").intent().succeeded() for n in range(60)]
    target = sum(len(run.events) for run in runs)
    journal = SqliteJournal.open(folder, clock=clock, ids=SequentialIds())
    command = [sys.executable, "-c", REFRESHER, str(folder), str(target)]
    both = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in (1, 2)]
    for run in runs:
        journal.commit(Commit(run.run_id, 0, records(run.events)))
    answers = [process.communicate(timeout=50)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(int(built) for built, _ in answers) == 1
    stored = journal.events_after(0)
    with closing(DuckdbLedger(journal, folder, clock)) as ledger:
        assert ledger.refresh().problems == ()
        assert ledger.query(ALL_ROWS).rows == as_rows(stored)
    journal.close()


def test_a_corrupt_row_of_a_real_journal_is_reported(folder, clock):
    """Bytes changed in the SQLite file arrive as a problem, and everything else arrives."""
    run = RunBuilder(clock).planned("a").intent().succeeded()
    with closing(SqliteJournal.open(folder, clock=clock, ids=SequentialIds())) as journal:
        journal.commit(Commit(run.run_id, 0, records(run.events)))
        location = journal.info().location
    with closing(sqlite3.connect(location)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE events SET payload = CAST(x'ff00fe' AS TEXT) WHERE seq = 2")
        connection.commit()
    with closing(SqliteJournal.open(folder, clock=clock, ids=SequentialIds(1))) as journal:
        state = DuckdbLedger(journal, folder, clock).refresh()
    assert state.events == len(run.events)
    assert {problem.partition(" (")[0] for problem in state.problems} == {"event seq 2"}


def test_a_folder_that_cannot_be_made_is_a_clear_error(events, clock, tmp_path):
    """The journal is unharmed; the message names the folder."""
    (tmp_path / "file").write_text("in the way")
    ledger = DuckdbLedger(events, tmp_path / "file" / "ledger", clock)
    with pytest.raises(SystemUnavailable, match="cannot be used"):
        ledger.refresh()


def test_a_closed_ledger_says_so(ledger):
    """Closing twice is fine; asking afterwards is a mistake of the caller."""
    ledger.close()
    ledger.close()
    with pytest.raises(CallerError, match="closed"):
        ledger.refresh()
    with pytest.raises(CallerError, match="closed"):
        ledger.query("FROM events")


def test_the_fake_journal_tells_its_extent():
    """An empty list of events is an empty journal."""
    info = EventList().info()
    assert (info.max_seq, info.events, info.max_hash) == (0, 0, "0" * 64)
