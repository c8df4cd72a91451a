"""What the disk can do to a journal: no space, no permission, damage, another file, another format."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.sqlite_journal import SqliteJournal, schema
from amends.core.errors import ConfigError, CorruptLedger, JournalBusy, JournalUnavailable
from amends.ports.chain import broken_link
from amends.ports.journal import Committed

FULL = """
import resource, threading
mine = journal()
mine.commit(commit("before"))
size = os.stat(Path(sys.argv[1]) / "journal.sqlite-wal").st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
failed = []
def send(n):
    try:
        mine.commit(commit(f"during-{n}", size=400_000))
    except JournalUnavailable as error:
        failed.append((error.code, bool(error.hint), mine.events(f"during-{n}")))
threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(failed))
print(len(mine.events("before")))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(type(mine.commit(commit("after", size=400_000))).__name__, mine.verify(), mine.info().events)
mine.close()
"""

UNPRIVILEGED = """
if os.getuid() == 0:
    os.setgroups([])
    os.setuid(65534)
try:
    mine = journal(sys.argv[2])
    print(mine.commit(commit("run-2")))
except JournalUnavailable as error:
    print(error.code, error.hint)
"""


def test_a_full_disk_refuses_and_recovers(child, opened):
    """While there is no space every commit fails, with the remedy and nothing stored; then it goes on by itself."""
    process = child(FULL)
    out, _ = process.communicate()
    lines = out.splitlines()
    assert lines == [
        str([("journal_unavailable", True, ())] * 4),
        "1",
        "Committed () 2",
    ]
    assert opened().verify() == ()


@pytest.fixture
def public_folder():
    """A folder that another user reaches too: pytest's own folders are private to whoever runs it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name) / "journal"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_journal_that_may_not_be_written_is_unavailable(child, commit, public_folder, what):
    """Permission lost on the file, or on its folder: the error says what to make writable."""
    clock = SystemClock()
    journal = SqliteJournal.open(public_folder, clock=clock, ids=UuidV7(clock))
    journal.commit(commit())
    journal.close()
    (public_folder / "journal.lock").chmod(0o666)
    (public_folder / "journal.sqlite").chmod(0o444 if what == "file" else 0o666)
    public_folder.chmod(0o777 if what == "file" else 0o555)
    out, _ = child(UNPRIVILEGED, public_folder).communicate()
    public_folder.chmod(0o700)
    assert out.startswith("journal_unavailable")
    assert "writ" in out


def test_a_removed_file_takes_no_more_events(opened, commit, folder):
    """Events are never acknowledged into a file that nobody can find any more; put back, it goes on."""
    journal = opened()
    journal.commit(commit())
    aside = folder / "aside"
    (folder / "journal.sqlite").rename(aside)
    with pytest.raises(JournalUnavailable):
        journal.commit(commit(after=1))
    with pytest.raises(JournalUnavailable):
        journal.load("run-1")
    aside.rename(folder / "journal.sqlite")
    assert isinstance(journal.commit(commit(after=1)), Committed)
    assert journal.verify() == ()


REMOVED_LOG = """
mine = journal()
mine.commit(commit("run-1"))
mine.commit(commit("run-1", 1))
(Path(sys.argv[1]) / "journal.sqlite-wal").unlink()
print(type(mine.commit(commit("run-1", 2))).__name__, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_removed_log_loses_nothing(child, opened):
    """Somebody tidied the log away under a running process, which is killed later: all it acknowledged is there."""
    process = child(REMOVED_LOG)
    out, _ = process.communicate()
    assert out == "Committed\n"
    journal = opened()
    assert len(journal.events("run-1")) == 3
    assert journal.verify() == ()


def test_a_replaced_file_is_another_journal(opened, commit, folder, tmp_path):
    """A backup put in its place while in use is refused: heads computed from one do not fit the other. Afterwards it is
    taken only from somebody who says so.
    """
    journal = opened()
    journal.commit(commit())
    journal.backup(str(tmp_path / "copy"))
    for old in folder.glob("journal.sqlite*"):
        old.unlink()
    (tmp_path / "copy").rename(folder / "journal.sqlite")
    with pytest.raises(JournalUnavailable, match="replaced") as caught:
        journal.commit(commit(after=1))
    assert caught.value.hint
    journal.close()
    with pytest.raises(CorruptLedger, match="another journal") as caught:
        opened()
    assert "journal.lock" in caught.value.hint
    (folder / "journal.lock").unlink()
    assert isinstance(opened().commit(commit(after=1)), Committed)


def test_another_format_is_named_with_its_remedy(opened, folder):
    """A newer engine's journal is not touched."""
    opened().close()
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    with pytest.raises(ConfigError) as caught:
        opened()
    assert "`99`" in caught.value.message
    assert "later" in caught.value.hint


