"""What keeps journal and ledger in step, and what notices when they are not."""

import sqlite3
import threading
from contextlib import closing

import pytest

from amends import Engine
from amends.backends import digest_key
from amends.backends.mirroring import Mirroring
from amends.core.errors import SystemUnavailable
from amends.ports.journal import JournalInfo
from amends.ports.ledger import LedgerState
from amends.runtime.verifying import differences
from amends.testing.projects import make_project


@pytest.fixture
def project(tmp_path, distributions):
    """A project with the tiny shop and one committed run."""
    path = make_project(tmp_path / "project")
    with Engine.open(path) as engine, engine.run(workflow="order", run_key="1", agent="coder") as run:
        run.call("shop.reserve", {"name": "lamp"})
        engine.pause("tenant:elsewhere", reason="x", by="maya")
    return path


def tamper(project, statement):
    with closing(sqlite3.connect(project.parent / ".amends" / "journal.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()


def test_rows_are_what_their_events_say(project):
    """After runs, pauses and decisions there is no difference."""
    with Engine.desk(project) as engine:
        assert list(differences(engine.kit.journal)) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE rows SET body = replace(body, 'lamp', 'sofa') WHERE kind = 'action'", "not what its events say"),
        ("DELETE FROM rows WHERE kind = 'action'", "not stored"),
        ("UPDATE rows SET body = replace(body, '\"x\"', '\"y\"') WHERE kind = 'pause'", "system stream says"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_found(project, statement, said):
    """Each difference names the row."""
    tamper(project, statement)
    with Engine.desk(project) as engine:
        found = list(differences(engine.kit.journal))
    assert len(found) == 1
    assert said in found[0]


# --- the mirror ----------------------------------------------------------------------------------------------


class GrowingJournal:
    """A journal of which only its size matters."""

    def __init__(self):
        self.events = 1

    def info(self):
        return JournalInfo("g", 1, self.events, "h", self.events, "here")


class WatchedLedger:
    """A ledger that counts its refreshes; `failing` makes the next ones fail."""

    def __init__(self, journal):
        self.journal = journal
        self.failing = False
        self.refreshed = threading.Semaphore(0)

    def refresh(self):
        self.refreshed.release()
        if self.failing:
            raise SystemUnavailable("somebody reads", hint="wait")
        return LedgerState("here", self.journal.events, self.journal.events, rebuilt=False)


def test_the_mirror_follows_the_journal_and_stops_when_told():
    """One refresh for what is new, none while nothing is."""
    journal = GrowingJournal()
    ledger = WatchedLedger(journal)
    mirroring = Mirroring(journal, lambda: ledger, every_seconds=0.01)
    mirroring.start()
    assert ledger.refreshed.acquire(timeout=20)
    journal.events = 2
    assert ledger.refreshed.acquire(timeout=20)
    mirroring.stop()
    mirroring.stop()
    assert not ledger.refreshed.acquire(blocking=False)


def test_trouble_with_the_mirror_is_kept_and_tried_again():
    """It never stands in a run's way."""
    journal = GrowingJournal()
    ledger = WatchedLedger(journal)
    ledger.failing = True
    mirroring = Mirroring(journal, lambda: ledger, every_seconds=0.01)
    mirroring.start()
    for _ in range(3):
        assert ledger.refreshed.acquire(timeout=20)
    mirroring.stop()
    assert mirroring.problem == "somebody reads"


def test_an_engine_that_mirrors_leaves_an_exact_ledger(tmp_path, project):
    """The thread of a whole engine writes the same file that questions read."""
    with Engine.open(project, mirror=True) as engine:
        rows = engine.sql("SELECT count(*) FROM runs").rows
    assert rows == ((1,),)


def test_keys_made_at_once_are_one_key(tmp_path):
    """Whoever is first makes it; the others take that one."""
    found = []
    start = threading.Barrier(8)

    def make():
        start.wait()
        found.append(digest_key.load_or_create(tmp_path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["digest.key"]
