"""A mirror over a list of events, in a temporary folder."""

import pytest

from amends.backends.duckdb_ledger import DuckdbLedger
from amends.testing.fakes import SimClock
from amends.testing.ledger_builder import EventList, store
from amends.testing.run_builder import RunBuilder


@pytest.fixture
def clock():
    return SimClock()


@pytest.fixture
def events():
    return EventList()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def open_ledger(events, folder, clock):
    """Builds ledgers over the same events and folder; waits are short unless a test says otherwise."""

    def build(**changes):
        waits = {"lock_timeout_seconds": 5.0, "reader_patience_seconds": 0.05}
        return DuckdbLedger(changes.pop("source", events), folder, clock, **(waits | changes))

    return build


@pytest.fixture
def ledger(open_ledger):
    return open_ledger()


@pytest.fixture
def add_run(events, clock):
    """Appends one small run: a call that succeeds. Its events bear the run's number."""
    made = []

    def add():
        made.append(None)
        number = len(made)
        run = RunBuilder(clock, run_id=f"run-{number}", run_key=f"key-{number}")
        run.planned(f"a{number}").decided().intent().later(1).succeeded()
        store(events, run)
        return run

    return add
