"""The ledger as people query it: every event, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

SqlValue: TypeAlias = "bool | int | float | str | bytes | Sequence[SqlValue] | None"


@dataclass(frozen=True, slots=True)
class Table:
    """A query's answer. `truncated` is True if the row limit cut it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[SqlValue, ...], ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class LedgerState:
    """How far the mirror is, and what it found wrong (`problems` are reported, never skipped)."""

    location: str
    max_seq: int
    events: int
    rebuilt: bool
    problems: tuple[str, ...] = ()


class Ledger(Protocol):
    """A complete copy of the journal's events for analytics; disposable and rebuildable."""

    def refresh(self) -> LedgerState:
        """Append what is new; on any doubt set the file aside and rebuild. Exact when it returns.

        Raises `SystemUnavailable` if another process keeps the mirror lock past a bounded time.
        """
        ...

    def query(
        self, sql: str, parameters: Sequence[SqlValue] = (), *, max_rows: int = 10_000, timeout_seconds: float = 30.0
    ) -> Table:
        """Run one read-only statement (no external access, configuration locked). Raises `InvalidInput` with the
        database's words for a bad statement and `SystemUnavailable` when the time limit passes.
        """
        ...

    def rebuild(self) -> LedgerState:
        """Throw the copy away and make it anew from the journal and the sealed files."""
        ...

    def close(self) -> None:
        """Release files. Idempotent."""
        ...
