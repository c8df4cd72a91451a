"""Verification: the journal's rows are what its events say, run by run (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Iterator

from amends.core import events as e
from amends.core import fold
from amends.core.errors import CorruptLedger, IllegalTransition
from amends.core.rows import Row
from amends.ports.journal import Journal, RowKey, StoredRow
from amends.runtime.records import key_of, rows_of
from amends.runtime.replaying import event_of, events_of


def differences(journal: Journal) -> Iterator[str]:
    """Every row that differs from the fold of its run's events, and every run whose events do not fold, in words."""
    for run_id in _runs(journal):
        yield from _of_run(journal, run_id)
    yield from _of_system(journal)


def _of_run(journal: Journal, run_id: str) -> Iterator[str]:
    try:
        state = fold.replay(map(event_of, events_of(journal, run_id)))
    except (CorruptLedger, IllegalTransition) as error:
        yield f"run `{run_id}`: its events do not fold: {error.message}"
        return
    if state is None:
        yield f"run `{run_id}` has a row and no event"
        return
    stored = {row.key: row for row in journal.load(run_id)}
    wanted = {key_of(row): row for row in rows_of(state)}
    for key in sorted(stored.keys() | wanted.keys(), key=lambda key: (key.kind, key.key)):
        yield from _compared(run_id, key, stored.get(key), wanted.get(key), journal)


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
    elif stored.body != wanted.model_dump_json():
        yield f"{where} is not what its events say"


def _of_system(journal: Journal) -> Iterator[str]:
    wanted: dict[RowKey, Row] = {}
    try:
        for event in map(event_of, events_of(journal, e.SYSTEM_STREAM)):
            made = fold.system_row(event)
            if made is not None:
                wanted[key_of(made)] = made
    except CorruptLedger as error:
        yield f"the system stream cannot be read: {error.message}"
        return
    for key, row in wanted.items():
        stored = journal.row(key)
        if stored is None or stored.body != row.model_dump_json():
            yield f"{key.kind} `{key.key}` is not what the system stream says"


def _runs(journal: Journal) -> Iterator[str]:
    after = ""
    while page := journal.rows("run", after_key=after):
        yield from (row.key.key for row in page)
        after = page[-1].key.key
