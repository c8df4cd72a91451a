"""Two processes share a journal of real runs, are killed in the midst of it, end, begin again, seal and restore: what
was acknowledged is there, what was refused or torn is not, the rows are what the events say, the mirror holds it all.

The fake is told the same in the same order, and answers alike.
"""

import copy
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import astuple, replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from amends.backends.duckdb_ledger import DuckdbLedger, ParquetArchive
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import CorruptLedger, JournalBusy
from amends.core.status import RunStatus
from amends.ports.journal import EVENT_COLUMNS, Commit, Committed
from amends.runtime.records import rows_of, write_of
from amends.runtime.sealing import seal
from amends.runtime.verifying import differences
from amends.testing.fakes import SequentialIds, SimClock
from amends.testing.ledger_builder import records
from amends.testing.memory_journal import MemoryJournal
from amends.testing.run_builder import RunBuilder

BY = st.sampled_from(["here", "there"])
COLUMNS = f"seq, {', '.join(EVENT_COLUMNS)}, prev_hash, hash"
DAY = 86_400
DATABASE = "journal.sqlite"

MOVES = {
    "noted": lambda run: run.checkpoint("half"),
    "planned": lambda run: run.planned(f"{run.run_id}-{len(run.events)}").decided(),
    "done": lambda run: run.planned(f"{run.run_id}-{len(run.events)}").decided().intent().succeeded(),
    "escalated": lambda run: run.escalated(),
    "committing": lambda run: run.moved(RunStatus.COMMITTING),
    "recovering": lambda run: run.moved(RunStatus.RECOVERING),
}
# Where the other process is killed -> whether what it was storing is stored.
DEATHS = {
    "before the commit": False,
    "after the commit": True,
    "with the note written": True,
    "before the checkpoint": True,
    "after the checkpoint": True,
}


class Peer:
    """A journal in another process."""

    def __init__(self, control, folder):
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(control, [b"."], [theirs.fileno()])
        self.line = Connection(ours.detach())
        self.line.send(str(folder))
        assert self.line.recv() == "open"

    def ask(self, *words):
        self.line.send(words)
        return self.line.recv()

    def commit(self, command):
        return self.ask("commit", command)

    def ended(self):
        """Wait until it is dead, as it was told; what it still answered."""
        answers = []
        with self.line:
            while True:
                try:
                    answers.append(self.line.recv())
                except (EOFError, ConnectionResetError):
                    return answers


