"""Old runs leave the journal for sealed files: no row is lost, wherever it is cut short, and nothing is done twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import duckdb
import pytest

from amends.backends.duckdb_ledger import DuckdbLedger, ParquetArchive
from amends.backends.duckdb_ledger.mirror import COLUMNS
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import AmendsError, Conflict, CorruptLedger, SystemUnavailable
from amends.core.events import LeaseReleased
from amends.ports.journal import RowKey
from amends.ports.lines import from_line, to_line
from amends.runtime.book import Draft
from amends.runtime.exporting import exported
from amends.runtime.sealing import seal
from amends.testing.fakes import SequentialIds
from amends.testing.worlds import World, keyed, ledger_faults

ALL_ROWS = f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY seq"
DAY = 86_400


@pytest.fixture
def world(folder, clock):
    """A world over a real journal, with an archive beside it: its clock decides what is old."""
    made = World(
        keyed("shop.reserve"), keyed("shop.book"), journal=SqliteJournal.open(folder, clock=clock, ids=SequentialIds(3))
    )
    made.engine(archive=lambda: ParquetArchive(folder), notifiers=())
    yield made
    made.close()


@pytest.fixture
def ledger(world, folder, clock):
    return DuckdbLedger(world.journal, folder, clock, reader_patience_seconds=0.05)


@pytest.fixture
def archive(folder):
    return ParquetArchive(folder, lock_timeout_seconds=0.05)


@pytest.fixture
def add(world):
    """Runs that are over: `good` ones commit, others are recovered."""

    def make(*keys, good=True):
        for key in keys:
            try:
                with world.run(key) as run:
                    run.call("shop.reserve", {"name": f"r-{key}"})
                    run.call("shop.book", {"name": f"b-{key}"})
                    if not good:
                        raise RuntimeError(key)
            except RuntimeError:
                pass
        return [world.engines[0].find("order", key).run.run_id for key in keys]

    return make


@pytest.fixture
def put_away(world, archive):
    """Seal what is older than a day."""

    def do(**changes):
        parts = {"now_us": world.clock.now_us(), "keep_us": DAY * 1_000_000}
        return seal(world.journal, archive, **(parts | changes))

    return do


def change(folder, statement, *values):
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute(statement, values)


def rows(ledger):
    ledger.refresh()
    return ledger.query(ALL_ROWS).rows


# --- what goes and what stays -------------------------------------------------------------------------------------


def test_old_runs_leave_the_journal_and_no_row_is_lost(world, ledger, add, put_away, archive):
    """The journal is small again, the ledger as it was, and the same when it is made anew from both."""
    add("1", "2")
    add("3", good=False)
    world.clock.advance(2 * DAY)
    young = add("4")
    before = rows(ledger)
    done = put_away()
    (made,) = done.seals
    assert (made.runs, done.left) == (3, {})
    assert {stored.event.run_id for stored in world.journal.events_after(0)} - {"system"} == set(young)
    assert rows(ledger) == before
    state = ledger.rebuild()
    assert (state.problems, state.events) == ((), len(before))
    assert ledger.query(ALL_ROWS).rows == before
    assert ledger_faults(world.journal) == []
    assert archive.problems(world.journal.seals()) == ()


def test_views_and_metrics_answer_from_sealed_rows_too(world, ledger, add, put_away):
    """A ledger made anew says of every action what it said before."""
    add("1")
    add("2", good=False)
    world.clock.advance(2 * DAY)
    asked = [
        "FROM actions ORDER BY action_id",
        "FROM runs ORDER BY run_id",
        "FROM compensation_success",
        "FROM unknown_rate",
    ]
    ledger.refresh()
    before = [ledger.query(sql).rows for sql in asked]
    put_away()
    ledger.rebuild()
    assert [ledger.query(sql).rows for sql in asked] == before


def test_what_is_not_old_or_not_over_stays(world, add, put_away):
    """A young run, and one that is still open after years."""
    still_open = world.run("open")
    still_open.call("shop.reserve", {"name": "x"})
    world.clock.advance(999 * DAY)
    add("young")
    assert put_away().seals == []
    assert len(world.journal.rows("run")) == 2


def test_sealing_again_does_nothing(world, add, put_away):
    """Nothing new is old: no file, no seal."""
    add("1")
    world.clock.advance(2 * DAY)
    put_away()
    assert put_away().seals == []
    assert len(world.journal.seals()) == 1


def test_many_runs_make_several_files(world, ledger, add, put_away, monkeypatch):
    """A file holds whole runs, about as many events as one step may remove at once."""
    monkeypatch.setattr("amends.runtime.sealing.EVENTS_PER_FILE", 20)
    add(*"123456")
    before = rows(ledger)
    world.clock.advance(2 * DAY)
    heard = []
    done = put_away(on_file=heard.append)
    assert len(done.seals) > 1
    assert heard == done.seals
    assert sum(made.runs for made in done.seals) == 6
    ledger.rebuild()
    assert ledger.query(ALL_ROWS).rows == before


def test_a_damaged_run_stays_and_is_named(world, folder, add, put_away):
    """It is left to a person, with what is wrong; the others go."""
    bad, _ = add("1", "2")
    world.clock.advance(2 * DAY)
    change(folder, "UPDATE events SET tenant = 'mallory' WHERE run_id = ? AND run_seq = 2", bad)
    done = put_away()
    assert list(done.left) == [bad]
    assert "differs from its digest" in done.left[bad]
    assert [made.runs for made in done.seals] == [1]


def test_a_quarantined_run_stays(world, folder, add, put_away):
    """Whoever looks at it finds it where it was."""
    (bad,) = add("1")
    change(folder, "UPDATE rows SET body = '{}' WHERE kind = 'run' AND key = ?", bad)
    world.engines[0].book.forget(bad)
    with pytest.raises(CorruptLedger):
        world.engines[0].state(bad)
    world.clock.advance(2 * DAY)
    assert bad in put_away().left


# --- sealed runs are still there ----------------------------------------------------------------------------------


def test_a_sealed_run_is_found_and_says_so(world, add, put_away):
    """Every action and outcome, read from its file; the report names the file."""
    (run_id,) = add("1", good=False)
    engine = world.engines[0]
    before, report = engine.state(run_id), engine.run_report(run_id)
    world.clock.advance(2 * DAY)
    (made,) = put_away().seals
    found = engine.find("order", "1")
    assert found == replace(before, sealed=made.file)
    assert engine.run_report(run_id) == {**report, "sealed": made.file}
    assert engine.recover(run_id) == [found]


def test_the_key_of_a_sealed_run_is_never_used_again(world, add, put_away):
    """A second opener gets the report, as from any run that is over."""
    add("1")
    world.clock.advance(2 * DAY)
    (made,) = put_away().seals
    with pytest.raises(Conflict) as caught:
        world.run("1")
    assert caught.value.data["report"]["sealed"] == made.file


def test_late_evidence_about_a_sealed_run_opens_a_follow_up(world, add, put_away):
    """Rule 25 holds for it too."""
    (run_id,) = add("1")
    world.clock.advance(2 * DAY)
    put_away()
    engine = world.engines[0]
    action_id = next(iter(engine.state(run_id).actions))
    opened = engine.report(run_id, action_id, happened=False, source="the shop")
    assert opened.run.caused_by == run_id
    assert len(opened.escalations) == 1


def test_without_its_file_a_sealed_run_is_not_guessed_at(world, archive, add, put_away):
    """The error names the file."""
    (run_id,) = add("1")
    world.clock.advance(2 * DAY)
    (made,) = put_away().seals
    (archive.folder / made.file).unlink()
    with pytest.raises(CorruptLedger, match=f"{made.file}.*is missing"):
        world.engines[0].state(run_id)


# --- cut short ----------------------------------------------------------------------------------------------------

SEALER = """
import os, sys
from pathlib import Path
from amends.backends.duckdb_ledger import ParquetArchive, archive
from amends.backends.sqlite_journal import SqliteJournal, append
from amends.runtime.sealing import seal
from amends.testing.fakes import SequentialIds, SimClock

