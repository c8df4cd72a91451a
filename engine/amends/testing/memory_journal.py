"""The journal's fake: the whole port in memory, for tests that need no disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from amends.core.errors import AmendsError, CallerError, ConfigError, CorruptLedger, InvalidInput
from amends.core.events import LEDGER_FORMAT
from amends.core.rows import RowKind
from amends.ports.chain import audit, broken_link
from amends.ports.journal import (
    GENESIS_HASH,
    Commit,
    CommitAnswer,
    Committed,
    EventRecord,
    Head,
    JournalInfo,
    Refused,
    RowKey,
    RowWrite,
    Seal,
    StoredEvent,
    StoredRow,
    Trim,
    check_shape,
    moved_on,
    next_hash,
)


class MemoryJournal:
    """Keeps every promise of `amends.ports.journal.Journal` but durability.

    `fails_before` is raised by every method while set (the disk is gone); `fails_after` is raised by `commit` once
    it has stored (the answer is lost).
    """

    def __init__(self, *, generation: str = "memory") -> None:
        self.fails_before: AmendsError | None = None
        self.fails_after: AmendsError | None = None
        self._generation = generation
        self._lock = threading.RLock()
        self._events: list[StoredEvent] = []
        self._ids: set[str] = set()
        self._heads: dict[str, Head] = {}
        self._rows: dict[RowKey, StoredRow] = {}
        self._seals: dict[str, Seal] = {}
        self._last = (0, GENESIS_HASH)
        self._count = 0
        self._closed = False

    @classmethod
    def from_backup(cls, path: str) -> MemoryJournal:
        """The journal that `backup` wrote to `path`. Raises `ConfigError` for an unknown format."""
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        if held["format"] != LEDGER_FORMAT:
            raise ConfigError(f"`{path}` has ledger format {held['format']}", hint="use the engine that wrote it")
        journal = cls(generation=held["generation"])
        for seq, event, prev_hash, link in held["events"]:
            journal._append(StoredEvent(seq, EventRecord(**event), prev_hash, link))
        for row in held["rows"]:
            key = RowKey(**row.pop("key"))
            journal._rows[key] = StoredRow(key=key, **row)
        journal._heads = {stream: Head(**head) for stream, head in held["heads"].items()}
        journal._seals = {seal["file"]: Seal(**seal) for seal in held["seals"]}
        journal._last, journal._count = tuple(held["last"]), held["count"]
        return journal

    def commit(self, command: Commit) -> CommitAnswer:
        self._usable()
        check_shape(command)
        with self._lock:
            refused = self._refusal(command)
            if refused is not None:
                return refused
            first = self._last[0] + 1
            for event in command.events:
                head = self._heads.get(command.stream)
                prev_hash = head.hash if head else GENESIS_HASH
                link = next_hash(prev_hash, event.digest)
                self._append(StoredEvent(self._last[0] + 1, event, prev_hash, link))
            for write in command.rows:
                self._rows[write.key] = _stored(write, self._version(write.key) + 1)
            if self.fails_after is not None:
                raise self.fails_after
            return Committed(first, self._last[0])

    def load(self, run_id: str) -> tuple[StoredRow, ...]:
        self._usable()
        with self._lock:
            return _in_order(row for row in self._rows.values() if row.run_id == run_id)

    def row(self, key: RowKey) -> StoredRow | None:
        self._usable()
        with self._lock:
            return self._rows.get(key)

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
        self._usable()
        with self._lock:
            found = _in_order(
                row
                for row in self._rows.values()
                if row.key.kind == kind
                and row.key.key > after_key
                and (statuses is None or row.status in statuses)
                and (active is None or row.active is active)
                and (due_before_us is None or row.due_us is None or row.due_us <= due_before_us)
            )
        return found[:limit]

    def events(self, stream: str, *, after_run_seq: int = 0, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        self._usable()
        with self._lock:
            found = [e for e in self._events if e.event.run_id == stream and e.event.run_seq > after_run_seq]
        found = sorted(found, key=lambda stored: stored.event.run_seq)[:limit]
        for stored in found:
            problem = broken_link(stored)
            if problem:
                raise CorruptLedger(
                    f"event seq {stored.seq} {problem}", hint="run `amends ledger verify`", seq=stored.seq
                )
        return tuple(found)

    def events_after(self, seq: int, *, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        self._usable()
        with self._lock:
            return tuple(stored for stored in self._events if stored.seq > seq)[:limit]

    def info(self) -> JournalInfo:
        self._usable()
        with self._lock:
            return JournalInfo(self._generation, LEDGER_FORMAT, *self._last, self._count, "memory")

    def verify(self) -> tuple[str, ...]:
        self._usable()
        with self._lock:
            events = sorted(self._events, key=lambda stored: (stored.event.run_id, stored.event.run_seq))
            return tuple(audit(events, dict(self._heads), list(self._rows.values()), self.info(), self.seals()))

    def trim(self, command: Trim) -> None:
        self._usable()
        with self._lock:
            if command.seal.file in self._seals:
                return
            for run_id, end in command.ends.items():
                if self._heads.get(run_id) != end:
                    raise moved_on(run_id, command.seal.file)
            gone = command.ends.keys()
            self._ids -= {stored.event.event_id for stored in self._events if stored.event.run_id in gone}
            self._events = [stored for stored in self._events if stored.event.run_id not in gone]
            self._rows = {k: row for k, row in self._rows.items() if k.kind == "claim" or row.run_id not in gone}
            for run_id, end in command.ends.items():
                self._heads[run_id] = replace(end, sealed=command.seal.file)
            self._seals[command.seal.file] = command.seal
            for write in command.rows:
                self._rows[write.key] = _stored(write, self._version(write.key) + 1)

    def seals(self) -> tuple[Seal, ...]:
        self._usable()
        with self._lock:
            return tuple(sorted(self._seals.values(), key=lambda seal: (seal.first_seq, seal.file)))

    def backup(self, path: str) -> JournalInfo:
        self._usable()
        if Path(path).exists():
            raise InvalidInput(f"`{path}` exists already", hint="name a new file")
        with self._lock:
            generation = f"{self._generation}-copy"
            held = {
                "generation": generation,
                "format": LEDGER_FORMAT,
                "events": [(e.seq, asdict(e.event), e.prev_hash, e.hash) for e in self._events],
                "heads": {stream: asdict(head) for stream, head in self._heads.items()},
                "seals": [asdict(seal) for seal in self._seals.values()],
                "last": self._last,
                "count": self._count,
                "rows": [asdict(row) for row in self._rows.values()],
            }
            info = JournalInfo(generation, LEDGER_FORMAT, *self._last, self._count, path)
        Path(path).write_text(json.dumps(held), encoding="utf-8")
        return info

    def close(self) -> None:
        self._closed = True

    def _usable(self) -> None:
        if self._closed:
            raise CallerError("the journal is closed", hint="open a new engine")
        if self.fails_before is not None:
            raise self.fails_before

    def _refusal(self, command: Commit) -> Refused | None:
        for key in command.forbidden:
            row = self._rows.get(key)
            if row is not None and row.active:
                return Refused("forbidden", f"{key.kind} `{key.key}` is active", row)
        run = self._rows.get(RowKey("run", command.stream))
        if run is not None and command.epoch is not None and run.epoch != command.epoch:
            return Refused("stale_epoch", f"epoch is {run.epoch}, not {command.epoch}", run)
        if run is not None and command.allowed_statuses is not None and run.status not in command.allowed_statuses:
            return Refused("status", f"run is `{run.status}`", run)
        head = self._heads.get(command.stream)
        if head is not None and head.sealed:
            return Refused("status", f"run is sealed in `{head.sealed}`", run)
        place = head.run_seq if head else 0
        if place != command.expected_head:
            return Refused("head_moved", f"head is {place}, not {command.expected_head}", run)
        for event in command.events:
            if event.event_id in self._ids:
                return Refused("head_moved", f"event {event.event_id} is stored already", run)
        for key, version in command.expected_versions.items():
            if self._version(key) != version:
                return Refused(
                    "row_changed",
                    f"{key.kind} `{key.key}` is at version {self._version(key)}, not {version}",
                    self._rows.get(key),
                )
        if command.wanted is not None and not command.wanted():
            return Refused("unwanted", "the caller gave up")
        return None

    def _append(self, stored: StoredEvent) -> None:
        self._events.append(stored)
        self._ids.add(stored.event.event_id)
        self._heads[stored.event.run_id] = Head(stored.event.run_seq, stored.hash)
        self._last = (stored.seq, stored.hash)
        self._count += 1

    def _version(self, key: RowKey) -> int:
        row = self._rows.get(key)
        return row.version if row else 0


def _stored(write: RowWrite, version: int) -> StoredRow:
    return StoredRow(
        write.key, write.run_id, write.status, write.body, write.epoch, write.due_us, write.active, version
    )


def _in_order(rows: Iterable[StoredRow]) -> tuple[StoredRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.key.kind, row.key.key)))
