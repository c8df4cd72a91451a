"""The ledger in DuckDB: a mirror of the journal for SQL. The one package that knows DuckDB."""

from amends.backends.duckdb_ledger.archive import ParquetArchive
from amends.backends.duckdb_ledger.catalog import Column, Metric, View
from amends.backends.duckdb_ledger.connection import Limits
from amends.backends.duckdb_ledger.ledger import DuckdbLedger
from amends.backends.duckdb_ledger.metrics import METRICS, metric_sql
from amends.backends.duckdb_ledger.mirror import EventSource
from amends.backends.duckdb_ledger.views import VIEWS

__all__ = [
    "METRICS",
    "VIEWS",
    "Column",
    "DuckdbLedger",
    "EventSource",
    "Limits",
    "Metric",
    "ParquetArchive",
    "View",
    "metric_sql",
]
