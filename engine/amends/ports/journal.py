"""The journal: the durable, append-only truth. It stores events and rows and knows nothing of what they mean.

One conformance suite (`tests/conformance/journal`) runs over every implementation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol, TypeAlias

from amends.core.errors import Conflict, InternalError, InvalidInput
from amends.core.rows import RowKind

GENESIS_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class RowKey:
    """Names one row."""

    kind: RowKind
    key: str


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event as columns (DESIGN section 6). `seal` fills `digest`, which covers all others; the journal adds
    `seq` and the chain.
    """

    event_id: str
    ts_us: int
    run_id: str
    run_seq: int
    action_id: str
    slot: str
    generation: int
    attempt: int
    epoch: int
    kind: str
    status: str
    outcome: str
    capability: str
    system: str
    provider: str
    tenant: str
    workflow: str
    policy_version: str
    decision_id: str
    payload: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the journal: `seq` is its place in the whole ledger, the hashes chain it within its stream."""

    seq: int
    event: EventRecord
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class RowWrite:
    """A row to store. `status`, `epoch`, `due_us` and `active` are the only columns a journal may look at."""

    key: RowKey
    run_id: str
    status: str
    body: str
    epoch: int = 0
    due_us: int | None = None
    active: bool = True  # a lifted pause or a released claim is kept, inactive


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row as stored. `version` counts its writes, from 1."""

    key: RowKey
    run_id: str
    status: str
    body: str
    epoch: int
    due_us: int | None
    active: bool
    version: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One all-or-nothing append of one or more sealed events, computed from a known state of one stream.

    `expected_head` is the stream's last `run_seq` the events were computed from (0: a new stream). `epoch` and
    `allowed_statuses` are compared with the stream's run row, if it has one (`None`: not compared).
    `expected_versions` names rows shared between runs (0: must not exist). No row of `forbidden` may be active.
    `wanted` is asked under the write lock, last of all: False refuses the commit (the caller gave up).
    """

    stream: str
    expected_head: int
    events: Sequence[EventRecord]
    rows: Sequence[RowWrite] = ()
    epoch: int | None = None
    allowed_statuses: frozenset[str] | None = None
    expected_versions: dict[RowKey, int] = field(default_factory=dict[RowKey, int])
    forbidden: Sequence[RowKey] = ()
    wanted: Callable[[], bool] | None = None


RefusalReason: TypeAlias = Literal["head_moved", "stale_epoch", "status", "row_changed", "forbidden", "unwanted"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is durable; `first_seq` is the ledger place of its first event."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of the commit was stored. `detail` names the row, status, epoch or head found instead."""

    reason: RefusalReason
    detail: str = ""
    row: StoredRow | None = None


CommitAnswer: TypeAlias = Committed | Refused


@dataclass(frozen=True, slots=True)
class Head:
    """Where a stream ends, as the journal remembers it beside the events. `sealed` names the archive file that holds
    the stream's events; empty: the journal holds them.
    """

    run_seq: int
    hash: str
    sealed: str = ""


@dataclass(frozen=True, slots=True)
class Seal:
    """What a journal keeps of whole runs that went into one archive file. Some of the `seq` between first and last
    belong to other runs.
    """

    file: str
    first_seq: int
    last_seq: int
    last_hash: str  # of the event at `last_seq`
    runs: int
    events: int
    size_bytes: int
    sha256: str  # of the file


@dataclass(frozen=True, slots=True)
class Trim:
    """Let go of runs whose events are durable in `seal`'s file. `ends`: where each ends there. `rows` are what stays to
    be found of them.
    """

    seal: Seal
    ends: Mapping[str, Head]
    rows: Sequence[RowWrite] = ()


@dataclass(frozen=True, slots=True)
class JournalInfo:
    """What identifies a journal's content: compared by the mirror at start-up."""

    generation: str  # a random id given at creation; a restored or replaced journal has another
    format: int
    max_seq: int
    max_hash: str
    events: int  # ever committed: those in archive files count
    location: str