class Durability(RuleBasedStateMachine):
    control = None  # the socket to the process that the peers are forked from

    @initialize()
    def begin(self):
        self.root = tempfile.TemporaryDirectory()
        self.places = 0
        self.ids = SequentialIds()
        self.clock = SimClock()
        self.folder = self.place()
        self.here = self.opened()
        self.there = None
        self.fake = MemoryJournal(generation=self.here.info().generation)
        self.fake_archive = ParquetArchive(Path(self.root.name) / "fake")
        self.ledger = None
        self.runs = {}  # what is stored of each run that is not sealed
        self.acknowledged = []  # every event, as it was stored
        self.refused = set()
        self.old_copy = None
        self.old_seq = 0

    # --- the parts ------------------------------------------------------------------------------------------------

    def place(self):
        self.places += 1
        folder = Path(self.root.name) / f"{self.places}"
        folder.mkdir()
        return folder

    def opened(self, **waits):
        return SqliteJournal.open(self.folder, clock=SimClock(), ids=SequentialIds(node=900 + self.places), **waits)

    def by(self, who):
        if who == "here":
            return self.here
        if self.there is None:
            self.there = Peer(self.control, self.folder)
        return self.there

    def hang_up(self):
        """The other process is dead at once, and has closed nothing."""
        if self.there is not None:
            self.there.line.close()
            self.there = None

    def mirror(self):
        if self.ledger is None:
            self.ledger = DuckdbLedger(self.here, self.folder, SimClock())
        return self.ledger

    def some_run(self, data):
        names = sorted(name for name, run in self.runs.items() if not run.state.run.terminal)
        return self.runs[data.draw(st.sampled_from(names))]

    def draft(self, run, move):
        """The run after `move`, and the commit that says so."""
        after = copy.copy(run)
        head = len(run.events)
        after.events = [*run.events]
        move(after)
        after.events[head:] = [replace(event, event_id=self.ids.new()) for event in after.events[head:]]
        rows = [write_of(row) for row in rows_of(after.state)]
        epoch = run.state.run.epoch
        return after, Commit(run.run_id, head, records(after.events)[head:], rows, epoch=epoch)

    def told(self, command, found, after=None):
        """Hold an answer against the fake's, and note what it means."""
        before = self.fake.info().max_seq
        assert found == self.fake.commit(command)
        if isinstance(found, Committed):
            self.acknowledged += self.fake.events_after(before)
            if after is not None:
                self.runs[after.run_id] = after
        else:
            self.refused |= {event.event_id for event in command.events}
        return isinstance(found, Committed)

    # --- runs and their drivers -----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.runs) < 4)
    @rule(who=BY, key=st.sampled_from(["a", "b", "c", "d", "e"]))
    def open_run(self, who, key):
        """A run key is used once, whichever process comes first; sealed, too."""
        run = RunBuilder(self.clock, run_id=f"run-{self.ids.new()}", run_key=key)
        run.events = [replace(run.events[0], event_id=self.ids.new())]
        rows = [write_of(row) for row in rows_of(run.state)]
        (claim,) = (row.key for row in rows if row.key.kind == "claim")
        command = Commit(run.run_id, 0, records(run.events), rows, expected_versions={claim: 0})
        self.told(command, self.by(who).commit(command), run)

    def any_open(self):
        return any(not run.state.run.terminal for run in self.runs.values())

    @precondition(any_open)
    @rule(data=st.data(), who=BY, move=st.sampled_from(sorted(MOVES)))
    def go_on(self, data, who, move):
        run = self.some_run(data)
        if move in {"committing", "recovering", "escalated"} and run.state.run.status is not RunStatus.OPEN:
            move = "noted"
        if move == "escalated" and not run.state.actions:
            move = "planned"
        after, command = self.draft(run, MOVES[move])
        assert self.told(command, self.by(who).commit(command), after)

    @precondition(any_open)
    @rule(data=st.data(), who=BY)
    def finish(self, data, who):
        run = self.some_run(data)
        way = {
            RunStatus.OPEN: [RunStatus.COMMITTING, RunStatus.COMMITTED],
            RunStatus.COMMITTING: [RunStatus.COMMITTED],
            RunStatus.RECOVERING: [RunStatus.RECOVERED],
        }[run.state.run.status]
        after, command = self.draft(run, lambda made: made.moved(*way))
        assert self.told(command, self.by(who).commit(command), after)

    @precondition(any_open)
    @rule(data=st.data(), who=BY, late=BY)
    def take_over(self, data, who, late):
        """A new driver under the next epoch; the old one, who is not dead but slow, is let in no more. Nor is one who
        saw the new head by chance.
        """
        old = self.some_run(data)
        after, command = self.draft(old, RunBuilder.claimed)
        assert self.told(command, self.by(who).commit(command), after)
        _, stale = self.draft(old, MOVES["noted"])
        assert not self.told(stale, self.by(late).commit(stale))
        _, fresh = self.draft(after, MOVES["noted"])
        behind = replace(fresh, epoch=old.state.run.epoch, rows=())
        found = self.by(late).commit(behind)
        assert found.reason == "stale_epoch"
        self.told(behind, found)

    @precondition(any_open)
    @rule(data=st.data(), first=st.sampled_from(["noted", "claimed"]))
    def race(self, data, first):
        """Both processes go on from the same view at once: one is let in, the other told."""
        run = self.some_run(data)
        mine = self.draft(run, MOVES["noted"] if first == "noted" else RunBuilder.claimed)
        theirs = self.draft(run, MOVES["done"])
        there = self.by("there")
        there.line.send(("commit", theirs[1]))
        answers = [(mine, self.here.commit(mine[1])), (theirs, there.line.recv())]
        answers.sort(key=lambda told: not isinstance(told[1], Committed))
        let_in = [self.told(command, found, after) for (after, command), found in answers]
        assert let_in == [True, False]

    @precondition(any_open)
    @rule(data=st.data(), who=BY, again=BY)
    def answer_lost(self, data, who, again):
        """The answer to a commit never arrives, so it is sent again as it was: it is not stored twice."""
        run = self.some_run(data)
        after, command = self.draft(run, MOVES["planned"])
        assert self.told(command, self.by(who).commit(command), after)
        found = self.by(again).commit(command)
        assert found == self.fake.commit(command)
        assert not isinstance(found, Committed)

    @precondition(any_open)
    @rule(data=st.data())
    def caller_fails(self, data):
        """An exception in the very last question under the lock: rolled back, and the next one is let in."""
        _, command = self.draft(self.some_run(data), MOVES["done"])

        def fail():
            raise LookupError("gone")

        with pytest.raises(LookupError):
            self.here.commit(replace(command, wanted=fail))
        self.refused |= {event.event_id for event in command.events}

    @rule()
    def the_lock_is_held(self):
        """Another process is in its write: this one is told which, stores nothing, and cannot open either."""
        impatient = self.opened(busy_timeout_seconds=0.1)
        there = self.by("there")
        pid = there.ask("hold")
        run = RunBuilder(self.clock, run_id=f"run-{self.ids.new()}", run_key="never")
        run.events = [replace(run.events[0], event_id=self.ids.new())]
        for refused in (
            lambda: impatient.commit(Commit(run.run_id, 0, records(run.events))),
            lambda: self.opened(busy_timeout_seconds=0.05),
        ):
            with pytest.raises(JournalBusy) as caught:
                refused()
            assert caught.value.data["pid"] == pid
        self.refused.add(run.events[0].event_id)
        there.ask("go on")
        impatient.close()

    # --- ends -----------------------------------------------------------------------------------------------------

    @precondition(any_open)
    @rule(data=st.data(), point=st.sampled_from(sorted(DEATHS)), alone=st.booleans())
    def die(self, data, point, alone):
        """The other process is killed in its commit, its checkpoint or between; `alone`: nobody else has the files."""
        there = self.by("there")
        if alone:
            self.here.close()
        after, command = self.draft(self.some_run(data), MOVES["done"])
        there.ask("die", point)
        there.line.send(("commit", command))
        answers = there.ended()
        assert answers == [] or "checkpoint" in point  # that comes after the answer, which may still get out
        self.there = None
        if alone:
            self.begin_again()
        if DEATHS[point]:
            found = Committed(self.fake.info().max_seq + 1, self.here.info().max_seq)
            assert answers in ([], [found])
            assert self.told(command, found, after)
        else:
            self.refused |= {event.event_id for event in command.events}

    @precondition(any_open)
    @rule(data=st.data(), nbytes=st.integers(0, 12_000), killed=st.booleans(), alone=st.booleans())
    def tear(self, data, nbytes, killed, alone):
        """A commit reaches the disk in part: its process is told, or killed before it could tidy up."""
        there = self.by("there")
        if alone:
            self.here.close()
        after, command = self.draft(self.some_run(data), MOVES["done"])
        if killed:
            there.ask("die", "before tidying up")
        there.line.send(("commit_torn", command, nbytes))
        try:
            answer = there.line.recv()
        except (EOFError, ConnectionResetError):
            answer = "killed"
            self.hang_up()
        if alone:
            self.begin_again()
        if isinstance(answer, Committed):  # the log begins anew, and there was room at its front
            assert self.told(command, answer, after)
        else:
            assert answer == "killed" if killed else answer[0] == "JournalUnavailable"
            self.refused |= {event.event_id for event in command.events}

    @rule()
    def vanish(self):
        """The other process is killed while idle: what it acknowledged may be in the log only."""
        self.hang_up()

    @rule(orderly=st.booleans())
    def end_and_open_again(self, orderly):
        """A process ends and another one opens the same files, whether or not the other one goes on."""
        if orderly and self.there is not None:
            self.there.ask("close")
            self.hang_up()
        self.here.close()
        self.begin_again()

    def begin_again(self):
        self.here = self.opened()
        self.ledger = None

    # --- files ----------------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(["gone", "empty", "an old copy", "no log"]))
    def lose_the_file(self, what):
        """What is not the whole journal any more is not opened. Put back, it is."""
        self.by("there")
        self.here.close()
        self.hang_up()  # the log stays behind
        log = self.folder / f"{DATABASE}-wal"
        hidden = {path: path.with_name(f"{path.name}.hidden") for path in (self.folder / DATABASE, log)}
        if what == "no log":
            del hidden[self.folder / DATABASE]
        kept = {path: aside for path, aside in hidden.items() if path.exists()}
        for path, aside in kept.items():
            path.rename(aside)
        if what == "empty":
            (self.folder / DATABASE).touch()
        if what == "an old copy" and self.old_copy is not None:
            shutil.copyfile(self.old_copy, self.folder / DATABASE)
        self.look_at_what_is_left(what)
        for path, aside in kept.items():
            aside.replace(path)
        self.begin_again()

    def look_at_what_is_left(self, what):
        """Refused, unless nothing is lost: the database alone may hold all."""
        newest = self.acknowledged[-1].seq if self.acknowledged else 0
        try:
            left = self.opened()
        except CorruptLedger:
            assert newest
            return
        with closing(left):
            assert left.info().max_seq == newest
            assert newest == 0 or what in {"no log", "an old copy"}

    @rule()
    def keep_a_raw_copy(self):
        """Somebody copies the file by hand while nobody uses it."""
        self.hang_up()
        self.here.close()
        self.old_copy = Path(self.root.name) / "old"
        shutil.copyfile(self.folder / DATABASE, self.old_copy)
        self.begin_again()

    @rule()
    def copy_and_go_on_with_the_copy(self):
        """A backup is the journal: everything that is asked of it afterwards is answered alike."""
        self.hang_up()
        folder = self.place()
        self.here.backup(str(folder / DATABASE))
        self.fake.backup(str(folder / "fake.json"))
        ParquetArchive(self.folder).copy_to(self.here.seals(), str(folder))
        self.here.close()
        self.folder = folder
        self.begin_again()
        self.fake = MemoryJournal.from_backup(str(folder / "fake.json"))
        self.fake._generation = self.here.info().generation
        self.old_copy = None

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), who=BY, late=BY)
    def put_away(self, data, who, late):
        """Runs that are over go into the archive, whole, whichever process seals. They and their keys stay shut."""
        if not any(self.may_go(run) for run in self.runs.values()) and self.any_open():
            self.finish(data, who)
        self.clock.advance(DAY)
        now_us = self.clock.now_us()
        if who == "here":
            made = seal(self.here, ParquetArchive(self.folder), now_us=now_us, keep_us=0).seals
        else:
            made = self.by(who).ask("seal", now_us)
        assert made == seal(self.fake, self.fake_archive, now_us=now_us, keep_us=0).seals
        gone = [run for run in self.runs.values() if self.may_go(run)]
        assert sum(one.runs for one in made) == len(gone)
        for run in gone:
            del self.runs[run.run_id]
            _, command = self.draft(run, MOVES["noted"])
            assert not self.told(command, self.by(late).commit(command))
            self.open_run(late, run.state.run.run_key)
            assert not any(one.state.run.run_key == run.state.run.run_key for one in self.runs.values())

    @rule()
    def die_putting_away(self):
        """The file is written, the journal not trimmed: nothing has happened."""
        self.clock.advance(DAY)
        there = self.by("there")
        there.ask("die", "before the commit")
        there.line.send(("seal", self.clock.now_us()))
        if any(self.may_go(run) for run in self.runs.values()):
            assert there.ended() == []
            self.there = None
        else:
            assert there.line.recv() == []
            self.hang_up()

    def may_go(self, run):
        waiting = any(item.status != "resolved" for item in run.state.escalations.values())
        return run.state.run.terminal and not waiting

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def both_see_the_same(self):
        here, expected = (
            (j.info(), j.verify(), j.events_after(0), j.seals(), j.rows("run")) for j in (self.here, self.fake)
        )
        for info, problems, *rest in [here] if self.there is None else [here, self.there.ask("look")]:
            assert replace(info, location="memory") == expected[0]
            assert problems == expected[1] == ()
            assert rest == list(expected[2:])
        for run_id in self.runs:
            assert self.here.load(run_id) == self.fake.load(run_id)

    @invariant()
    def the_rows_are_the_fold(self):
        assert list(differences(self.here)) == []

    @invariant()
    def nothing_acknowledged_is_lost_and_nothing_refused_is_there(self):
        held = {stored.event.event_id for stored in self.here.events_after(0)}
        lacking = [stored for stored in self.acknowledged if stored.event.event_id not in held]
        assert not held & self.refused
        assert len(lacking) == sum(kept.events for kept in self.here.seals())

    @rule()
    def look_at_the_mirror(self):
        """After a refresh the mirror holds each event ever acknowledged, every column, and nothing else."""
        self.mirror().refresh()
        found = self.mirror().query(f"SELECT {COLUMNS} FROM events ORDER BY seq")
        assert [tuple(row) for row in found.rows] == [
            (s.seq, *astuple(s.event)[:-1], s.event.digest, s.prev_hash, s.hash) for s in self.acknowledged
        ]

    def teardown(self):
        try:
            self.hang_up()
            self.look_at_the_mirror()
        finally:
            self.here.close()
            self.root.cleanup()


@pytest.fixture(scope="module", autouse=True)
def other_processes():
    """One process that has everything loaded: forking it is quick, and it has no threads."""
    ours, theirs = socket.socketpair()
    code = str(Path(__file__).with_name("peer.py"))
    with ours, theirs:
        process = subprocess.Popen([sys.executable, code, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        Durability.control = ours
        yield
    process.wait()


TestDurability = pytest.mark.timeout(600)(Durability.TestCase)  # the thorough profile takes its time
TestDurability.settings = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink an example takes minutes of disk: it is short
    max_examples=max(8, settings.default.max_examples // 25),
    stateful_step_count=max(30, settings.default.stateful_step_count // 2),
)
