"""What can be asked of a journal, and in which order it answers."""

import pytest

from amends.ports.journal import RowKey


@pytest.fixture
def filled(journal, make):
    """Seven runs with statuses, due times and activity of every kind."""
    shapes = [
        ("r1", "open", None, True),
        ("r2", "recovering", 100, True),
        ("r3", "recovering", 200, True),
        ("r4", "recovered", None, False),
        ("r5", "needs_human", 50, True),
        ("r6", "recovering", None, False),
        ("r7", "open", 100, True),
    ]
    for key, status, due_us, active in reversed(shapes):
        row = make.row("run", key, key, status=status, due_us=due_us, active=active)
        journal.commit(make.commit(key, rows=[row, make.row("claim", f"c-{key}", key)]))
    return journal


def keys(rows):
    return [row.key.key for row in rows]


def test_rows_of_a_kind_come_in_key_order(filled):
    """All of one kind, none of another."""
    assert keys(filled.rows("run")) == ["r1", "r2", "r3", "r4", "r5", "r6", "r7"]
    assert keys(filled.rows("claim"))[:2] == ["c-r1", "c-r2"]
    assert filled.rows("approval") == ()


def test_rows_are_paged_by_key(filled):
    """`after_key` and `limit` walk through all rows without gap or repetition."""
    assert keys(filled.rows("run", limit=3)) == ["r1", "r2", "r3"]
    assert keys(filled.rows("run", after_key="r3", limit=3)) == ["r4", "r5", "r6"]
    assert keys(filled.rows("run", statuses=frozenset({"open", "recovering"}), limit=2, after_key="r1")) == ["r2", "r3"]
    assert filled.rows("run", after_key="r7") == ()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"statuses": frozenset({"open"})}, ["r1", "r7"]),
        ({"statuses": frozenset({"open", "recovering"})}, ["r1", "r2", "r3", "r6", "r7"]),
        ({"statuses": frozenset()}, []),
        ({"due_before_us": 100}, ["r1", "r2", "r4", "r5", "r6", "r7"]),
        ({"due_before_us": 99}, ["r1", "r4", "r5", "r6"]),
        ({"active": True}, ["r1", "r2", "r3", "r5", "r7"]),
        ({"active": False}, ["r4", "r6"]),
        ({"statuses": frozenset({"recovering"}), "due_before_us": 150, "active": True}, ["r2"]),
    ],
)
def test_rows_are_filtered(filled, filters, expected):
    """By status, by due time (unset counts as due), by activity, and by all at once."""
    assert keys(filled.rows("run", **filters)) == expected


def test_a_run_is_loaded_whole(journal, make):
    """All rows of a run and of no other, actions in the order of their registration."""
    rows = [make.row("action", f"a{n}") for n in (3, 1, 2)]
    journal.commit(make.commit(rows=[*rows, make.row()]))
    journal.commit(make.commit("run-2", rows=[make.row("action", "a9", "run-2")]))
    loaded = journal.load("run-1")
    assert [row.key.key for row in loaded if row.key.kind == "action"] == ["a1", "a2", "a3"]
    assert {row.key for row in loaded if row.key.kind != "action"} == {RowKey("run", "run-1")}


def test_what_is_unknown_is_empty(journal):
    """Nothing stored is no error."""
    assert journal.load("nobody") == ()
    assert journal.row(RowKey("run", "nobody")) is None
    assert journal.events("nobody") == ()
    assert journal.events_after(0) == ()


def test_events_of_a_stream_are_paged_by_place(journal, make):
    """In order, from after a place, up to a limit; other streams in between do not matter."""
    for place in range(4):
        journal.commit(make.commit("a", after=place))
        journal.commit(make.commit("b", after=place))
    assert [e.event.run_seq for e in journal.events("a")] == [1, 2, 3, 4]
    assert [e.event.run_seq for e in journal.events("a", after_run_seq=1, limit=2)] == [2, 3]


def test_events_of_the_ledger_are_paged_by_seq(journal, make):
    """The mirror reads everything once, in the order it was stored."""
    for place in range(3):
        journal.commit(make.commit("b", after=2 * place, events=2))
        journal.commit(make.commit("a", after=place))
    every = journal.events_after(0)
    assert [e.seq for e in every] == list(range(1, 10))
    assert [e.event.run_id for e in every[:3]] == ["b", "b", "a"]
    assert journal.events_after(4, limit=2) == every[4:6]


def test_info_tells_the_extent(journal, make):
    """Format, generation, last place and hash, and the number of events: what a mirror compares."""
    empty = journal.info()
    assert (empty.format, empty.max_seq, empty.events) == (1, 0, 0)
    assert empty.generation
    journal.commit(make.commit(events=2))
    journal.commit(make.commit("run-2"))
    info = journal.info()
    assert (info.generation, info.max_seq, info.events) == (empty.generation, 3, 3)
    assert info.max_hash == journal.events("run-2")[-1].hash
