"""What a commit stores, refuses and answers."""

import threading
from dataclasses import replace

import pytest

from amends.core.errors import CallerError, InternalError, InvalidInput
from amends.ports.journal import (
    GENESIS_HASH,
    Commit,
    Committed,
    Refused,
    RowKey,
    StoredRow,
    event_digest,
    next_hash,
    seal,
)


def reason(answer):
    return answer.reason if isinstance(answer, Refused) else "committed"


def test_events_and_rows_are_stored_together(journal, make):
    """One commit: events get the next places of the ledger, rows their first version."""
    answer = journal.commit(make.commit(events=3, rows=[make.row(epoch=2, due_us=5)]))
    assert answer == Committed(first_seq=1, last_seq=3)
    assert [e.seq for e in journal.events("run-1")] == [1, 2, 3]
    assert journal.row(RowKey("run", "run-1")) == StoredRow(
        RowKey("run", "run-1"), "run-1", "open", "{}", epoch=2, due_us=5, active=True, version=1
    )


def test_what_is_read_is_what_was_written(journal, make):
    """Every column comes back, text of all kinds included."""
    event = make.event(slot='s "ü" \x00 \U0001f600', payload='{"kind":"checkpoint_reached","name":"\\u0000é"}')
    journal.commit(Commit("run-1", 0, [event]))
    assert [stored.event for stored in journal.events("run-1")] == [event]


def test_events_chain_within_their_stream(journal, make):
    """Each hash covers the one before it in the same stream, from the genesis hash on."""
    journal.commit(make.commit("a", events=2))
    journal.commit(make.commit("b"))
    journal.commit(make.commit("a", after=2))
    link = GENESIS_HASH
    for stored in journal.events("a"):
        assert stored.prev_hash == link
        link = next_hash(link, event_digest(stored.event))
        assert stored.hash == link
    assert journal.events("b")[0].prev_hash == GENESIS_HASH


def test_each_write_of_a_row_counts(journal, make):
    """A row's version is the number of its writes, and the last write stands."""
    for place in range(3):
        journal.commit(make.commit(after=place, rows=[make.row(status=f"s{place}", body=f'{{"n":{place}}}')]))
    row = journal.row(RowKey("run", "run-1"))
    assert (row.version, row.status, row.body) == (3, "s2", '{"n":2}')


@pytest.mark.parametrize("expected", [0, 1, 3, 99])
def test_a_moved_head_is_refused(journal, make, expected):
    """Events computed from another state of the stream are not stored; the refusal names the head found."""
    journal.commit(make.commit(events=2, rows=[make.row()]))
    answer = journal.commit(make.commit(after=expected, rows=[make.row(status="never")]))
    assert reason(answer) == "head_moved"
    assert "2" in answer.detail
    assert answer.row.key == RowKey("run", "run-1")
    assert journal.row(RowKey("run", "run-1")).status == "open"
    assert len(journal.events("run-1")) == 2


def test_the_same_commit_twice_is_stored_once(journal, make):
    """A caller that lost the answer may repeat itself: the head has moved, and the event is found by its id."""
    command = make.commit()
    journal.commit(command)
    assert reason(journal.commit(command)) == "head_moved"
    assert [stored.event.event_id for stored in journal.events("run-1")] == [command.events[0].event_id]


def test_an_event_id_is_stored_once_wherever_it_comes_from(journal, make):
    """Even under another head or stream, an id that is stored is not stored again."""
    first = make.event()
    journal.commit(Commit("run-1", 0, [first]))
    again = seal(replace(first, run_seq=2))
    elsewhere = seal(replace(first, run_id="run-2"))
    assert reason(journal.commit(Commit("run-1", 1, [again]))) == "head_moved"
    assert reason(journal.commit(Commit("run-2", 0, [make.event("run-2"), seal(replace(elsewhere, run_seq=2))]))) == (
        "head_moved"
    )
    assert journal.events("run-2") == ()


