"""Every journal behind one harness: opened, tampered with and restored in its own way."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from amends.backends.sqlite_journal import SqliteJournal
from amends.core.events import CheckpointReached, encode
from amends.ports.journal import Commit, EventRecord, Head, RowKey, RowWrite, seal
from amends.testing.fakes import SequentialIds, SimClock
from amends.testing.memory_journal import MemoryJournal


class Make:
    """Builds events, rows and commits that differ only where a test says so."""

    def __init__(self):
        self._ids = SequentialIds()
        self._names = count(1)

    def event(self, stream="run-1", place=1, **columns):
        body = CheckpointReached(name=f"point {next(self._names)}")
        event = EventRecord(
            event_id=self._ids.new(),
            ts_us=1_700_000_000_000_000 + place,
            run_id=stream,
            run_seq=place,
            action_id="",
            slot="",
            generation=1,
            attempt=0,
            epoch=1,
            kind=body.kind,
            status="open",
            outcome="none",
            capability="git.push",
            system="git",
            provider="hub",
            tenant="acme",
            workflow="billing",
            policy_version="",
            decision_id="",
            payload=encode(body),
        )
        return seal(replace(event, **columns))

    def commit(self, stream="run-1", after=0, events=1, **parts):
        return Commit(
            stream=stream,
            expected_head=after,
            events=[self.event(stream, after + n) for n in range(1, events + 1)],
            **parts,
        )

    def row(self, kind="run", key="run-1", run_id="run-1", **parts):
        return RowWrite(key=RowKey(kind, key), run_id=run_id, **{"status": "open", "body": "{}", **parts})


class MemoryHarness:
    """The fake."""

    def __init__(self, folder):
        self.journal = MemoryJournal()

    def restored(self, path):
        return MemoryJournal.from_backup(path)

    def change_event(self, seq, **columns):
        stored = self.journal._events
        for place, event in enumerate(stored):
            if event.seq == seq:
                stored[place] = replace(event, event=replace(event.event, **columns))

    def drop_event(self, seq):
        self.journal._events = [event for event in self.journal._events if event.seq != seq]

    def set_head(self, stream, place):
        self.journal._heads[stream] = Head(place, self.journal._heads[stream].hash)

    def set_sealed(self, stream, file):
        self.journal._heads[stream] = replace(self.journal._heads[stream], sealed=file)

    def set_body(self, key, body):
        self.journal._rows[key] = replace(self.journal._rows[key], body=body)


class SqliteHarness:
    """The real one, on a real disk."""

    def __init__(self, folder):
        self._folder = folder
        self.journal = self._open(folder / "journal")

    def restored(self, path):
        folder = self._folder / "restored"
        folder.mkdir()
        Path(path).rename(folder / "journal.sqlite")
        return self._open(folder)

    def change_event(self, seq, **columns):
        sets = ", ".join(f"{name} = ?" for name in columns)
        self._sql(f"UPDATE events SET {sets} WHERE seq = ?", *columns.values(), seq)

    def drop_event(self, seq):
        self._sql("DELETE FROM events WHERE seq = ?", seq)

    def set_head(self, stream, place):
        self._sql("UPDATE streams SET head = ? WHERE stream = ?", place, stream)

    def set_sealed(self, stream, file):
        self._sql("UPDATE streams SET sealed = ? WHERE stream = ?", file, stream)

    def set_body(self, key, body):
        self._sql("UPDATE rows SET body = ? WHERE kind = ? AND key = ?", body, key.kind, key.key)

    def _open(self, folder):
        return SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(node=7))

    def _sql(self, statement, *values):
        with closing(sqlite3.connect(self._folder / "journal" / "journal.sqlite")) as connection, connection:
            connection.execute(statement, values)


@pytest.fixture(params=[MemoryHarness, SqliteHarness], ids=["memory", "sqlite"])
def harness(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.journal.close()


@pytest.fixture
def journal(harness):
    return harness.journal


@pytest.fixture
def make():
    return Make()
