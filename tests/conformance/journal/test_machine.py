"""Whatever is done to them, the real journal and the fake answer alike; closed, copied and restored in between, too: a
fencing epoch that was passed never writes again, and the mirror holds the journal row by row.
"""

import tempfile
from dataclasses import astuple, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from amends.backends.duckdb_ledger import DuckdbLedger
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import Conflict
from amends.core.events import CheckpointReached, encode
from amends.ports.journal import EVENT_COLUMNS, Commit, Committed, EventRecord, Head, RowKey, RowWrite, Seal, Trim, seal
from amends.testing.fakes import SequentialIds, SimClock
from amends.testing.memory_journal import MemoryJournal

STREAMS = st.sampled_from(["system", "run-1", "run-2", "run-3"])
STATUSES = ["open", "recovering", "recovered"]
KEYS = st.builds(RowKey, st.sampled_from(["run", "claim", "pause"]), st.sampled_from(["run-1", "run-2", "x", "y"]))
ROWS = st.builds(
    RowWrite,
    key=KEYS,
    run_id=STREAMS,
    status=st.sampled_from(STATUSES),
    body=st.sampled_from(["{}", '{"n":1}']),
    epoch=st.integers(0, 3),
    due_us=st.none() | st.integers(0, 5),
    active=st.booleans(),
)
SOME_STATUSES = st.none() | st.frozensets(st.sampled_from(STATUSES))
RUNS = st.sampled_from(["run-1", "run-2", "run-3"])
COLUMNS = f"seq, {', '.join(EVENT_COLUMNS)}, prev_hash, hash"
BODY = CheckpointReached(name="here")


