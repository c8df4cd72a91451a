"""Where in the life of a call or a recovery a process is, told from the milestones it announced."""

from __future__ import annotations

from typing import Literal, TypeAlias

from amends.ports.services import Milestone

Gap: TypeAlias = Literal[
    "between",  # nothing of ours under way: between two steps
    "intent",  # authorized, the intent not durable yet
    "pre-send",  # the intent is durable, no byte has left
    "in-call",  # the request may be on its way, at work or answered
    "pre-outcome",  # the answer is known to the process, and to nobody else
    "freeze",  # no forward intent passes any more, nothing is taken back yet
    "probe",  # reading the real system about an unknown outcome
    "undo",  # looking before an undo, sending it, recording its answer
    "verify",  # the separate read after an undo
    "correction",  # telling people
]
KitPoint: TypeAlias = Literal[  # what the kit announces itself, at the ports an engine stands on
    "after_last_check",  # the last check has passed, no byte has left
    "before_authorize",
    "after_authorize",
    "before_renewal",  # of the lease
    "after_renewal",
    "before_approval",  # a person's yes
    "after_approval",
    "before_mirror",
    "in_mirror",  # the mirror's lock is held, half a transaction is in the ledger
    "after_mirror",
    "before_seal",
    "in_seal",  # the archive's file is durable, and no seal names it yet
    "after_seal",
    "in_checkpoint",  # the journal's lock is held
]
Point: TypeAlias = Milestone | KitPoint
GAPS: tuple[Gap, ...] = ("pre-send", "in-call", "pre-outcome", "freeze", "undo", "verify", "correction")

_FORWARD: dict[Point, Gap] = {
    "before_intent": "intent",
    "after_intent": "pre-send",
    "before_call": "pre-send",
    "after_call": "pre-outcome",
    "before_outcome": "pre-outcome",
    "after_outcome": "between",
}
_RECOVERY: dict[Point, Gap] = {
    "after_freeze": "freeze",
    "before_undo": "undo",
    "after_undo": "undo",
    "before_verify": "verify",
    "after_verify": "verify",
    "before_correction": "correction",
    "after_correction": "correction",
    "settled": "between",
}
_ENCLOSING: frozenset[Gap] = frozenset({"undo", "verify", "correction"})  # they contain probes and calls of their own


class GapTracker:
    """Follows one process's announcements. `released` says that it was let go on after its last one."""

    def __init__(self) -> None:
        self._gap: Gap = "between"
        self._last: Point | None = None
        self._released = False

    def hear(self, milestone: Point) -> Gap:
        """Take an announcement; answers where the process is now."""
        self._last, self._released = milestone, False
        self._gap = self._next(milestone)
        return self._gap

    def release(self) -> None:
        """The process goes on from its last announcement."""
        self._released = True

    @property
    def gap(self) -> Gap:
        """Where the process is: past `before_call` it may be in the call at any moment."""
        if self._released and self._last in {"before_call", "after_last_check"} and self._gap == "pre-send":
            return "in-call"
        return self._gap

    def _next(self, milestone: Point) -> Gap:
        if milestone in _RECOVERY:
            return _RECOVERY[milestone]
        if milestone == "after_plan":
            return "freeze" if self._gap == "freeze" else "between"
        if self._gap in _ENCLOSING:
            return self._gap
        if milestone in {"before_probe", "after_probe"}:
            return "probe"
        return _FORWARD.get(milestone, self._gap)