folder, point, now_us = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def die(*_, **__):
    os.kill(os.getpid(), 9)

def before(owner, name):
    setattr(owner, name, die)

def after(owner, name):
    real = getattr(owner, name)
    def then_die(*args, **kwargs):
        real(*args, **kwargs)
        die()
    setattr(owner, name, then_die)

{
    "nothing written": lambda: before(ParquetArchive, "write"),
    "half a file": lambda: before(archive, "_sync"),
    "file without its name": lambda: before(archive, "_sha256"),
    "file not trimmed": lambda: before(SqliteJournal, "trim"),
    "trim not committed": lambda: before(append._Transaction, "finish"),
    "trimmed": lambda: after(SqliteJournal, "trim"),
    "nowhere": lambda: None,
}[point]()
journal = SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(5))
seal(journal, ParquetArchive(folder), now_us=now_us, keep_us=86_400_000_000)
"""


@pytest.mark.parametrize(
    "point",
    ["nothing written", "half a file", "file without its name", "file not trimmed", "trim not committed", "trimmed"],
)
def test_a_sealer_killed_anywhere_loses_and_doubles_nothing(point, world, folder, archive, ledger, add, put_away):
    """Each event is in journal or sealed file, exactly once; the next sealing finishes and tidies up."""
    add("1", "2")
    world.clock.advance(2 * DAY)
    before = rows(ledger)
    command = [sys.executable, "-c", SEALER, str(folder), point, str(world.clock.now_us())]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert ledger_faults(world.journal) == []
    ledger.rebuild()
    assert ledger.query(ALL_ROWS).rows == before
    put_away()
    assert ledger_faults(world.journal) == []
    assert world.journal.rows("run") == ()
    files = sorted(path.name for path in archive.folder.iterdir() if path.name != "seal.lock")
    assert files == [made.file for made in world.journal.seals()]
    ledger.rebuild()
    assert ledger.query(ALL_ROWS).rows == before


def test_a_run_that_moved_on_meanwhile_is_not_trimmed(world, archive, add, put_away, monkeypatch):
    """What was written between reading and trimming would be lost: the file counts for nothing instead."""
    (run_id,) = add("1")
    world.clock.advance(2 * DAY)
    real = archive.write

    def slow(generation, events):
        answer = real(generation, events)
        world.engines[0].book.record(run_id, lambda _: [Draft(LeaseReleased())])
        return answer

    monkeypatch.setattr(archive, "write", slow)
    done = put_away()
    assert (done.seals, list(done.left)) == ([], [run_id])
    assert ledger_faults(world.journal) == []


def test_one_process_seals_at_a_time(world, folder, archive, put_away):
    """The other one is told who does, after a bounded time."""
    with (
        ParquetArchive(folder).exclusively(),
        pytest.raises(SystemUnavailable, match=f"process `{os.getpid()}`.*seal lock"),
    ):
        put_away()


def test_a_full_or_closed_disk_seals_nothing(world, archive, add, put_away, monkeypatch):
    """The journal keeps what could not be written."""
    add("1")
    world.clock.advance(2 * DAY)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("amends.backends.duckdb_ledger.archive._sync", full)
    with pytest.raises(SystemUnavailable, match="No space left"):
        put_away()
    assert (world.journal.seals(), ledger_faults(world.journal)) == ((), [])


def test_a_file_that_does_not_read_back_is_not_trusted(world, archive, add, put_away, monkeypatch):
    """It is compared with what was to be written before anything is trimmed."""
    add("1")
    world.clock.advance(2 * DAY)
    real = ParquetArchive._compare

    def poor_disk(self, connection, path, ends):
        connection.execute("DELETE FROM events WHERE seq = (SELECT min(seq) FROM events)")
        real(self, connection, path, ends)

    monkeypatch.setattr(ParquetArchive, "_compare", poor_disk)
    with pytest.raises(CorruptLedger, match="does not hold what was written"):
        put_away()
    assert world.journal.seals() == ()


# --- the mirror and its files -------------------------------------------------------------------------------------


def test_runs_sealed_before_they_were_mirrored_are_mirrored_all_the_same(world, ledger, add, put_away):
    """Nobody asked for a while: the ledger takes them from their files."""
    add("1")
    ledger.refresh()
    add("2", "3")
    world.clock.advance(2 * DAY)
    expected = [stored.seq for stored in world.journal.events_after(0)]
    put_away()
    assert world.journal.events_after(0) == ()
    state = ledger.refresh()
    assert [row[0] for row in ledger.query(ALL_ROWS).rows] == expected
    assert state.events == world.journal.info().events


@pytest.fixture
def sealed(world, ledger, add, put_away):
    """Two sealed files of one run each, a run in the journal, and a ledger that has all; its rows."""
    for key in ("1", "2"):
        add(key)
        world.clock.advance(2 * DAY)
        put_away()
    add("3")
    world.engines[0].pause("tenant:elsewhere", reason="they asked", by="maya")
    assert len(world.journal.seals()) == 2
    return rows(ledger)


def of_file(before, made):
    return [row for row in before if made.first_seq <= row[0] <= made.last_seq]


def test_a_missing_file_is_reported_and_nothing_is_dropped_for_it(sealed, world, ledger, archive):
    """The ledger may be the last to hold its rows, so it keeps them: doubt of the file is no doubt of the copy."""
    first, _ = world.journal.seals()
    (archive.folder / first.file).unlink()
    with world.run("4"):
        pass
    state = ledger.refresh()
    assert state.rebuilt is False
    assert [problem.split(" (")[0] for problem in state.problems] == [f"sealed file `{archive.folder / first.file}`"]
    assert state.problems[0].endswith("is missing")
    assert set(of_file(sealed, first)) <= set(ledger.query(ALL_ROWS).rows)


def test_a_ledger_made_anew_without_a_file_says_what_it_lacks(sealed, world, ledger, archive):
    """Everything else is there; the problem stays until the file is back, and then the ledger is whole by itself."""
    first, _ = world.journal.seals()
    path = archive.folder / first.file
    kept = path.rename(path.with_suffix(".kept"))
    state = ledger.rebuild()
    assert "is missing" in state.problems[0]
    assert state.events == len(sealed) - first.events
    with world.run("4"):
        pass
    again = ledger.refresh()
    assert (again.rebuilt, again.problems) == (False, state.problems)
    kept.rename(path)
    with world.run("5"):
        pass
    assert ledger.refresh().rebuilt
    assert set(sealed) <= set(ledger.query(ALL_ROWS).rows)
    assert ledger.refresh().problems == ()


@pytest.mark.parametrize("how", ["cut", "garbage", "other rows"])
def test_a_changed_file_is_found_and_what_can_be_read_of_it_is_kept(how, sealed, world, ledger, archive):
    """`problems` reads every byte; a ledger made anew names file and events, and has all the others."""
    first, _ = world.journal.seals()
    path = archive.folder / first.file
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif how == "garbage":
        path.write_bytes(b"\0" * first.size_bytes)
    else:
        forge(path)
    (said,) = archive.problems(world.journal.seals())
    assert first.file in said
    state = ledger.rebuild()
    assert said in state.problems[0]
    found = ledger.query(ALL_ROWS).rows
    assert set(sealed) - set(of_file(sealed, first)) <= set(found)
    if how == "other rows":
        assert len(found) == len(sealed)
        assert any("differs from its digest" in problem for problem in state.problems)
    assert ledger.refresh().problems == state.problems
    with pytest.raises(CorruptLedger, match=first.file):
        list(archive.events([first]))


def forge(path):
    """The same Parquet file with another tenant in it."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * REPLACE ('mallory' AS tenant) FROM read_parquet(?)", [str(path)])
        connection.execute(f"COPY (FROM t ORDER BY seq) TO '{path}' (FORMAT parquet)")


