"""Whatever is done to them, the real journal and the fake answer alike. What processes, crashes and files do to a
journal of real runs is in `test_durability.py`.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import Conflict
from amends.core.events import CheckpointReached, encode
from amends.ports.journal import Commit, EventRecord, Head, RowKey, RowWrite, Seal, Trim, seal
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