def test_a_database_of_somebody_else_is_left_alone(opened, folder):
    """A file that is a database but no journal gets no tables of ours."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE theirs(x)")
    with pytest.raises(ConfigError, match="no journal"):
        opened()
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_damage(opened, folder):
    """Neither overwritten nor taken for an empty journal."""
    folder.mkdir()
    (folder / "journal.sqlite").write_bytes(b"not a database at all" * 1000)
    with pytest.raises(CorruptLedger, match="damaged"):
        opened()


def test_a_folder_that_cannot_be_is_unavailable(opened, folder):
    """A file stands where the folder should be."""
    folder.write_text("in the way")
    with pytest.raises(JournalUnavailable) as caught:
        opened()
    assert caught.value.hint


def test_flipped_bits_are_found_and_block_nothing(opened, commit, folder):
    """Text that is no text any more: that run's reading fails, verify names it, the mirror and other runs go on."""
    journal = opened()
    journal.commit(commit("run-1"))
    journal.commit(commit("run-2"))
    journal.close()
    database = folder / "journal.sqlite"
    data = database.read_bytes()
    at = data.index(b'"checkpoint_reached"')
    database.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    journal = opened()
    every = journal.events_after(0)
    assert len(every) == 2
    (broken,) = [stored for stored in every if broken_link(stored)]
    assert any(f"seq {broken.seq} " in problem for problem in journal.verify())
    with pytest.raises(CorruptLedger):
        journal.events(broken.event.run_id)
    (sound,) = {"run-1", "run-2"} - {broken.event.run_id}
    assert len(journal.events(sound)) == 1
    assert isinstance(journal.commit(commit(sound, after=1)), Committed)


def test_a_ruined_page_is_reported(opened, commit, folder):
    """Damage that stops SQLite from reading on is reported as such, not raised by verify and not skipped."""
    journal = opened()
    for place in range(200):
        journal.commit(commit(after=place))
    journal.close()
    database = folder / "journal.sqlite"
    with database.open("r+b") as file:
        for page in range(8, database.stat().st_size // 4096, 2):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)
    journal = opened()
    assert any("damaged" in problem or "cannot be read" in problem for problem in journal.verify())
    with pytest.raises(CorruptLedger) as caught:
        journal.events_after(0)
    assert "restore" in caught.value.hint


def test_a_program_that_holds_the_database_is_reported(opened, commit, folder, monkeypatch):
    """Somebody's database shell in the middle of a write: a bounded wait, then a clear error, then work as before."""
    monkeypatch.setattr(schema, "WRITER_BUSY_SECONDS", 0.1)
    journal = opened()
    with closing(sqlite3.connect(folder / "journal.sqlite", isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalBusy, match="another program"):
            journal.commit(commit())
        shell.execute("ROLLBACK")
    assert isinstance(journal.commit(commit()), Committed)


def test_a_restored_journal_is_missed_before_its_first_commit(opened, commit, folder, tmp_path):
    """Opened once where it is new, and lost before anything was added to it: it is not taken for a new one."""
    journal = opened()
    journal.commit(commit())
    journal.backup(str(tmp_path / "copy"))
    journal.close()
    for old in folder.iterdir():
        old.unlink()
    (tmp_path / "copy").rename(folder / "journal.sqlite")
    opened().close()
    (folder / "journal.sqlite").unlink()
    with pytest.raises(CorruptLedger, match="gone or empty"):
        opened()
