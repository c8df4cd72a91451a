"""Verification: the journal's rows are what its events say, run by run, column by column (DESIGN section 6).

Recovery finds its work by the columns beside a row's body, so a wrong column or a lost row hides a run without a word:
here every event must belong to a row, and every row to an event.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from collections.abc import Set as AbstractSet
from typing import get_args

from amends.core import events as e
from amends.core import fold
from amends.core.errors import CorruptLedger, IllegalTransition
from amends.core.rows import QuarantineRow, Row, RowKind
from amends.ports.journal import Journal, RowKey, RowWrite, StoredRow
from amends.runtime.records import key_of, rows_of, write_of
from amends.runtime.replaying import event_of, events_of


def differences(journal: Journal) -> Iterator[str]:
    """Every row that differs from the fold of its run's events, every run whose events do not fold, events without a
    row and rows without an event, in words.
    """
    held = journal.info().events - sum(seal.events for seal in journal.seals())
    seen, runs = 0, set[str]()
    for run_id in (row.key.key for row in _rows(journal, "run")):
        runs.add(run_id)
        seen += yield from _of_run(journal, run_id)
    seen += yield from _of_system(journal)
    if seen != held:
        yield from _lost_runs(journal, runs)
    yield from _strays(journal, runs)
    yield from _lost_tombstones(journal)


def _of_run(journal: Journal, run_id: str) -> Generator[str, None, int]:
    """The differences of one run; how many of its events were folded."""
    try:
        state = fold.replay(map(event_of, events_of(journal, run_id)))
    except (CorruptLedger, IllegalTransition) as error:
        yield f"run `{run_id}`: its events do not fold: {error.message}"
        return 0
    if state is None:
        yield f"run `{run_id}` has a row and no event"
        return 0
    stored = {row.key: row for row in journal.load(run_id)}
    wanted = {key_of(row): row for row in rows_of(state)}
    for key in sorted(stored.keys() | wanted.keys(), key=lambda key: (key.kind, key.key)):
        yield from _compared(run_id, key, stored.get(key), wanted.get(key), journal)
    return state.run.head


def _compared(
    run_id: str, key: RowKey, stored: StoredRow | None, wanted: Row | None, journal: Journal
) -> Iterator[str]:
    where = f"run `{run_id}`: {key.kind} `{key.key}`"
    if wanted is None:
        yield f"{where} is stored, but no event made it"
    elif stored is None:
        holder = journal.row(key)  # a claim moves on to the next run that holds it
        if key.kind != "claim" or holder is None or holder.run_id == run_id:
            yield f"{where} is made by events, but not stored"
    elif wrong := _wrong_columns(stored, write_of(wanted)):
        yield f"{where} is not what its events say: {wrong}"


def _wrong_columns(stored: StoredRow, wanted: RowWrite) -> str:
    columns = ("run_id", "status", "body", "epoch", "due_us", "active")
    return ", ".join(name for name in columns if getattr(stored, name) != getattr(wanted, name))


def _of_system(journal: Journal) -> Generator[str, None, int]:
    """The differences of rows that belong to no run; how many events made them."""
    wanted: dict[RowKey, Row] = {}
    seen = 0
    try:
        for event in map(event_of, events_of(journal, e.SYSTEM_STREAM)):
            seen += 1
            known = wanted.get(RowKey("quarantine", fold.quarantined_run(event.body)))
            made = fold.system_row(event, known if isinstance(known, QuarantineRow) else None)
            if made is not None:
                wanted[key_of(made)] = made
    except (CorruptLedger, IllegalTransition) as error:
        yield f"the system stream cannot be read: {error.message}"
        return seen
    stored = {row.key: row for row in journal.load(e.SYSTEM_STREAM)}
    for key, row in wanted.items():
        if key not in stored:
            yield f"{key.kind} `{key.key}` is not what the system stream says: it is not stored"
        elif wrong := _wrong_columns(stored[key], write_of(row)):
            yield f"{key.kind} `{key.key}` is not what the system stream says: {wrong}"
    for key in sorted(stored.keys() - wanted.keys(), key=lambda key: (key.kind, key.key)):
        yield f"{key.kind} `{key.key}` is not what the system stream says: no event made it"
    return seen


def _lost_runs(journal: Journal, runs: AbstractSet[str]) -> Iterator[str]:
    """Runs that have events and no row: nothing would ever recover them. Every event is read once more for it."""
    known = {*runs, e.SYSTEM_STREAM}
    after = 0
    while page := journal.events_after(after):
        after = page[-1].seq
        for run_id in (stored.event.run_id for stored in page):
            if run_id not in known and journal.row(RowKey("run", run_id)) is None:
                yield f"run `{run_id}` has events and no row"
            known.add(run_id)


def _strays(journal: Journal, runs: AbstractSet[str]) -> Iterator[str]:
    """Rows of runs that are not there. A claim may outlive its run, which was sealed."""
    known = {*runs, e.SYSTEM_STREAM}
    for kind in get_args(RowKind):
        for row in _rows(journal, kind) if kind not in {"run", "claim", "sealed"} else ():
            if row.run_id not in known and journal.row(RowKey("run", row.run_id)) is None:
                yield f"{kind} `{row.key.key}` belongs to run `{row.run_id}`, which has no row"


def _lost_tombstones(journal: Journal) -> Iterator[str]:
    """What is left of sealed runs must be as many as were sealed: a key without it would be free again."""
    sealed = sum(seal.runs for seal in journal.seals())  # asked first: a sealing in between only adds
    found = sum(1 for _ in _rows(journal, "sealed"))
    if found < sealed:
        yield f"{sealed} runs were sealed, {found} of them can be found"


def _rows(journal: Journal, kind: RowKind) -> Iterator[StoredRow]:
    after = ""
    while page := journal.rows(kind, after_key=after):
        yield from page
        after = page[-1].key.key
