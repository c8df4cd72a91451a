"""A run under construction, one fact at a time: the bottom of `RunBuilder`, and facts about people and the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from amends.core import events as e
from amends.core import fold
from amends.core.canonical import Json, digest
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import RunStatus
from amends.testing.fakes import SimClock

PERSON = "Maya Lind"


class RunRecord:
    """One run under construction: `state` after all `events`. Raises what `fold.apply` raises and is unchanged then."""

    def __init__(
        self,
        clock: SimClock | None = None,
        *,
        run_id: str = "run-1",
        workflow: str = "billing-field",
        run_key: str = "key-1",
        check: str = "",
        lease_seconds: float = 30.0,
    ) -> None:
        self.clock = clock or SimClock()
        self.run_id = run_id
        self.current = ""
        self._epoch = 1
        self._made = 0
        opened = e.RunOpened(
            tenant="acme",
            workflow=workflow,
            run_key=run_key,
            agent="coder",
            initiator="user-7",
            owner=PERSON,
            check=check,
            holder=e.Holder(owner_id="owner-1", host="host-1", pid=1, owner_file="owner-1.lock"),
            lease_until_us=self.clock.now_us() + microseconds(lease_seconds),
        )
        first = e.Event(f"{run_id}-1", self.clock.now_us(), run_id, 1, "", 1, opened)
        self.events = [first]
        self.state: RunState = fold.apply(None, first)

    # --- reading ------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Ledger time: the clock's, never before the last event."""
        return max(self.clock.now_us(), self.state.run.ledger_us)

    def action(self, name: str = "") -> ActionRow:
        """The row of `name`, or of the action named last."""
        return self.state.actions[name or self.current]

    # --- the bottom: anything may be recorded -------------------------------------------------------------

    def record(self, body: e.Body, action: str | None = None) -> Self:
        """Append one fact about `action` (`None`: the one named last; empty: the run)."""
        name = self.current if action is None else action
        number = len(self.events) + 1
        event = e.Event(f"{self.run_id}-{number}", self.now_us, self.run_id, number, name, self._epoch, body)
        self.state = fold.apply(self.state, event)
        self.events.append(event)
        return self

    def on(self, name: str) -> Self:
        """Go on with another action."""
        self.current = name
        return self

    def later(self, seconds: float) -> Self:
        """Let time pass."""
        self.clock.advance(seconds)
        return self

    def fresh(self, word: str) -> str:
        """A name that no other fact of this run has."""
        self._made += 1
        return f"{word}-{self._made}"

    # --- people -------------------------------------------------------------------------------------------

    def asked(
        self, phase: Literal["forward", "undo", "release", "correct"] = "release", ttl_seconds: float = 600.0
    ) -> Self:
        """A person must approve the action named last."""
        action = self.action()
        shown: dict[str, Json] = {"action": action.capability, "args": action.args}
        return self.record(
            e.ApprovalAsked(
                approval_id=self.fresh("approval"),
                phase=phase,
                tier=1,
                shown=shown,
                digest=digest(shown),
                expires_us=self.now_us + microseconds(ttl_seconds),
            )
        )

    def approved(self, by: str = PERSON, *, tier: int = 1) -> Self:
        """One person's yes."""
        row = self.state.approvals[self.action().approval_id]
        return self.record(
            e.ApprovalGiven(approval_id=row.approval_id, by=by, tier=tier, channel="cli", digest=row.digest)
        )

    def closed(self, how: Literal["refused", "expired", "voided", "withdrawn"], *, roll_back: bool = False) -> Self:
        """No yes can come any more."""
        approval_id = self.action().approval_id
        return self.record(
            e.ApprovalClosed(approval_id=approval_id, how=how, by=PERSON, channel="cli", roll_back=roll_back)
        )

    def escalated(self, cause: str = "unknown", choices: Sequence[str] = ("accept_as_is",)) -> Self:
        """A bounded work item about the action named last."""
        return self.record(
            e.EscalationOpened(
                escalation_id=self.fresh("escalation"),
                cause=cause,
                queue="recovery",
                owner=PERSON,
                deadline_us=self.now_us + microseconds(86_400),
                known="it was sent",
                in_doubt="whether it took effect",
                proposed="look at the system",
                choices=tuple(choices),
            )
        )

    # --- the run ------------------------------------------------------------------------------------------

    def moved(self, *to: RunStatus) -> Self:
        """The run's status changed, once per given status."""
        for status in to:
            self.record(e.RunMoved(to=status, reason="test"), "")
        return self

    def claimed(self, *, dead_since_us: int | None = None) -> Self:
        """Another driver took over under the next epoch."""
        self._epoch += 1
        owner = f"owner-{self._epoch}"
        return self.record(
            e.RunClaimed(
                holder=e.Holder(owner_id=owner, host="host-1", pid=self._epoch, owner_file=f"{owner}.lock"),
                lease_until_us=self.now_us + microseconds(30),
                proof="owner_dead",
                dead_since_us=self.now_us if dead_since_us is None else dead_since_us,
            ),
            "",
        )

    def checkpoint(self, name: str) -> Self:
        """A named point to recover to."""
        return self.record(e.CheckpointReached(name=name), "")

    def targeted(self, checkpoint: str) -> Self:
        """Recovery goes back to this checkpoint only."""
        return self.record(e.RecoveryTargeted(checkpoint=checkpoint), "")

    def checked(self, answer: Literal["passed", "not_passed", "unknown"]) -> Self:
        """The success check answered."""
        return self.record(e.CheckAnswered(check=self.state.run.check, answer=answer), "")
