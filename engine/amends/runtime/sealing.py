"""Sealing: old runs leave the journal for the archive, whole, and only once the archive is durable (DESIGN section 6).

Whoever is killed between the two leaves a file that no seal names; the next sealing sweeps it away and starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pydantic import ValidationError

from amends.core import fold
from amends.core.errors import Conflict, CorruptLedger, IllegalTransition
from amends.core.retention import sealable_at_us
from amends.core.rows import RunRow, RunState, SealedRow
from amends.core.status import TERMINAL_RUNS
from amends.ports.archive import Archive
from amends.ports.journal import Journal, RowKey, RowWrite, Seal, StoredEvent, StoredRow, Trim
from amends.runtime.replaying import event_of, events_of

EVENTS_PER_FILE = 20_000  # some megabytes; removing so many holds the journal's lock for about 0.2 s
_TERMINAL = frozenset(status.value for status in TERMINAL_RUNS)


@dataclass
class Sealed:
    """What was sealed, and terminal runs that had to stay: run id -> why."""

    seals: list[Seal] = field(default_factory=list[Seal])
    left: dict[str, str] = field(default_factory=dict[str, str])


def seal(
    journal: Journal, archive: Archive, *, now_us: int, keep_us: int, on_file: Callable[[Seal], None] | None = None
) -> Sealed:
    """Seal every run that is past its horizons for `keep_us`, a file at a time. `on_file` hears of each.

    Raises `SystemUnavailable` (another process seals, or the archive cannot be written) and what the journal raises;
    what was sealed until then stays sealed.
    """
    done = Sealed()
    with archive.exclusively():
        generation = journal.info().generation
        archive.sweep(generation, journal.seals())
        for runs in _batches(_old(journal, now_us, keep_us, done.left)):
            made = _sealed(journal, archive, generation, runs, done.left)
            if made is not None:
                done.seals.append(made)
                if on_file is not None:
                    on_file(made)
    return done


def _sealed(
    journal: Journal, archive: Archive, generation: str, runs: list[RunRow], left: dict[str, str]
) -> Seal | None:
    made, ends = archive.write(generation, _events(journal, runs))
    try:
        journal.trim(Trim(made, ends, [_rest(run, made.file) for run in runs]))
    except Conflict as error:
        left.update({run.run_id: error.message for run in runs})
        return None
    return made


def _events(journal: Journal, runs: list[RunRow]) -> Iterator[StoredEvent]:
    for run in runs:
        yield from events_of(journal, run.run_id)


def _rest(run: RunRow, file: str) -> RowWrite:
    """What stays to be found of a run, beside its claims."""
    row = SealedRow(run_id=run.run_id, workflow=run.workflow, run_key=run.run_key, status=run.status, file=file)
    key = RowKey("sealed", run.run_id)
    return RowWrite(key, run.run_id, run.status.value, row.model_dump_json(), active=False)


def _batches(runs: Iterator[RunRow]) -> Iterator[list[RunRow]]:
    batch: list[RunRow] = []
    events = 0
    for run in runs:
        batch.append(run)
        events += run.head
        if events >= EVENTS_PER_FILE:
            yield batch
            batch, events = [], 0
    if batch:
        yield batch


def _old(journal: Journal, now_us: int, keep_us: int, left: dict[str, str]) -> Iterator[RunRow]:
    """Runs that may go now, as their events say; one whose events do not fold stays, and `left` says why."""
    after = ""
    while page := journal.rows("run", statuses=_TERMINAL, after_key=after):
        after = page[-1].key.key
        for row in page:
            if not _may_be_old(row, now_us - keep_us, left):
                continue
            state = _folded(journal, row.run_id, left)
            due_us = sealable_at_us(state, keep_us) if state is not None else None
            if state is not None and due_us is not None and due_us <= now_us:
                yield state.run


def _may_be_old(row: StoredRow, before_us: int, left: dict[str, str]) -> bool:
    """A cheap look, so that young runs are not folded."""
    try:
        return RunRow.model_validate_json(row.body).moved_us <= before_us
    except ValidationError:
        left[row.run_id] = "its row cannot be read back"
        return False


def _folded(journal: Journal, run_id: str, left: dict[str, str]) -> RunState | None:
    quarantine = journal.row(RowKey("quarantine", run_id))
    if quarantine is not None and quarantine.active:
        left[run_id] = "it is quarantined"
        return None
    try:
        return fold.replay(map(event_of, events_of(journal, run_id)))
    except (CorruptLedger, IllegalTransition) as error:
        left[run_id] = error.message
        return None


def archived_state(journal: Journal, archive: Archive, row: SealedRow) -> RunState:
    """A sealed run as its events say, with `sealed` set. Raises `CorruptLedger` if its file is not what was sealed."""
    seals = [seal for seal in journal.seals() if seal.file == row.file]
    state = fold.replay(map(event_of, archive.events(seals, row.run_id)))
    if state is None:
        raise CorruptLedger(
            f"run `{row.run_id}` is sealed in `{row.file}`, which does not hold it", hint="run `amends ledger verify`"
        )
    return RunState(state.run, state.actions, state.approvals, state.escalations, state.claims, sealed=row.file)
