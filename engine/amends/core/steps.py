"""Steps: what a plan consists of, backward or forward. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from amends.core.canonical import Json
from amends.core.events import ProbePurpose, Verb
from amends.core.status import ParkedCause, RunStatus


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan may rest on beyond the run: ledger time, clock skew allowed, and which adapters accept the stored
    contracts.
    """

    now_us: int
    skew_us: int
    usable: frozenset[str]  # action ids whose adapter is present and accepts the contract as stored
    paused: bool = False  # a pause holds releases back (rule 15)
    check_due_us: int | None = None  # when a success check that has not passed is asked again


@dataclass(frozen=True, slots=True)
class Step:
    """One step with its reason. A wait has `due_us` if time ends it; a wait without one is ended by an event.

    Recovery knows `wait reconcile compensate correct escalate skip` (`skip` withdraws what was never sent); a
    committing run also `check ask release withdraw`, and `turn_back` for the whole run: recover, do not release.
    """

    verb: Verb
    action_id: str
    reason: str
    facts: dict[str, Json] = field(default_factory=dict[str, Json])
    due_us: int | None = None
    purpose: ProbePurpose = "reconcile"
    cause: ParkedCause = ParkedCause.UNKNOWN
    place: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order to take them; `finish` is the run's next status once no step is left to take."""

    steps: tuple[Step, ...]
    finish: RunStatus | None
    due_us: int | None

    @property
    def work(self) -> tuple[Step, ...]:
        """The steps that do something now."""
        return tuple(step for step in self.steps if step.verb != "wait")