class Journals(RuleBasedStateMachine):
    """Drives both with the same commands and compares every answer and every read."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.real = SqliteJournal.open(Path(self.folder.name), clock=SimClock(), ids=SequentialIds(node=9))
        self.fake = MemoryJournal()
        self.ids = SequentialIds()
        self.stored = []

    def teardown(self):
        assert self.real.verify() == self.fake.verify() == ()
        self.real.close()
        self.folder.cleanup()

    def event(self, stream, place):
        empty = dict.fromkeys(EventRecord.__slots__, "")
        numbers = {"ts_us": place, "run_seq": place, "generation": 1, "attempt": 0, "epoch": 1}
        given = {"event_id": self.ids.new(), "run_id": stream, "kind": BODY.kind, "payload": encode(BODY)}
        return seal(EventRecord(**{**empty, **numbers, **given}))

    def both(self, command):
        answer = self.fake.commit(command)
        assert self.real.commit(command) == answer
        if not hasattr(answer, "reason"):
            self.stored += command.events

    @rule(
        stream=STREAMS,
        off=st.sampled_from([0, 0, 0, 0, 1, -1]),
        count=st.integers(1, 3),
        rows=st.lists(ROWS, max_size=3),
        epoch=st.none() | st.integers(0, 3),
        allowed=SOME_STATUSES,
        versions=st.dictionaries(KEYS, st.integers(0, 2), max_size=1),
        forbidden=st.lists(KEYS, max_size=1),
        wanted=st.sampled_from([None, lambda: True, lambda: False]),
    )
    def commit(self, *, stream, off, count, rows, epoch, allowed, versions, forbidden, wanted):
        head = max(0, len(self.fake.events(stream)) + off)
        events = [self.event(stream, head + n) for n in range(1, count + 1)]
        self.both(Commit(stream, head, events, rows, epoch, allowed, versions, forbidden, wanted))

    @rule(stream=STREAMS, rows=st.lists(ROWS, max_size=3))
    def commit_freely(self, stream, rows):
        head = len(self.fake.events(stream))
        self.both(Commit(stream, head, [self.event(stream, head + 1)], rows))

    @rule(data=st.data(), stream=STREAMS)
    def repeat_an_event(self, data, stream):
        if self.stored:
            old = data.draw(st.sampled_from(self.stored))
            head = len(self.fake.events(stream))
            self.both(Commit(stream, head, [seal(replace(old, run_id=stream, run_seq=head + 1))]))

    @rule(stream=STREAMS, off=st.sampled_from([0, 0, 0, 1]))
    def trim(self, stream, off):
        events = self.fake.events(stream)
        if not events:
            return
        first, last = events[0], events[-1]
        kept = Seal(f"{stream}-{off}", first.seq, last.seq, last.hash, 1, len(events), 1, "sha")
        row = RowWrite(RowKey("sealed", stream), stream, "recovered", "{}")
        command = Trim(kept, {stream: Head(len(events) + off, last.hash)}, [row])
        outcomes = []
        for journal in (self.real, self.fake):
            try:
                outcomes.append(journal.trim(command))
            except Conflict as error:
                outcomes.append(error.message)
        assert outcomes[0] == outcomes[1]
        assert self.real.seals() == self.fake.seals()

    @rule(
        kind=st.sampled_from(["run", "claim", "pause"]),
        statuses=SOME_STATUSES,
        due=st.none() | st.integers(0, 5),
        active=st.none() | st.booleans(),
        after=st.sampled_from(["", "run-1", "x"]),
        limit=st.integers(0, 4),
    )
    def ask_rows(self, *, kind, statuses, due, active, after, limit):
        asked = {
            "statuses": statuses,
            "due_before_us": due,
            "active": active,
            "after_key": after,
            "limit": limit,
        }
        assert self.real.rows(kind, **asked) == self.fake.rows(kind, **asked)

    @rule(stream=STREAMS, after=st.integers(0, 5), limit=st.integers(0, 5))
    def ask_events(self, stream, after, limit):
        asked = {"after_run_seq": after, "limit": limit}
        assert self.real.events(stream, **asked) == self.fake.events(stream, **asked)
        assert self.real.events_after(after, limit=limit) == self.fake.events_after(after, limit=limit)

    @rule(run=STREAMS, key=KEYS)
    def ask_run(self, run, key):
        assert self.real.load(run) == self.fake.load(run)
        assert self.real.row(key) == self.fake.row(key)

    @invariant()
    def same_extent(self):
        real, fake = self.real.info(), self.fake.info()
        assert (real.max_seq, real.max_hash, real.events) == (fake.max_seq, fake.max_hash, fake.events)


TestJournals = Journals.TestCase


class Durability(Journals):
    """The same commands, and between them take-overs, clean ends, copies and looks at the mirror."""

    def __init__(self):
        super().__init__()
        self.opened = 0
        self.ledger = None
        self.taken = {}  # run -> the last epoch a driver took it under

    def place(self):
        self.opened += 1
        return Path(self.folder.name) / f"{self.opened}"

    def mirror(self):
        if self.ledger is None:
            self.ledger = DuckdbLedger(self.real, Path(self.folder.name) / "ledger", SimClock())
        return self.ledger

    def trim(self):
        """Sealing needs real files: `tests/integration/ledger/test_sealing.py` has them."""

    @rule(run=RUNS)
    def take_over(self, run):
        """A new driver: the run's row gets the next epoch in the commit that says so."""
        stored = self.fake.row(RowKey("run", run))
        epoch = (stored.epoch if stored else 0) + 1
        head = len(self.fake.events(run))
        row = RowWrite(RowKey("run", run), run, "recovering", "{}", epoch=epoch)
        self.both(Commit(run, head, [self.event(run, head + 1)], [row], epoch=epoch - 1))
        self.taken[run] = epoch

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), behind=st.integers(0, 2))
    def write_as_driver(self, data, behind):
        """The driver of an epoch writes: only the present one is let in."""
        run = data.draw(st.sampled_from(sorted(self.taken)))
        epoch, head = self.taken[run] - behind, len(self.fake.events(run))
        command = Commit(run, head, [self.event(run, head + 1)], epoch=epoch)
        self.both(command)
        written = len(self.real.events(run)) > head
        stored = self.real.row(RowKey("run", run))
        assert written == (stored is None or stored.epoch == epoch)

    @rule()
    def end_and_open_again(self):
        """A process ends and another one opens the same files."""
        self.real.close()
        folder = self.real._database.parent
        self.real = SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(node=9))
        self.ledger = None

    @rule()
    def copy_and_go_on_with_the_copy(self):
        """A backup is the journal: everything that is asked of it afterwards is answered alike."""
        folder = self.place()
        folder.mkdir()
        self.real.backup(str(folder / "journal.sqlite"))
        self.fake.backup(str(folder / "fake.json"))
        self.real.close()
        self.real = SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(node=9))
        self.fake = MemoryJournal.from_backup(str(folder / "fake.json"))
        self.ledger = None

    @rule(stream=STREAMS, rows=st.lists(ROWS, max_size=2))
    def answer_lost(self, stream, rows):
        """The answer to a commit never arrives, so it is sent again as it was: it is not stored twice."""
        head = len(self.fake.events(stream))
        command = Commit(stream, head, [self.event(stream, head + 1)], rows)
        self.both(command)
        before = self.real.info()
        for journal in (self.real, self.fake):
            assert not isinstance(journal.commit(command), Committed)
        assert self.real.info() == before

    @rule()
    def look_at_the_mirror(self):
        """After a refresh the mirror holds each event of the journal, every column, and nothing else."""
        self.mirror().refresh()
        stored = self.real.events_after(0)
        expected = [(s.seq, *astuple(s.event)[:-1], s.event.digest, s.prev_hash, s.hash) for s in stored]
        found = self.mirror().query(f"SELECT {COLUMNS} FROM events ORDER BY seq")
        assert [tuple(row) for row in found.rows] == expected

    @invariant()
    def the_chain_holds(self):
        assert self.real.verify() == self.fake.verify() == ()

    def teardown(self):
        self.look_at_the_mirror()
        super().teardown()


TestDurability = Durability.TestCase
TestDurability.settings = settings(max_examples=max(12, settings.default.max_examples // 10), stateful_step_count=20)
