"""Loss and tampering are found, reported one by one, and never skipped."""

from dataclasses import replace

import pytest

from amends.core.errors import CorruptLedger, InvalidInput
from amends.ports.chain import broken_link
from amends.ports.journal import Commit, RowKey, seal


@pytest.fixture
def filled(harness, make):
    """Three streams of three events: seq 1 to 9."""
    for stream in ("a", "b", "c"):
        harness.journal.commit(make.commit(stream, events=3, rows=[make.row("run", stream, stream)]))
    return harness


def test_an_untouched_journal_is_sound(filled):
    """Nothing to report."""
    assert filled.journal.verify() == ()


@pytest.mark.parametrize(
    "columns", [{"payload": '{"kind":"checkpoint_reached","name":"forged"}'}, {"tenant": "other"}, {"ts_us": 1}]
)
def test_a_changed_event_is_found(filled, columns):
    """Any column: the event differs from its digest, and only that event is named."""
    filled.change_event(5, **columns)
    (problem,) = filled.journal.verify()
    assert "seq 5" in problem
    assert "run b" in problem


def test_a_forged_digest_is_found(filled):
    """Whoever recomputes the digest still breaks the chain's hash."""
    stored = filled.journal.events("b")[1]
    forged = seal(replace(stored.event, tenant="other"))
    filled.change_event(stored.seq, tenant=forged.tenant, digest=forged.digest)
    (problem,) = filled.journal.verify()
    assert "seq 5 " in problem
    assert "hash" in problem


@pytest.mark.parametrize("seq", [1, 2, 3, 9])
def test_a_missing_event_is_found(filled, seq):
    """First, middle or last of a stream, or the last of the ledger: the gap is seen."""
    filled.drop_event(seq)
    assert filled.journal.verify() != ()


def test_a_missing_stream_is_found(filled):
    """All events of a run removed at once: its head and the count remain as witnesses."""
    for seq in (4, 5, 6):
        filled.drop_event(seq)
    problems = filled.journal.verify()
    assert any("stream b" in problem for problem in problems)
    assert any("6 events" in problem for problem in problems)


def test_a_wrong_head_is_found(filled):
    """A head that does not agree with its events would let a stream fork."""
    filled.set_head("c", 2)
    (problem,) = filled.journal.verify()
    assert "stream c" in problem


def test_an_event_that_cannot_be_decoded_is_found(harness, make):
    """A sealed event whose payload is no event of this format is reported with its place."""
    odd = make.event(payload='{"kind":"checkpoint_reached","name":"x","extra":1}')
    unfit = make.event(place=2, kind="run_moved")
    harness.journal.commit(Commit("run-1", 0, [odd, unfit]))
    problems = harness.journal.verify()
    assert len(problems) == 2
    assert "seq 1" in problems[0]
    assert "`run_moved`" in problems[1]


def test_a_row_that_is_no_json_is_found(filled):
    """Rows are named one by one."""
    filled.set_body(RowKey("run", "a"), "{broken")
    filled.set_body(RowKey("run", "c"), "[]")
    assert len(filled.journal.verify()) == 2


def test_every_problem_is_reported(filled):
    """One does not hide another."""
    filled.change_event(2, tenant="x")
    filled.change_event(8, tenant="y")
    filled.set_head("b", 7)
    problems = filled.journal.verify()
    assert len(problems) == 3
    for word in ("seq 2 ", "seq 8 ", "stream b"):
        assert any(word in problem for problem in problems)


def test_a_run_is_not_rebuilt_from_a_changed_event(filled):
    """Reading a stream checks it: recovery is told, other runs are not affected (rule 16)."""
    filled.change_event(5, tenant="x")
    with pytest.raises(CorruptLedger) as caught:
        filled.journal.events("b")
    assert caught.value.data["seq"] == 5
    assert len(filled.journal.events("a")) == 3


def test_a_changed_event_does_not_block_the_mirror(filled):
    """`events_after` hands out every event as it is; whoever compares finds exactly the changed one."""
    filled.change_event(5, tenant="x")
    every = filled.journal.events_after(0)
    assert len(every) == 9
    assert [stored.seq for stored in every if broken_link(stored)] == [5]


def test_a_backup_is_a_journal_of_its_own(filled, make, tmp_path):
    """Same events, rows and hashes under another generation; what comes later is not in it."""
    before = filled.journal.info()
    path = str(tmp_path / "copy")
    copied = filled.journal.backup(path)
    filled.journal.commit(make.commit("a", after=3))
    assert (copied.events, copied.max_seq, copied.max_hash) == (9, 9, before.max_hash)
    assert copied.location == path
    restored = filled.restored(path)
    try:
        assert restored.verify() == ()
        assert restored.events_after(0) == filled.journal.events_after(0)[:9]
        assert restored.load("b") == filled.journal.load("b")
        assert restored.info().generation == copied.generation != before.generation
        assert restored.commit(make.commit("b", after=3))
    finally:
        restored.close()


def test_a_backup_overwrites_nothing(filled, tmp_path):
    """Yesterday's backup is not lost to a typing error."""
    path = tmp_path / "copy"
    path.write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        filled.journal.backup(str(path))
    assert path.read_text() == "precious"
