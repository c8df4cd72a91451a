"""`docs/ledger.md`, the catalog and the database say the same about every table, view and metric."""

import re
from pathlib import Path

import pytest

from amends.backends.duckdb_ledger import METRICS, VIEWS, DuckdbLedger
from amends.testing.fakes import SimClock
from amends.testing.ledger_builder import EventList, store
from amends.testing.run_builder import RunBuilder

DOCUMENT = (Path(__file__).parents[2] / "docs/ledger.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| `(\w+)` \| `([\w\[\]]+)` \| (.*?) \| (.*) \|$", re.MULTILINE)
GROUP = tuple(METRICS[0].columns[:7])
DESCRIBED = [*VIEWS, *METRICS]


def documented(text):
    return [(name, kind, unit.strip(), meaning) for name, kind, unit, meaning in ROW.findall(text)]


def described(columns):
    return [(column.name, column.type, column.unit, column.meaning) for column in columns]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    clock, events = SimClock(), EventList()
    store(events, RunBuilder(clock).planned("a").decided().intent().later(1).lost())
    ledger = DuckdbLedger(events, tmp_path_factory.mktemp("ledger"), clock)
    ledger.refresh()
    return ledger


def test_document_and_catalog_name_the_same_things():
    """In the same order, nothing more and nothing less."""
    assert list(SECTIONS) == [described.name for described in DESCRIBED]


def test_database_and_catalog_name_the_same_things(ledger):
    """Every public table, view and table macro of the database is described, and none is only described."""
    tables = ledger.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'").rows
    assert sorted(name for (name,) in tables) == sorted(described.name for described in DESCRIBED)
    macros = ledger.query(
        "SELECT function_name, parameters FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal"
    ).rows
    assert sorted((name, *parameters) for name, parameters in macros) == sorted(
        (metric.name, "since", "until") for metric in METRICS
    )


@pytest.mark.parametrize("name", [described.name for described in DESCRIBED])
def test_columns_and_types_are_those_of_the_database(name, ledger):
    """In order; the macro of a metric has the same ones as its view."""
    wanted = [(column.name, column.type) for column in next(x for x in DESCRIBED if x.name == name).columns]
    found = [row[:2] for row in ledger.query(f"DESCRIBE FROM {name}").rows]
    assert found == wanted
    if name in {metric.name for metric in METRICS}:
        assert [row[:2] for row in ledger.query(f"DESCRIBE FROM {name}('2026-01-01', '2026-02-01')").rows] == wanted


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_document_describes_each_view(view):
    """Sentence, columns and example are the catalog's."""
    assert documented(SECTIONS[view.name]) == described(view.columns)
    assert view.sentence in SECTIONS[view.name]
    assert f"```sql\n{view.example}\n```" in SECTIONS[view.name]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_document_describes_each_metric(metric):
    """Beside the columns all metrics share, which stand once; with unit and the moment that selects."""
    assert metric.columns[:7] == GROUP
    assert documented(SECTIONS[metric.name]) == described(metric.columns[7:])
    assert f"{metric.sentence} Unit: {metric.unit}. Selected by {metric.selects}." in SECTIONS[metric.name]
    assert f"```sql\n{metric.example}\n```" in SECTIONS[metric.name]


def test_document_describes_the_shared_columns():
    """Once, before the first metric."""
    head = DOCUMENT.partition("## Metrics")[2].partition("###")[0]
    assert documented(head) == described(GROUP)


@pytest.mark.parametrize("sql", re.findall(r"^```sql\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL))
def test_examples_run(sql, ledger):
    """Each statement of each `sql` block answers."""
    for statement in filter(str.strip, sql.split(";")):
        assert ledger.query(statement).columns
