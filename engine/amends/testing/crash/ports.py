"""The points an engine cannot announce itself: the kit fills the ports it stands on, and announces what passes there.

Only the family of the point that a child is to be stopped at is announced: nobody else waits for the killer.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from amends import bootstrap
from amends.bootstrap.wiring import wired
from amends.core.evidence import Decision
from amends.ports.authorizer import AuthorizationRequest, Authorizer
from amends.ports.journal import Commit, CommitAnswer, Journal, StoredEvent, Trim
from amends.ports.services import Milestone
from amends.runtime import sealing
from amends.spi import Call, Receipt
from amends.testing.crash.gaps import KitPoint
from amends.testing.crash.line import Line

_AUTHORIZED = frozenset({"forward", "undo", "release"})
_COMMITTED = {"lease_renewed": "renewal", "approval_given": "approval"}
_WAIT_SECONDS = 20.0


def opened(project: Path, line: Line, announced: str, *, at: Milestone = "after_outcome") -> bootstrap.Engine:
    """A whole engine on `line` that also announces the family of `announced` (empty: none). What a driving thread does
    not do by itself (mirror, seal, wait for a renewal), it does at each milestone `at`; none between a plan and what it
    orders, as a renewal there makes the plan one of the past, each time. Raises as `Engine.open`.
    """
    family = announced.partition("_")[2]
    connections = _connections() if family == "checkpoint" else []
    upkeep = _Upkeep(line, at)
    wiring = wired(bootstrap.settings_of(project), upkeep, whole=True, mirror=False)
    for connection in connections:
        connection.set_trace_callback(partial(_begun, line))
    kit = wiring.kit
    beat = _Beat()
    if family in {"renewal", "approval", "mirror", "seal"}:
        kit = replace(kit, journal=cast("Journal", _Journal(kit.journal, line, family, beat)))
    if family == "authorize":
        kit = replace(kit, authorizer=cast("Authorizer", _Authorizer(kit.authorizer, line)))
    engine = bootstrap.Engine(replace(wiring, kit=kit))
    if announced == "after_last_check":
        for offer in engine.kit.catalog.all():
            object.__setattr__(offer.capability, "do", partial(_checked, line, offer.capability.do))
            object.__setattr__(offer.capability, "undo", partial(_checked, line, offer.capability.undo))
    match family:
        case "mirror":
            upkeep.work = partial(_mirror, engine, line)
        case "seal":
            upkeep.work = partial(_seal, engine, line)
        case "renewal":
            upkeep.work = beat.wait
        case _:
            pass
    return engine


def _say(line: Line, point: str) -> None:
    line.reached(cast("KitPoint", point), "", "")


def _checked(line: Line, send: Callable[[Call], Receipt], call: Call) -> Receipt:
    """An adapter has asked for the last time whether to send, and was told yes."""

    def wanted() -> bool:
        if not call.still_wanted():
            return False
        line.reached("after_last_check", "", call.marker)
        return True

    return send(replace(call, still_wanted=wanted))


# --- what a driving thread does between two steps -------------------------------------------------------------


class _Upkeep:
    """The line's `Progress`, with work at one of the milestones. What the work itself reaches is not announced."""

    def __init__(self, line: Line, at: Milestone) -> None:
        self._line = line
        self._at = at
        self._busy = False
        self.work: Callable[[], None] | None = None

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Announce, wait, and work."""
        if self._busy:
            return
        self._line.reached(milestone, run_id, action_id)
        if milestone == self._at and self.work is not None:
            self._busy = True
            try:
                self.work()
            finally:
                self._busy = False


def _mirror(engine: bootstrap.Engine, line: Line) -> None:
    _say(line, "before_mirror")
    engine.ledger.refresh()
    _say(line, "after_mirror")


def _seal(engine: bootstrap.Engine, line: Line) -> None:
    """A run of its own ends, and is sealed while others are under way."""
    key = f"old-{os.getpid()}-{engine.kit.ids.new()}"
    with engine.run(workflow="upkeep", run_key=key, agent="bot"):
        pass
    _say(line, "before_seal")
    archive = bootstrap.archive_of(engine.settings.folder)
    sealing.seal(engine.kit.journal, archive, now_us=engine.kit.clock.now_us(), keep_us=0)
    _say(line, "after_seal")


class _Beat:
    """Lets a driving thread stand still for one renewal by the heartbeat's thread. No other one counts: how many pass
    while the driver works is the machine's business, and where the driver stands then is anybody's guess.
    """

    def __init__(self) -> None:
        self._awaited = threading.Semaphore(0)
        self._over = threading.Event()

    def wait(self) -> None:
        """Until one renewal has begun and ended."""
        self._over.clear()
        self._awaited.release()
        if not self._over.wait(_WAIT_SECONDS):
            self._awaited.acquire(blocking=False)

    def begun(self) -> bool:
        """True if this renewal is the one that is waited for."""
        return self._awaited.acquire(blocking=False)

    def ended(self) -> None:
        """The one that was waited for is over, recorded or refused."""
        self._over.set()


# --- ports ----------------------------------------------------------------------------------------------------


class _Authorizer:
    """Announces the decisions about what changes something."""

    def __init__(self, inner: Authorizer, line: Line) -> None:
        self._inner = inner
        self._line = line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def decide(self, request: AuthorizationRequest) -> Decision:
        """As the port says."""
        if request.phase not in _AUTHORIZED:
            return self._inner.decide(request)
        _say(self._line, "before_authorize")
        decision = self._inner.decide(request)
        _say(self._line, "after_authorize")
        return decision


class _Journal:
    """Announces the commits of a family, the mirror's reading, and the trimming of what is sealed."""

    def __init__(self, inner: Journal, line: Line, family: str, beat: _Beat) -> None:
        self._inner = inner
        self._line = line
        self._family = family
        self._beat = beat

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def commit(self, command: Commit) -> CommitAnswer:
        """As the port says."""
        if not any(_COMMITTED.get(event.kind) == self._family for event in command.events):
            return self._inner.commit(command)
        if self._family == "renewal" and not self._beat.begun():
            return self._inner.commit(command)
        try:
            _say(self._line, f"before_{self._family}")
            answer = self._inner.commit(command)
            _say(self._line, f"after_{self._family}")
        finally:
            self._beat.ended()
        return answer

    def events_after(self, seq: int, *, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """As the port says: nobody but the mirror reads so."""
        found = self._inner.events_after(seq, limit=limit)
        if self._family == "mirror" and len(found) > 1:  # one alone is compared, not copied
            _say(self._line, "in_mirror")
        return found

    def trim(self, command: Trim) -> None:
        """As the port says."""
        if self._family == "seal":
            _say(self._line, "in_seal")
        self._inner.trim(command)


def _connections() -> list[Any]:
    """Of every SQLite connection opened from now on, as Python tells of it; it is usable once its opening is over."""
    made: list[Any] = []

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            made.append(arguments[0])

    sys.addaudithook(heard)
    return made


def _begun(line: Line, statement: str) -> None:
    if "wal_checkpoint" in statement:
        _say(line, "in_checkpoint")
