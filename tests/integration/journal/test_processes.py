"""Many processes, one journal: they take turns, and a dead or frozen one is named, not waited for."""

import os
import signal
import threading

import pytest

from amends.core.errors import CallerError, JournalBusy
from amends.ports.journal import Committed

pytestmark = pytest.mark.crash

WRITER = """
mine = journal()
stream = sys.argv[2]
for place in range(int(sys.argv[3])):
    assert isinstance(mine.commit(commit(stream, place)), Committed)
mine.close()
"""

HOLDER = """
def freeze():
    print("holding", flush=True)
    time.sleep(600)
mine = journal()
mine.commit(commit("frozen", wanted=freeze))
"""

ACKNOWLEDGER = """
mine = journal()
stream = ids.new()
place = 0
while True:
    answer = mine.commit(commit(stream, place))
    place += 1
    print(stream, place, answer.last_seq, flush=True)
"""


def test_processes_write_one_ledger(opened, child):
    """Two processes of many commits each: no event lost, no gap, every chain whole."""
    writers = [child(WRITER, f"run-{n}", 200) for n in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    journal = opened()
    assert journal.verify() == ()
    assert [stored.seq for stored in journal.events_after(0)] == list(range(1, 401))


def test_two_engines_of_one_process_share_a_journal(opened, commit):
    """Each has its own writer; both see what either stored."""
    one, two = opened(), opened()
    assert isinstance(one.commit(commit()), Committed)
    assert isinstance(two.commit(commit(after=1)), Committed)
    assert len(one.events("run-1")) == len(two.events("run-1")) == 2


def test_a_frozen_holder_is_named(opened, child, commit):
    """A process stopped inside its write: others are told its pid in bounded time, and nothing of theirs is stored."""
    journal = opened(busy_timeout_seconds=0.3)
    holder = child(HOLDER)
    assert holder.stdout.readline() == "holding\n"
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(JournalBusy) as caught:
        journal.commit(commit())
    assert caught.value.data["pid"] == holder.pid
    assert f"`{holder.pid}`" in caught.value.message
    assert "nothing was sent" in caught.value.hint
    assert journal.events("run-1") == ()  # readers are not held up
    with pytest.raises(JournalBusy, match=str(holder.pid)):
        opened(busy_timeout_seconds=0.2)
    holder.kill()
    holder.wait()
    assert isinstance(opened().commit(commit()), Committed)
    assert isinstance(journal.commit(commit(after=1)), Committed)
    assert len(journal.events("run-1")) == 2
    assert journal.events("frozen") == ()


def test_closing_behind_a_frozen_holder_does_not_hang(opened, child, commit):
    """`close` gives up the last checkpoint, which the next opener makes up for."""
    journal = opened(busy_timeout_seconds=0.2)
    assert isinstance(journal.commit(commit()), Committed)
    holder = child(HOLDER)
    holder.stdout.readline()
    holder.send_signal(signal.SIGSTOP)
    journal.close()
    holder.kill()
    holder.wait()
    again = opened()
    assert len(again.events("run-1")) == 1
    assert again.verify() == ()


@pytest.mark.timeout(120)
def test_no_acknowledged_event_is_lost_to_sigkill(opened, child):
    """Twenty times: two writers are killed at a random moment of their work. What they were told is stored, is."""
    told, most = {}, {}
    for round_number in range(20):
        writers = [child(ACKNOWLEDGER) for _ in range(2)]
        lines = [[], []]
        threads = [
            threading.Thread(target=lambda p=process, got=got: got.extend(p.stdout))
            for process, got in zip(writers, lines, strict=True)
        ]
        for writer in writers:
            first = writer.stdout.readline().split()
            told[first[0]] = 1
        for thread in threads:
            thread.start()
        threads[0].join(0.01 + 0.007 * round_number)
        for writer in writers:
            writer.kill()
        for thread in threads:
            thread.join()
        for got in lines:
            for line in got:
                if line.endswith("\n"):
                    stream, place, _ = line.split()
                    told[stream] = int(place)
        journal = opened()
        assert journal.verify() == ()
        for stream, place in told.items():
            most[stream] = len(journal.events(stream))
            assert most[stream] >= place
        journal.close()
    print(f"{sum(told.values())} acknowledged, {sum(most.values())} stored, 40 kills")
    assert len(told) == 40


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_may_not_use_the_journal(opened, commit):
    """A clear error in the child, in place of a hang or a broken lock; the parent goes on."""
    journal = opened()
    journal.commit(commit())
    journal.info()
    pid = os.fork()
    if pid == 0:
        named = 0
        for use in (lambda: journal.commit(commit(after=1)), journal.info, lambda: journal.row):
            try:
                use()
            except CallerError as error:
                named += "forked child" in error.message
        journal.close()
        os._exit(0 if named == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert isinstance(journal.commit(commit(after=1)), Committed)
    assert journal.verify() == ()


FORKING = """
import threading
mine = journal()
def fork_and_die():
    if os.fork() == 0:
        print("child", os.getpid(), flush=True)
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
mine.commit(commit("forking", wanted=fork_and_die))
"""


def test_a_forked_child_does_not_keep_its_dead_parents_lock(opened, child, commit):
    """The child inherited the locked descriptor, and lives on: the journal is free all the same."""
    parent = child(FORKING)
    words = parent.stdout.readline().split()
    assert words[0] == "child"
    journal = opened(busy_timeout_seconds=20)
    assert isinstance(journal.commit(commit()), Committed)
    os.kill(int(words[1]), 0)
    os.kill(int(words[1]), signal.SIGKILL)
