"""Quarantines: runs that could not be read back. Nothing drives one until it reads and a person lifts it (rule 16)."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from amends.core import events as e
from amends.core import fold
from amends.core.errors import Conflict, CorruptLedger, IllegalTransition, UnknownName
from amends.core.rows import RunState
from amends.ports.journal import Journal, RowKey, StoredRow
from amends.runtime.book import Book
from amends.runtime.kit import Kit
from amends.runtime.records import state_of
from amends.runtime.replaying import event_of, events_of

_PAGE = 200
_UNTOLD = frozenset({"open"})
_NOBODY = "whoever operates Amends here"


def in_force(journal: Journal, statuses: frozenset[str] | None = None) -> Iterator[StoredRow]:
    """The row of every quarantine that holds a run, a page at a time; its key is the run's id."""
    after = ""
    while page := journal.rows("quarantine", statuses=statuses, active=True, after_key=after, limit=_PAGE):
        after = page[-1].key.key
        yield from page


def untold(journal: Journal) -> Iterator[StoredRow]:
    """Those of which no notice has left yet."""
    return in_force(journal, _UNTOLD)


def holds(journal: Journal, run_id: str) -> bool:
    """True while a run is quarantined."""
    stored = journal.row(RowKey("quarantine", run_id))
    return stored is not None and stored.active


def refuse(journal: Journal, run_id: str) -> None:
    """Raises `Conflict` for a quarantined run: it may read back by now, but nobody has looked."""
    if holds(journal, run_id):
        raise Conflict(
            f"run `{run_id}` is quarantined: its rows could not be read back",
            hint="look into it with `amends ledger verify`, then `amends quarantine lift RUN`",
            run_id=run_id,
        )


def owner_of(kit: Kit, run_id: str) -> str:
    """Whom to tell of a run whose rows say nothing: its owner by its first event, else the project's."""
    try:
        first = next(map(event_of, kit.journal.events(run_id, limit=1)), None)
    except CorruptLedger:
        first = None
    named = first.body.owner if first is not None and isinstance(first.body, e.RunOpened) else ""
    return named or kit.default_owner or _NOBODY


def lift(kit: Kit, book: Book, run_id: str, *, by: str, channel: str, comment: str = "") -> RunState:
    """A person lets a quarantined run be driven again.

    Raises `UnknownName` if `by` is no person of the project or the run was never quarantined, `Conflict` if somebody
    has lifted it, and `CorruptLedger` while the run does not read back as its events say: it would be quarantined
    again, or driven on what somebody wrote over it.
    """
    kit.person(by)
    stored = kit.journal.row(RowKey("quarantine", run_id))
    if stored is None:
        raise UnknownName(f"run `{run_id}` is not quarantined", hint="`amends quarantine list` shows those that are")
    _refuse_unreadable(kit.journal, run_id)
    try:
        book.record_system([e.RunQuarantineLifted(quarantined_run=run_id, by=by, channel=channel, comment=comment)])
    except IllegalTransition as error:
        raise Conflict(error.message, hint=error.hint, run_id=run_id) from error
    book.forget(run_id)
    return book.state(run_id)


def _refuse_unreadable(journal: Journal, run_id: str) -> None:
    try:
        found = state_of(journal.load(run_id))
        said = fold.replay(map(event_of, events_of(journal, run_id)))
    except (ValidationError, StopIteration, CorruptLedger, IllegalTransition) as error:
        raise _unreadable(run_id, str(error).splitlines()[0] or "a row is missing") from error
    if said is None or _own(found) != _own(said):
        raise _unreadable(run_id, "its rows are not what its events say")


def _own(state: RunState) -> tuple[object, ...]:
    """All of a run but its claims, which may have moved on to another."""
    return state.run, state.actions, state.approvals, state.escalations


def _unreadable(run_id: str, why: str) -> CorruptLedger:
    return CorruptLedger(
        f"run `{run_id}` still cannot be read back: {why}",
        hint="see `amends ledger verify`; put its rows right, from a backup or with the version that wrote them",
        run_id=run_id,
    )
