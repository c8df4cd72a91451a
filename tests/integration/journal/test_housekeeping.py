"""The log is moved into the database in time, a value that cannot be stored hurts nobody else, and it is quick."""

import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from amends.backends.sqlite_journal import writer
from amends.core.errors import InternalError
from amends.ports.journal import Committed


def test_the_log_does_not_grow_for_ever(opened, commit, folder, monkeypatch):
    """Checkpoints come by themselves, and a log grown past its limit is shortened."""
    monkeypatch.setattr(writer, "CHECKPOINT_EVERY_COMMANDS", 50)
    monkeypatch.setattr(writer, "TRUNCATE_ABOVE_BYTES", 200_000)
    journal = opened()
    sizes = []
    for place in range(300):
        journal.commit(commit(after=place))
        sizes.append((folder / "journal.sqlite-wal").stat().st_size)
    assert max(sizes) < 3_000_000
    assert any(later < earlier for earlier, later in pairwise(sizes))
    assert journal.verify() == ()


def test_a_reader_at_work_only_delays_the_shortening(opened, commit, monkeypatch):
    """A checkpoint that meets a long reader fails quietly; commits go on."""
    monkeypatch.setattr(writer, "CHECKPOINT_EVERY_COMMANDS", 10)
    monkeypatch.setattr(writer, "TRUNCATE_ABOVE_BYTES", 0)
    journal = opened()
    journal.commit(commit())

    def read_while_writing(connection):
        connection.execute("BEGIN")
        before = connection.execute("SELECT count(*) FROM events").fetchone()
        for place in range(1, 40):
            journal.commit(commit(after=place))
        assert connection.execute("SELECT count(*) FROM events").fetchone() == before
        connection.execute("ROLLBACK")

    journal._reader.run(read_while_writing)
    assert len(journal.events("run-1")) == 40
    assert journal.verify() == ()


def test_after_a_clean_close_one_file_holds_all(opened, commit, folder):
    """The last one out checkpoints: no log is left behind."""
    journal = opened()
    journal.commit(commit())
    journal.close()
    assert sorted(path.name for path in folder.iterdir()) == ["journal.lock", "journal.sqlite"]


def test_a_value_that_cannot_be_stored_fails_alone(opened, commit):
    """A row with a number beyond SQLite's: its own caller is told; commands in the same transaction are stored."""
    journal = opened()
    inside, gate = threading.Event(), threading.Event()
    results = {}

    def block():
        inside.set()
        return gate.wait(20)

    def send(name, command):
        try:
            results[name] = journal.commit(command)
        except InternalError as error:
            results[name] = error

    unfit = commit("unfit")
    unfit = replace(unfit, rows=[replace(unfit.rows[0], due_us=2**70)])
    commands = {"blocker": commit("blocker", wanted=block), "unfit": unfit, "fit": commit("fit")}
    threads = [threading.Thread(target=send, args=item) for item in commands.items()]
    threads[0].start()
    inside.wait()
    for thread in threads[1:]:
        thread.start()
    while len(journal._writer._queue) < 2:  # both wait for the next transaction
        time.sleep(0.001)
    gate.set()
    for thread in threads:
        thread.join()
    assert isinstance(results["unfit"], InternalError)
    assert [type(results[name]) for name in ("blocker", "fit")] == [Committed, Committed]
    assert journal.events("unfit") == ()
    assert journal.load("unfit") == ()
    assert journal.verify() == ()


@pytest.mark.parametrize("threads", [1, 16])
def test_the_pace_is_printed(opened, commit, threads):
    """A look at the speed; how many, not how fast, is what must hold."""
    journal = opened()
    each = 320 // threads

    def work(stream):
        for place in range(each):
            journal.commit(commit(stream, place))

    workers = [threading.Thread(target=work, args=(f"run-{n}",)) for n in range(threads)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - begun
    print(f"{threads} threads: {320 / seconds:.0f} durable commits/s, {seconds / each * 1000:.2f} ms each")
    assert journal.info().events == 320