@pytest.mark.parametrize("forged", [False, True])
def test_a_copy_that_ends_in_a_sealed_file_is_compared_there(forged, world, ledger, folder, add, put_away):
    """The last event that was mirrored is in the journal no more: its hash is looked up in the file."""
    add("1")
    ledger.refresh()
    if forged:
        with duckdb.connect(str((folder / "ledger.duckdb").resolve())) as connection:
            connection.execute("UPDATE internal.mirror SET max_hash = 'another'")
    world.clock.advance(2 * DAY)
    put_away()
    state = ledger.refresh()
    assert state.rebuilt is forged
    assert [f"differs from the journal at seq {state.max_seq}" in problem for problem in state.problems] == [
        True
    ] * forged


def test_a_copy_that_ends_inside_a_sealed_run_is_made_whole(world, ledger, put_away):
    """It had the first events of a run whose others were sealed before they were mirrored."""
    with world.run("1") as run:
        run.call("shop.reserve", {"name": "x"})
        ledger.refresh()
        run.call("shop.book", {"name": "y"})
    expected = world.journal.info().events
    world.clock.advance(2 * DAY)
    put_away()
    state = ledger.refresh()
    assert (state.rebuilt, state.events) == (True, expected)
    assert "events, the journal counts" in state.problems[0]
    assert ledger.refresh().problems == ()


