"""People's SQL reads the ledger and nothing else, within bounds."""

import threading

import pytest

from amends.backends.duckdb_ledger import DuckdbLedger
from amends.core.errors import InvalidInput, SystemUnavailable
from amends.testing.fakes import SimClock
from amends.testing.ledger_builder import EventList, store
from amends.testing.run_builder import RunBuilder

EXTENT = "SELECT count(*), count(DISTINCT seq), max(seq) FROM events"
ENDLESS = "SELECT count(*) FROM range(100_000_000) a, range(100_000) b WHERE (a.range + b.range) % 7 = 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ledger")


@pytest.fixture(scope="module")
def clock():
    return SimClock()


@pytest.fixture(scope="module")
def events(clock):
    events = EventList()
    store(events, RunBuilder(clock).planned("a").decided().intent().later(1).succeeded())
    return events


@pytest.fixture(scope="module")
def asked(events, folder, clock):
    """One ledger for all tests here: they only read, which is the point."""
    ledger = DuckdbLedger(events, folder, clock)
    ledger.refresh()
    return ledger


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO events (seq) VALUES (0)",
        "WITH x AS (INSERT INTO events (seq) VALUES (0) RETURNING seq) SELECT * FROM x",
        "UPDATE events SET status = ''",
        "DELETE FROM events",
        "DROP VIEW runs",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE OR REPLACE VIEW runs AS SELECT 1",
        "ATTACH '{folder}/other.duckdb'",
        "COPY events TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "SELECT * FROM read_text('{folder}/secret.txt')",
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '64GB'",
        "SET enable_external_access = true",
        "RESET threads",
        "SELECT * FROM asked",
        "SELEC 1",
        "SELECT nothing FROM events",
        "SELECT 1; SELECT 2",
        "",
        "SELECT '\ud800'",
    ],
)
def test_what_is_no_single_read_is_refused(sql, asked, folder):
    """Writing, other files, settings, Python variables, several statements: refused, and nothing has happened."""
    (folder / "secret.txt").write_text("secret")
    (folder / "secret.csv").write_text("a,b")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(InvalidInput):
        asked.query(sql.format(folder=folder))
    assert sorted(path.name for path in folder.iterdir()) == before
    assert asked.query("SELECT count(*) FROM events").rows == ((5,),)


def test_a_refusal_says_what_the_database_said(asked):
    """The first line in the message, all of it in the data."""
    with pytest.raises(InvalidInput, match='column "nothing" not found') as caught:
        asked.query("SELECT nothing FROM events")
    assert "LINE 1" in caught.value.data["detail"]


def test_the_row_limit_cuts_and_says_so(asked):
    """Exactly the limit is whole; one more is cut."""
    assert asked.query("FROM range(3)", max_rows=3).truncated is False
    cut = asked.query("FROM range(1_000_000_000_000)", max_rows=3)
    assert (cut.rows, cut.truncated) == (((0,), (1,), (2,)), True)


def test_the_time_limit_ends_a_query(asked):
    """The database is interrupted, and can be asked again."""
    with pytest.raises(SystemUnavailable, match=r"longer than 0\.05 s"):
        asked.query(ENDLESS, timeout_seconds=0.05)
    assert asked.query("SELECT 1").rows == ((1,),)


def test_memory_is_bounded(asked):
    """A query that needs more than it may have says so."""
    with pytest.raises(SystemUnavailable, match="more memory"):
        asked.query("SELECT list(range) FROM range(400_000_000)")


@pytest.mark.parametrize(("rows", "seconds"), [(0, 1.0), (1, 0.0)])
def test_limits_must_be_positive(rows, seconds, asked):
    """Nothing is unlimited by accident."""
    with pytest.raises(InvalidInput, match="positive"):
        asked.query("SELECT 1", max_rows=rows, timeout_seconds=seconds)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("NULL", None),
        ("true", True),
        ("17", 17),
        ("1.5::DECIMAL(4,2)", 1.5),
        ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
        ("'ü'", "ü"),
        ("'\\x00'::BLOB", b"\x00"),
        ("TIMESTAMP '2026-01-02 03:04:05.5'", "2026-01-02 03:04:05.500000"),
        ("DATE '2026-01-02'", "2026-01-02"),
        ("TIME '03:04'", "03:04:00"),
        ("INTERVAL 90 SECOND", 90.0),
        ("[1, NULL]", [1, None]),
        ("{'a': DATE '2026-01-02'}", '{"a": "2026-01-02"}'),
        ("'00000000-0000-7000-8000-000000000001'::UUID", "00000000-0000-7000-8000-000000000001"),
    ],
)
def test_values_arrive_as_port_values(expression, value, asked):
    """Times as ISO text in UTC, durations in seconds, structures as JSON text."""
    assert asked.query(f"SELECT {expression}").rows == ((value,),)


def test_parameters_are_bound(asked):
    """Values never become SQL."""
    assert asked.query("SELECT ? || ?", ["'; DROP", " TABLE"]).rows == (("'; DROP TABLE",),)


def test_ages_count_to_the_clock_of_the_engine(asked, clock):
    """Views that say how old something is use the asking engine's time, not the database's."""
    assert asked.query("SELECT internal.as_of_us()").rows == ((clock.now_us(),),)


def test_queries_of_several_threads_do_not_disturb_each_other(events, tmp_path, clock):
    """While one thread refreshes again and again, others read whole answers."""
    failures = []
    growing = EventList(stored=list(events.stored))
    ledger = DuckdbLedger(growing, tmp_path, clock)
    ledger.refresh()

    def read():
        for _ in range(10):
            try:
                ((count, distinct, last),) = ledger.query(
                    "SELECT count(*), count(DISTINCT seq), max(seq) FROM events"
                ).rows
                if not count == distinct == last:
                    failures.append((count, distinct, last))
            except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(5):
        store(growing, RunBuilder(clock, run_id=f"more-{number}"))
        ledger.refresh()
    for reader in readers:
        reader.join()
    assert failures == []
