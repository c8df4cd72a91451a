"""Claiming: who may drive a run, until when, and how another takes over (rules 12 and 13)."""

from __future__ import annotations

import threading
from typing import Literal, TypeAlias

from amends.core import events as e
from amends.core.errors import AmendsError, Conflict, Fenced
from amends.core.rows import RunRow, RunState
from amends.core.status import ActionStatus
from amends.runtime import quarantines
from amends.runtime.book import Book, Draft
from amends.runtime.kit import Kit
from amends.runtime.sessions import Session

Proof: TypeAlias = Literal["owner_dead", "lease_over", "released", "same_process"]
_BEATS_PER_LEASE = 3


class Claims:
    """Leases of this process, renewed by one heartbeat thread."""

    def __init__(self, kit: Kit, book: Book) -> None:
        self._kit = kit
        self._book = book
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._stop = threading.Event()
        self._beating = False

    def adopt(self, session: Session) -> Session:
        """Keep a session's lease alive until it is released."""
        with self._lock:
            self._sessions[session.run_id] = session
            if not self._beating:
                self._beating = True
                self._kit.threads.beat(self._beat, "amends-heart")
        return session

    def driving(self, run_id: str) -> Session | None:
        """This process's living session of a run."""
        with self._lock:
            return self._sessions.get(run_id)

    def take(self, run_id: str) -> Session:
        """Take a run over under a new epoch. Raises `Conflict` naming the holder and until when, if it is driven, or
        if it is quarantined.
        """
        self._book.forget(run_id)
        quarantines.refuse(self._kit.journal, run_id)
        me = self._kit.owners.me()
        until = self._kit.clock.now_us() + self._kit.lease_us

        def decide(state: RunState) -> list[Draft]:
            proof = self.proof(state)
            now = max(self._kit.clock.now_us(), state.run.ledger_us)
            dead_since = self._silent_from_us(state, proof, now)
            return [Draft(e.RunClaimed(holder=me, lease_until_us=until, proof=proof, dead_since_us=dead_since))]

        epoch = self._book.state(run_id).run.epoch
        try:
            state = self._book.record(run_id, decide, epoch=epoch, event_epoch=epoch + 1)
        except Fenced:
            raise self._conflict(self._book.state(run_id).run) from None
        return self.adopt(Session(run_id, state.run.epoch, until))

    def _silent_from_us(self, state: RunState, proof: Proof, now_us: int) -> int:
        """From when the former driver provably sends nothing more. Who only let go may still have calls in flight."""
        if proof in {"owner_dead", "lease_over"}:
            return now_us
        return max([now_us, *(until + self._kit.skew_us for until in _open_deadlines(state))])

    def keep(self, session: Session) -> None:
        """Renew a lease of which less than half is left, for a driver whose heartbeat is slower than its work."""
        left = session.lease_until_us - self._kit.clock.now_us()
        if not session.closed and left < self._kit.lease_us // 2:
            self._renew(session)

    def release(self, session: Session) -> None:
        """Let go, so that the next driver needs no proof of death."""
        with self._lock:
            self._sessions.pop(session.run_id, None)
        session.closed = True

        def decide(state: RunState) -> list[Draft]:
            if state.run.terminal or state.run.epoch != session.epoch:
                return []
            return [Draft(e.LeaseReleased())]

        try:
            self._book.record(session.run_id, decide, epoch=session.epoch)
        except Fenced:
            return  # somebody else drives it already

    def close(self) -> None:
        """Stop the heartbeat and release every lease."""
        self._stop.set()
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            try:
                self.release(session)
            except AmendsError:
                continue  # the lease runs out by itself

    def holder_until_us(self, run: RunRow, state: RunState) -> int:
        """When a silent holder may be taken over: max(lease end, open call deadlines) + skew."""
        return max([run.lease_until_us, *_open_deadlines(state)]) + self._kit.skew_us

    def proof(self, state: RunState) -> Proof:
        """Why a run may be taken over now. Raises `Conflict` naming the holder if it may not."""
        run = state.run
        if not run.holder_id:
            return "released"
        me = self._kit.owners.me()
        holder = holder_of(run)
        if holder.owner_id == me.owner_id and self.driving(run.run_id) is None:
            return "same_process"
        if holder.owner_id != me.owner_id and self._kit.owners.proven_dead(holder):
            return "owner_dead"
        if self._kit.clock.now_us() >= self.holder_until_us(run, state):
            return "lease_over"
        raise self._conflict(run)

    def ends(self) -> Ends:
        """What one look over many runs needs to know of their holders."""
        return Ends(self._kit)

    def _conflict(self, run: RunRow) -> Conflict:
        return Conflict(
            f"run `{run.run_id}` is driven by process {run.holder_pid} on `{run.holder_host}`",
            hint="wait for it, or for its lease to end",
            run_id=run.run_id,
            holder=run.holder_id,
            pid=run.holder_pid,
            host=run.holder_host,
            until_us=run.lease_until_us,
        )

    def _beat(self) -> None:
        pause = self._kit.settings.lease_seconds / _BEATS_PER_LEASE
        while not self._stop.wait(pause):
            with self._lock:
                sessions = list(self._sessions.values())
            for session in sessions:
                self._renew(session)

    def _renew(self, session: Session) -> None:
        until = self._kit.clock.now_us() + self._kit.lease_us

        def decide(state: RunState) -> list[Draft]:
            return [] if state.run.terminal or session.closed else [Draft(e.LeaseRenewed(lease_until_us=until))]

        try:
            self._book.record(session.run_id, decide, epoch=session.epoch)
            session.lease_until_us = until
        except Fenced:
            session.cancelled.set()  # another driver owns the run: send nothing more
        except AmendsError:
            return  # the lease still runs; the next beat tries again


class Ends:
    """Which holders are gone, each asked once: thousands of runs may have had the same one. Good for one look over the
    runs; a claim asks again.
    """

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._dead: dict[str, bool] = {}
        self._orphaned: dict[str, bool] = {}

    def may_be_over(self, run: RunRow, now_us: int) -> bool:
        """False if the row alone shows that a living driver has the run, so that nothing else of it need be read."""
        if not run.holder_id or run.holder_id == self._kit.owners.me().owner_id:
            return True
        if now_us >= run.lease_until_us + self._kit.skew_us:
            return True
        if run.holder_id not in self._dead:
            self._dead[run.holder_id] = self._kit.owners.proven_dead(holder_of(run))
        return self._dead[run.holder_id]

    def orphaned(self, run: RunRow) -> bool:
        """True if the holder is gone while a child of its adapters still works."""
        if run.holder_id not in self._orphaned:
            self._orphaned[run.holder_id] = self._kit.owners.orphaned(holder_of(run))
        return self._orphaned[run.holder_id]


def _open_deadlines(state: RunState) -> list[int]:
    return [a.deadline_us or 0 for a in state.actions.values() if a.status is ActionStatus.RUNNING]


def holder_of(run: RunRow) -> e.Holder:
    """Who drives a run, as recorded at its last take-over."""
    return e.Holder(owner_id=run.holder_id, host=run.holder_host, pid=run.holder_pid, owner_file=run.owner_file)
