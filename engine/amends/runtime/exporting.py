"""Exporting: the events of one run or of all, in order, wherever they are by now; redacted as they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from amends.core.errors import UnknownName
from amends.core.rows import SealedRow
from amends.ports.archive import Archive
from amends.ports.journal import Journal, RowKey, StoredEvent
from amends.runtime.replaying import events_of


def exported(journal: Journal, archive: Archive, run_id: str = "") -> Iterator[StoredEvent]:
    """Every event of the ledger, or of one run, in order of `seq`. Nothing is sealed meanwhile.

    Raises `UnknownName`, `SystemUnavailable` (another process seals now), `CorruptLedger` (a sealed file is missing or
    changed, or an event of the run is).
    """
    with archive.exclusively():
        yield from _of_run(journal, archive, run_id) if run_id else _all(journal, archive)


def _of_run(journal: Journal, archive: Archive, run_id: str) -> Iterator[StoredEvent]:
    row = journal.row(RowKey("sealed", run_id))
    if row is not None:
        file = SealedRow.model_validate_json(row.body).file
        yield from archive.events([seal for seal in journal.seals() if seal.file == file], run_id)
        return
    found = events_of(journal, run_id)
    first = next(found, None)
    if first is None:
        raise UnknownName(f"no run `{run_id}`", hint="`amends runs list` shows them", run_id=run_id)
    yield first
    yield from found


def _all(journal: Journal, archive: Archive) -> Iterator[StoredEvent]:
    yield from merge(archive.events(journal.seals()), _held(journal), key=lambda stored: stored.seq)


def _held(journal: Journal) -> Iterator[StoredEvent]:
    seq = 0
    while page := journal.events_after(seq):
        yield from page
        seq = page[-1].seq
