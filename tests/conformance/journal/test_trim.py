"""Sealed runs leave the journal whole, stay accounted for, and never come back."""

from dataclasses import replace

import pytest

from amends.core.errors import Conflict
from amends.ports.journal import Commit, Head, Refused, RowKey, Seal, Trim


@pytest.fixture
def filled(harness, make):
    """Runs a, b, c of three events each, interleaved: a has seq 1, 4, 7; each has a run row, an action and a claim."""
    for place in range(3):
        for run in ("a", "b", "c"):
            rows = [make.row("run", run, run, active=False), make.row("action", f"{run}-1", run)]
            rows.append(make.row("claim", f"key-{run}", run, status="held"))
            harness.journal.commit(make.commit(run, after=place, rows=rows))
    return harness


def seal_of(journal, *runs):
    """What an archive would answer for these runs; and where they end."""
    events = sorted((event for run in runs for event in journal.events(run)), key=lambda event: event.seq)
    ends = {run: Head(len(found), found[-1].hash) for run in runs if (found := journal.events(run))}
    first, last = events[0], events[-1]
    return Seal(f"{first.seq}-{last.seq}", first.seq, last.seq, last.hash, len(runs), len(events), 1, "sha"), ends


def trim(journal, make, *runs):
    seal, ends = seal_of(journal, *runs)
    command = Trim(seal, ends, [make.row("sealed", run, run, status="recovered") for run in runs])
    journal.trim(command)
    return command


def test_trimmed_runs_are_gone_and_the_others_untouched(filled, make):
    """Events and rows of the sealed runs only; the ledger's extent stays what it was."""
    journal = filled.journal
    before = journal.info(), journal.load("b"), journal.events("b")
    trim(journal, make, "a", "c")
    assert (journal.info(), journal.load("b"), journal.events("b")) == before
    assert journal.events("a") == journal.events("c") == ()
    assert [stored.seq for stored in journal.events_after(0)] == [2, 5, 8]
    assert journal.verify() == ()


def test_claims_stay_and_the_given_rows_are_found(filled, make):
    """A run key is never used again, and what is left says where the run is."""
    trim(filled.journal, make, "a")
    assert [row.key for row in filled.journal.load("a")] == [RowKey("claim", "key-a"), RowKey("sealed", "a")]
    answer = filled.journal.commit(make.commit("d", expected_versions={RowKey("claim", "key-a"): 0}))
    assert isinstance(answer, Refused)
    assert answer.reason == "row_changed"


@pytest.mark.parametrize("after", [0, 3])
def test_a_sealed_stream_takes_no_event(filled, make, after):
    """Neither as if it were new nor as if it went on."""
    trim(filled.journal, make, "a")
    answer = filled.journal.commit(make.commit("a", after=after))
    assert isinstance(answer, Refused)
    assert (answer.reason, "sealed in `1-7`" in answer.detail) == ("status", True)


def test_trimming_twice_changes_nothing(filled, make):
    """Whoever does not know whether it was done does it again."""
    command = trim(filled.journal, make, "a")
    before = filled.journal.info(), filled.journal.load("a"), filled.journal.seals()
    filled.journal.trim(command)
    assert (filled.journal.info(), filled.journal.load("a"), filled.journal.seals()) == before
    assert before[2] == (command.seal,)


@pytest.mark.parametrize("ends", [{"b": Head(2, "x")}, {"b": Head(3, "another")}, {"never": Head(1, "x")}])
def test_a_run_that_moved_on_is_not_trimmed(filled, ends):
    """One event more, or other events, than the file holds: nothing at all is removed, of the other runs neither."""
    seal, good = seal_of(filled.journal, "a")
    with pytest.raises(Conflict):
        filled.journal.trim(Trim(seal, {**good, **ends}))
    assert len(filled.journal.events_after(0)) == 9
    assert filled.journal.seals() == ()
    assert filled.journal.verify() == ()


def test_a_run_is_sealed_once(filled, make):
    """Another file cannot take the same run again."""
    command = trim(filled.journal, make, "a")
    with pytest.raises(Conflict):
        filled.journal.trim(replace(command, seal=replace(command.seal, file="another")))
    assert filled.journal.verify() == ()


def test_seals_come_in_order_of_their_events(filled, make):
    """Whatever the order of sealing."""
    for run in ("c", "a"):
        trim(filled.journal, make, run)
    assert [seal.first_seq for seal in filled.journal.seals()] == [1, 3]


def test_an_event_that_was_removed_and_not_sealed_is_still_missed(filled, make):
    """Gaps of `seq` are expected now, and yet each event is accounted for."""
    trim(filled.journal, make, "a", "c")
    filled.drop_event(5)
    assert filled.journal.verify() != ()


def test_a_removed_run_that_claims_to_be_sealed_is_missed(filled, make):
    """Its events are gone and its head names a file: the seal of that file counts fewer runs."""
    trim(filled.journal, make, "a")
    for seq in (2, 5, 8):
        filled.drop_event(seq)
    filled.set_sealed("b", "1-7")
    problems = filled.journal.verify()
    assert any("seal of 1-7 counts 3 events of 1 runs" in problem for problem in problems)
    assert any("holds 3 events besides 3 sealed ones, it counted 9" in problem for problem in problems)


def test_a_seal_that_nobody_knows_is_found(filled):
    """A head names a file that the journal never sealed into."""
    filled.set_sealed("b", "nowhere")
    problems = filled.journal.verify()
    assert any("stream b is sealed in nowhere, which the journal does not know" in problem for problem in problems)
    assert any("stream b is sealed in nowhere, but has events" in problem for problem in problems)


def test_the_ledger_goes_on_after_everything_was_sealed(filled, make):
    """`seq` never starts again, and an empty journal with seals is sound."""
    trim(filled.journal, make, "a", "b", "c")
    assert filled.journal.verify() == ()
    assert filled.journal.info().max_seq == 9
    assert filled.journal.commit(make.commit("d")).first_seq == 10
    assert filled.journal.verify() == ()


def test_a_backup_knows_what_was_sealed(filled, make, tmp_path):
    """The copy accounts for the same events and names the same files."""
    trim(filled.journal, make, "a")
    path = str(tmp_path / "copy")
    copied = filled.journal.backup(path)
    restored = filled.restored(path)
    try:
        assert restored.seals() == filled.journal.seals()
        assert restored.verify() == ()
        assert (copied.events, copied.max_seq) == (9, 9)
        assert isinstance(restored.commit(make.commit("a", after=3)), Refused)
        assert not isinstance(restored.commit(Commit("b", 3, [make.event("b", 4)])), Refused)
    finally:
        restored.close()