class Journal(Protocol):
    """Durable appends with compare-and-set, and short reads. Safe for threads and processes of a host.

    Errors of every method: `JournalBusy` (the write lock is held too long; the message names the holder's pid),
    `JournalUnavailable` (cannot write or read: disk full, read-only, gone), `CorruptLedger` (what was read is not
    what was written). A commit that raised stored nothing, or its events are found again by `event_id`: appending
    an event twice is answered with `Refused("head_moved")`.
    """

    def commit(self, command: Commit) -> CommitAnswer:
        """Append; returns only when durable. Commands queued at once share one transaction, each with its own
        answer: a refused one harms no other. Checks, in this order: forbidden, epoch, status (a sealed stream has none
        that is allowed), head, versions, wanted.
        Raises `InternalError` for a commit that `check_shape` refuses, and whatever `wanted` raised.
        """
        ...

    def load(self, run_id: str) -> tuple[StoredRow, ...]:
        """All rows of a run, one snapshot; actions in order of their key (UUIDv7: registration). Empty if unknown."""
        ...

    def row(self, key: RowKey) -> StoredRow | None:
        """One row."""
        ...

    def rows(
        self,
        kind: RowKind,
        *,
        statuses: frozenset[str] | None = None,
        due_before_us: int | None = None,
        active: bool | None = None,
        after_key: str = "",
        limit: int = 1000,
    ) -> tuple[StoredRow, ...]:
        """Rows of a kind in key order. `due_before_us` keeps rows whose `due_us` is unset or not later."""
        ...

    def events(self, stream: str, *, after_run_seq: int = 0, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Events of one stream in order, each checked against its digest and link: `CorruptLedger` if one differs."""
        ...

    def events_after(self, seq: int, *, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Events of the whole ledger in order of `seq`, as stored and unchecked: a corrupt one never blocks the
        mirror, which compares each with `event_digest` and reports it.
        """
        ...

    def info(self) -> JournalInfo:
        """Identity and extent of the content."""
        ...

    def trim(self, command: Trim) -> None:
        """Remove the events of these runs and all their rows but claims (a run key is never used again), and keep the
        seal, the runs' heads and the given rows: all in one transaction. A seal that is kept already is left as it is.
        Raises `Conflict`, and removes nothing, if a run does not end where the seal says.
        """
        ...

    def seals(self) -> tuple[Seal, ...]:
        """Every archive file that runs of this journal went into, in order of `first_seq`."""
        ...

    def verify(self) -> tuple[str, ...]:
        """Every inconsistency found (chain, density, heads, format) in words; empty if sound. Never skips a row."""
        ...

    def backup(self, path: str) -> JournalInfo:
        """A consistent copy at `path`, taken while in use, under a generation of its own. Raises `InvalidInput` if
        something is there already.
        """
        ...

    def close(self) -> None:
        """Drain, checkpoint, release. Idempotent; the journal cannot be used afterwards."""
        ...


EVENT_COLUMNS: tuple[str, ...] = tuple(column.name for column in fields(EventRecord))
_DIGESTED = tuple(name for name in EVENT_COLUMNS if name != "digest")


def event_digest(event: EventRecord) -> str:
    """SHA-256 over all columns but `digest`, as one RFC 8785 object. Raises `InvalidInput` if text is not Unicode."""
    text = json.dumps(
        {name: getattr(event, name) for name in _DIGESTED},
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=True,
    )
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"event `{event.kind}` holds a lone surrogate", hint="send valid Unicode", event_id=event.event_id
        ) from None


def seal(event: EventRecord) -> EventRecord:
    """The event with its digest, ready to be committed."""
    return replace(event, digest=event_digest(event))


def next_hash(prev_hash: str, event_digest: str) -> str:
    """The chain's hash after an event: SHA-256 over the hash before it and the event's digest, both in hex."""
    return hashlib.sha256((prev_hash + event_digest).encode()).hexdigest()


def check_shape(command: Commit) -> None:
    """Raise `InternalError` unless the events are one stream's, dense from `expected_head`, sealed and distinct."""
    events = command.events
    if not events:
        raise InternalError("a commit has no event", hint="rows change only with the event that changes them")
    for place, event in enumerate(events, command.expected_head + 1):
        if event.run_id != command.stream or event.run_seq != place:
            raise InternalError(
                f"event `{event.kind}` says run `{event.run_id}` place {event.run_seq}, but belongs to "
                f"`{command.stream}` place {place}",
                hint="compute the events from the stream's head",
            )
        if event.digest != event_digest(event):
            raise InternalError(f"event `{event.kind}` is not sealed", hint="pass it through `seal`")
    if len({event.event_id for event in events}) != len(events):
        raise InternalError("two events of a commit bear one id", hint="take each id from `Ids.new`")


def moved_on(run_id: str, file: str) -> Conflict:
    """Why a run is not trimmed: it is not, or not any more, what went into the file."""
    return Conflict(f"run `{run_id}` does not end where `{file}` says", hint="seal again", run_id=run_id)
