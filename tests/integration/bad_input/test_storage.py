"""A journal or ledger that cannot be used: nothing sent that was not recorded, nothing lost."""

import signal
import sqlite3
from contextlib import closing

import pytest

from amends import Engine
from amends.core.errors import CorruptLedger, JournalBusy
from amends.core.status import ActionStatus
from amends.testing.crash.worker import calls_of

FULL = """
import resource
run = open_run("1")
assert reserve(run, "o1").ok
journal = os.path.join(sys.argv[1], ".amends", "journal.sqlite-wal")
size = os.stat(journal).st_size
def space(bytes): resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))
space(size)
try:
    reserve(run, "o2")
except SystemUnavailable as error:
    print(error.code, "|", error.hint)
space(resource.RLIM_INFINITY)
print(reserve(run, "o2").status.value)
print(run.finish().status.value)
engine.close()
"""

FULL_AT_THE_OUTCOME = """
import resource
journal = os.path.join(sys.argv[1], ".amends", "journal.sqlite-wal")
def space(bytes): resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))
class Fill:
    def reached(self, milestone, run_id, action_id):
        if milestone == "after_call":
            space(os.stat(journal).st_size)
engine = Engine.open(sys.argv[1], mirror=False, progress=Fill())
run = open_run("1")
first = reserve(run, "o1")
print(first.status.value, first.outcome.value)
try:
    reserve(run, "o2")
except SystemUnavailable as error:
    print(error.code)
space(resource.RLIM_INFINITY)
print(reserve(run, "o1").status.value)
engine.close()
"""

READ_ONLY = """
Engine.open(sys.argv[1], mirror=False).close()  # what it imports, another user may not read
if os.getuid() == 0:
    os.setgroups([])
    os.setuid(65534)
for what, mode in (("file", 0o666), ("folder", 0o755)):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        with Engine.open(sys.argv[1], mirror=False) as engine:
            reserve(open_run(what))
    except AmendsError as error:
        print(what, error.code, error.message, "|", error.hint, flush=True)
"""

FROZEN = """
journal = engine.kit.journal
from amends.core.events import PauseSet
from amends.runtime.book import Book
import dataclasses
commit = journal.commit
def freezing(command):
    def wait():
        print("holding", flush=True)
        time.sleep(600)
    return commit(dataclasses.replace(command, wanted=wait))
journal.commit = freezing
Book(engine.kit).record_system([PauseSet(scope="all", reason="never stored", by="nobody")])
"""


def test_a_full_disk_sends_nothing_and_goes_on_afterwards(child, sent):
    """The intent is not acknowledged, so the call is not made; with space again the same call works."""
    out, _ = child(FULL).communicate(timeout=60)
    code, hint = out.splitlines()[0].split(" | ")
    assert code == "journal_unavailable"
    assert hint
    assert out.splitlines()[1:] == ["succeeded", "committed"]
    assert sent() == [("POST", "/v1/reservations")] * 2


def test_an_outcome_that_cannot_be_written_is_kept(child, sent, engine):
    """The caller hears `unknown`, no new intent is accepted, and once there is space the outcome is written."""
    out, _ = child(FULL_AT_THE_OUTCOME, opened=False).communicate(timeout=60)
    assert out.splitlines() == ["unknown unknown", "journal_unavailable", "succeeded"]
    assert sent() == [("POST", "/v1/reservations")]
    (run,) = engine.runs()
    (action,) = engine.state(run.run_id).actions.values()
    assert action.status is ActionStatus.SUCCEEDED