def test_the_hash_of_any_sealed_event_is_found(sealed, world, archive):
    """First, last, one between; none for a place that another run has, and no answer without the file."""
    seals = world.journal.seals()
    hashes = {row[0]: row[-1] for row in sealed}
    first = seals[0]
    for seq in (first.first_seq, first.first_seq + 1, first.last_seq):
        assert archive.hash_at(seals, seq) == hashes[seq]
    assert archive.hash_at(seals, world.journal.info().max_seq) == ""
    (archive.folder / first.file).unlink()
    assert archive.hash_at(seals, first.first_seq) is None


# --- exporting ----------------------------------------------------------------------------------------------------


def test_an_export_holds_every_event_in_order(sealed, world, archive):
    """Sealed or not, as stored: the rows of the ledger, one a line, and back again."""
    lines = [to_line(stored) for stored in exported(world.journal, archive)]
    assert [tuple(json.loads(line).values()) for line in lines] == list(sealed)
    assert [from_line(line) for line in lines] == list(exported(world.journal, archive))


def test_one_run_is_exported_from_wherever_it_is(sealed, world, archive):
    """A sealed one from its file, another from the journal, an unknown one not at all."""
    for key in ("1", "3"):
        run_id = world.engines[0].find("order", key).run.run_id
        found = list(exported(world.journal, archive, run_id))
        assert [stored.event.run_seq for stored in found] == list(range(1, len(found) + 1))
        assert {stored.event.run_id for stored in found} == {run_id}
    with pytest.raises(AmendsError, match="no run `nothing`"):
        list(exported(world.journal, archive, "nothing"))


def test_an_incomplete_export_is_an_error(sealed, world, archive):
    """Never a shorter file."""
    (archive.folder / world.journal.seals()[1].file).unlink()
    with pytest.raises(CorruptLedger, match="is missing"):
        list(exported(world.journal, archive))


def test_a_tombstone_says_where_a_run_is(sealed, world):
    """What is left of it in the journal is a few lines."""
    made = world.journal.seals()[0]
    (row, *_) = world.journal.rows("sealed")
    assert json.loads(row.body)["file"] == made.file
    assert {kept.key.kind for kept in world.journal.load(row.run_id)} == {"claim", "sealed"}
    assert world.journal.row(RowKey("run", row.run_id)) is None