def test_a_stale_epoch_is_refused(journal, make):
    """A driver that was taken over writes nothing more (rule 13)."""
    journal.commit(make.commit(rows=[make.row(epoch=2)]))
    answer = journal.commit(make.commit(after=1, epoch=1))
    assert reason(answer) == "stale_epoch"
    assert "2" in answer.detail
    assert answer.row.epoch == 2
    assert reason(journal.commit(make.commit(after=1, epoch=2))) == "committed"


def test_late_evidence_passes_without_an_epoch(journal, make):
    """A commit that names no epoch is not compared."""
    journal.commit(make.commit(rows=[make.row(epoch=9)]))
    assert reason(journal.commit(make.commit(after=1))) == "committed"


def test_a_frozen_run_takes_no_forward_intent(journal, make):
    """The status is checked in the commit itself: a freeze in between refuses it (rule 14)."""
    journal.commit(make.commit(rows=[make.row(status="recovering")]))
    answer = journal.commit(make.commit(after=1, allowed_statuses=frozenset({"open"})))
    assert reason(answer) == "status"
    assert "recovering" in answer.detail
    allowed = frozenset({"open", "recovering"})
    assert reason(journal.commit(make.commit(after=1, allowed_statuses=allowed))) == "committed"


def test_a_new_run_has_no_epoch_or_status_to_compare(journal, make):
    """Before its run row exists, a stream is held to its head alone."""
    command = make.commit(epoch=1, allowed_statuses=frozenset({"open"}), rows=[make.row()])
    assert reason(journal.commit(command)) == "committed"


def test_a_row_of_others_must_be_as_expected(journal, make):
    """Shared rows are compared by version: 0 means it must not exist (rule 6)."""
    claim = RowKey("claim", "order-7")
    taken = make.commit(expected_versions={claim: 0}, rows=[make.row("claim", "order-7")])
    assert reason(journal.commit(taken)) == "committed"
    answer = journal.commit(make.commit("run-2", expected_versions={claim: 0}))
    assert reason(answer) == "row_changed"
    assert answer.row.run_id == "run-1"
    assert reason(journal.commit(make.commit("run-2", expected_versions={claim: 2}))) == "row_changed"
    assert reason(journal.commit(make.commit("run-2", expected_versions={claim: 1}))) == "committed"
    missing = RowKey("approval", "nobody")
    answer = journal.commit(make.commit("run-3", expected_versions={missing: 1}))
    assert (reason(answer), answer.row) == ("row_changed", None)


def test_an_active_pause_forbids(journal, make):
    """A pause is checked in the intent's commit; lifted, it forbids nothing (rule 15)."""
    pause = RowKey("pause", "all")
    assert reason(journal.commit(make.commit(forbidden=[pause]))) == "committed"
    journal.commit(make.commit("system", rows=[make.row("pause", "all", "system")]))
    answer = journal.commit(make.commit(after=1, forbidden=[RowKey("pause", "tenant:acme"), pause]))
    assert reason(answer) == "forbidden"
    assert answer.row.key == pause
    journal.commit(make.commit("system", after=1, rows=[make.row("pause", "all", "system", active=False)]))
    assert reason(journal.commit(make.commit(after=1, forbidden=[pause]))) == "committed"


def test_a_caller_that_gave_up_is_not_stored(journal, make):
    """`wanted` is asked under the lock: a no stores nothing (rule 1)."""
    assert reason(journal.commit(make.commit(wanted=lambda: False))) == "unwanted"
    assert journal.events("run-1") == ()
    assert reason(journal.commit(make.commit(wanted=lambda: True))) == "committed"


def test_an_exception_in_wanted_is_the_callers(journal, make):
    """It stores nothing, comes back to the caller, and the journal goes on."""

    def wanted():
        raise LookupError("no such call")

    with pytest.raises(LookupError, match="no such call"):
        journal.commit(make.commit(wanted=wanted))
    assert journal.events("run-1") == ()
    assert reason(journal.commit(make.commit())) == "committed"