def test_a_read_only_journal_sends_nothing(child, project, sent):
    """Permission lost on the file, or on its folder: the error says what to make writable."""
    process = child(READ_ONLY, opened=False)
    assert process.stdout.readline() == "ready\n"
    storage = project / ".amends"
    for path in (storage, *storage.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (storage / "journal.sqlite").chmod(0o444)
    process.stdin.write("go\n")
    process.stdin.flush()
    of_file = process.stdout.readline()
    assert process.stdout.readline() == "ready\n"
    (storage / "journal.sqlite").chmod(0o666)
    storage.chmod(0o555)
    of_folder, _ = process.communicate("go\n", timeout=60)
    storage.chmod(0o755)
    assert of_file.startswith("file journal_unavailable")
    assert "writable" in of_file
    assert of_folder.startswith("folder ")
    assert "writ" in of_folder.split(" | ")[1]
    assert str(storage) in of_folder
    assert sent() == []


def test_a_frozen_holder_of_the_write_lock_is_named(child, engine, sent, reserve):
    """Bounded wait, then the pid; nothing sent, and the same call works once the holder is gone."""
    run = engine.run(workflow="orders", run_key="1", agent="bot")
    holder = child(FROZEN)
    assert holder.stdout.readline() == "holding\n"
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(JournalBusy) as refused:
        reserve(run)
    assert refused.value.data["pid"] == holder.pid
    assert str(holder.pid) in refused.value.message
    assert "nothing was sent" in refused.value.hint
    assert sent() == []
    holder.kill()
    holder.wait()
    assert reserve(run).ok
    assert engine.pauses() == []


@pytest.mark.parametrize("kind", ["run", "action"])
def test_a_corrupt_row_quarantines_its_run_alone(open_engine, child, project, partner, kind, reserve):
    """Nothing more is sent for that run, verify and state say so; sweep and other runs go on."""
    dead = child("reserve(open_run('dead'), 'o1'); reserve(open_run('other'), 'o2'); os.kill(os.getpid(), 9)")
    dead.wait(60)
    with closing(sqlite3.connect(project / ".amends" / "journal.sqlite")) as connection, connection:
        (run_id,) = connection.execute(
            "SELECT run_id FROM rows WHERE kind = 'run' AND body LIKE '%\"dead\"%'"
        ).fetchone()
        changed = connection.execute(
            "UPDATE rows SET body = '{' || substr(body, 3) WHERE kind = ? AND run_id = ?", (kind, run_id)
        ).rowcount
    assert changed == 1
    engine = open_engine()
    recovered = engine.recover(wait_seconds=10)
    assert [(s.run.run_key, s.run.status.value) for s in recovered] == [("other", "recovered")]
    with pytest.raises(CorruptLedger) as refused:
        engine.state(run_id)
    assert "quarantine" in refused.value.message
    assert "verify" in refused.value.hint
    assert engine.kit.journal.rows("quarantine", active=True)
    assert partner.count("reservation") == 1
    with engine.run(workflow="orders", run_key="next", agent="bot") as run:
        assert reserve(run, "o3").ok


def test_a_damaged_question_hides_no_other(open_engine, project, partner):
    """One row that cannot be read back leaves the inbox as it is otherwise."""
    engine = open_engine()
    for order in ("o1", "o2"):
        run = engine.run(workflow="orders", run_key=order, agent="bot")
        assert run.call(*calls_of(order)[3]).ok
        (submission,) = run.state.actions.values()
        partner.control("set_status", collection="submissions", id=submission.reference, status="approved")
        assert run.fail("cancelled", wait_seconds=5).status.value == "needs_human"
    items = [item.escalation_id for item in engine.escalations()]
    assert len(items) >= 2
    with closing(sqlite3.connect(project / ".amends" / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE rows SET body = 'gone' WHERE kind = 'escalation' AND key = ?", (items[0],))
    assert [item.escalation_id for item in open_engine().escalations()] == items[1:]


def test_a_corrupt_ledger_file_is_set_aside_and_made_anew(open_engine, project, reserve):
    """DuckDB's file is a copy: the answer is the same, and the journal is unharmed."""
    engine = open_engine()
    with engine.run(workflow="orders", run_key="1", agent="bot") as run:
        assert reserve(run).ok
    ask = "SELECT count(*), max(seq) FROM events"
    before = engine.sql(ask).rows
    engine.close()
    file = (project / ".amends" / "ledger.duckdb").resolve()
    with file.open("r+b") as damaged:
        damaged.write(b"\0" * 8192)
    again = open_engine()
    assert again.sql(ask).rows[0][0] >= before[0][0]
    assert again.kit.journal.verify() == ()
    assert again.sql(ask).rows[0][0] == again.kit.journal.info().events


def test_a_folder_that_cannot_be_made_is_named(project):
    """A file stands where the storage folder should be."""
    from amends.core.errors import AmendsError

    (project / ".amends").write_text("in the way", encoding="utf-8")
    with pytest.raises(AmendsError) as refused:
        Engine.open(project)
    assert ".amends" in refused.value.message
    assert refused.value.hint