def test_checks_come_in_their_order(journal, make):
    """Forbidden, epoch, status, head, versions, wanted: each is told before those behind it."""
    pause, other = RowKey("pause", "all"), RowKey("claim", "x")
    journal.commit(make.commit(rows=[make.row(epoch=2, status="recovering"), make.row("pause", "all")]))
    asked = []
    wrong = {
        "forbidden": [pause],
        "epoch": 1,
        "allowed_statuses": frozenset({"open"}),
        "expected_versions": {other: 5},
        "wanted": lambda: bool(asked.append(1)),
    }
    seen, head = [], 7
    for fixed in ("forbidden", "epoch", "allowed_statuses", "head", "expected_versions", "wanted"):
        seen.append(reason(journal.commit(make.commit(after=head, **wrong))))
        if fixed == "head":
            head = 1
        else:
            del wrong[fixed]
    assert seen == ["forbidden", "stale_epoch", "status", "head_moved", "row_changed", "unwanted"]
    assert asked == [1]


def test_a_refused_command_harms_no_batch_mate(journal, make):
    """Commands queued together are each answered for themselves, and a later one sees what an earlier one stored."""
    gate, queued = threading.Event(), threading.Barrier(5)
    answers = {}

    def send(name, command):
        queued.wait()
        answers[name] = journal.commit(command)

    commands = {
        "blocker": make.commit("blocker", wanted=lambda: gate.wait(20)),
        "good": make.commit("good", rows=[make.row(key="good", run_id="good")]),
        "moved": make.commit("moved", after=4, rows=[make.row(key="moved", run_id="moved")]),
        "unwanted": make.commit("unwanted", wanted=lambda: False, rows=[make.row(key="u", run_id="unwanted")]),
    }
    threads = [threading.Thread(target=send, args=item) for item in commands.items()]
    for thread in threads:
        thread.start()
    queued.wait()
    gate.set()
    for thread in threads:
        thread.join()
    assert {name: reason(answer) for name, answer in answers.items()} == {
        "blocker": "committed",
        "good": "committed",
        "moved": "head_moved",
        "unwanted": "unwanted",
    }
    assert [journal.load(name) != () for name in ("good", "moved", "unwanted")] == [True, False, False]
    assert journal.verify() == ()


def test_one_of_many_claimants_wins(journal, make):
    """Threads that race for one claim: exactly one commit passes, the others are told who holds it."""
    claim = RowKey("claim", "order-7")
    commands = [
        make.commit(f"run-{n}", expected_versions={claim: 0}, rows=[make.row("claim", "order-7", f"run-{n}")])
        for n in range(12)
    ]
    answers = []
    threads = [threading.Thread(target=lambda c=c: answers.append(journal.commit(c))) for c in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reason(answer) for answer in answers) == ["committed"] + ["row_changed"] * 11
    winner = journal.row(claim).run_id
    assert {answer.row.run_id for answer in answers if isinstance(answer, Refused)} == {winner}


@pytest.mark.parametrize("shape", ["empty", "gap", "other stream", "unsealed", "altered", "twice"])
def test_a_malformed_commit_is_a_defect(journal, make, shape):
    """A commit that could break the chain is no refusal to retry: it raises and stores nothing."""
    good = make.event()
    events = {
        "empty": [],
        "gap": [good, make.event(place=3)],
        "other stream": [make.event("run-2")],
        "unsealed": [replace(good, digest="")],
        "altered": [replace(good, tenant="other")],
        "twice": [good, seal(replace(good, run_seq=2))],
    }[shape]
    with pytest.raises(InternalError):
        journal.commit(Commit("run-1", 0, events))
    assert journal.info().events == 0


def test_text_that_is_no_unicode_is_refused_before_the_ledger(make):
    """A lone surrogate cannot be digested, so it never gets as far as a commit."""
    with pytest.raises(InvalidInput):
        make.event(slot="\ud800")


def test_a_closed_journal_says_so(journal, make):
    """After `close`, which may be repeated, every use names the remedy."""
    journal.commit(make.commit())
    journal.close()
    journal.close()
    for use in (lambda: journal.commit(make.commit(after=1)), journal.info, lambda: journal.load("run-1")):
        with pytest.raises(CallerError, match="closed") as caught:
            use()
        assert caught.value.hint
