"""Reopening: parked actions that automation may take up again without a person (rule 22).

A denial reopens under a new bundle, a missing adapter when it is back, `unknown` on late evidence that a stale driver
left; everything else through a person (`escalations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amends.core import events as e
from amends.core import outcomes
from amends.core.rows import ActionRow, RunRow, RunState
from amends.core.status import ActionStatus, ParkedCause, RunStatus
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit

_MOST = 100_000  # waiting runs remembered; one that is forgotten is looked into once more
_BY_POLICY = frozenset({ParkedCause.DENIED, ParkedCause.POLICY_CHANGED})


@dataclass(frozen=True)
class Reopener:
    """Wakes runs that wait for a person although the obstacle is gone."""

    kit: Kit
    book: Book
    escalations: Escalations
    looked: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    def has_news(self, run: RunRow) -> bool:
        """False if this process has looked into a waiting run as it is now, under the policies of now: thousands may
        wait, and nothing but an event or another bundle wakes one.
        """
        return self.looked.get(run.run_id) != (run.head, self.kit.authorizer.bundle().effective_digest)

    def reopen(self, run_id: str) -> bool:
        """Reopen what may be; True if the run goes on. Unfenced, like every decision that wakes a run (rule 31)."""

        def decide(state: RunState) -> list[Draft]:
            if state.run.status is not RunStatus.NEEDS_HUMAN:
                return []
            drafts: list[Draft] = []
            for action in state.actions.values():
                told, reason = self._news(state, action)
                if told is not None:
                    drafts.append(Draft(told, action.action_id))
                    drafts += self.escalations.closed(state, action.action_id, reason)
            return [*drafts, *self.escalations.waking(state, "the obstacle is gone")] if drafts else []

        before = self.book.state(run_id).run.head
        digest = self.kit.authorizer.bundle().effective_digest
        after = self.book.record(run_id, decide).run.head
        if len(self.looked) >= _MOST:
            self.looked.clear()
        self.looked[run_id] = (after, digest)
        return after > before

    def _news(self, state: RunState, action: ActionRow) -> tuple[e.Body | None, str]:
        """What became known or possible since the action was parked, and in words."""
        folded = outcomes.folded_late(action, at_us=self.kit.ledger_now_us(state.run))
        if folded is not None:
            return folded, "late evidence settles what was in doubt"
        reason = self._obstacle_gone(state, action)
        return (e.ActionReopened(reason=reason) if reason else None), reason

    def _obstacle_gone(self, state: RunState, action: ActionRow) -> str:
        if action.status is not ActionStatus.NEEDS_HUMAN:
            return ""
        if action.parked_cause is ParkedCause.ADAPTER_UNAVAILABLE and self._served(state, action):
            return "its adapter is back"
        if action.parked_cause in _BY_POLICY and self._judged_by_another_bundle(state, action):
            return "the policy bundle has changed"
        return ""

    def _served(self, state: RunState, action: ActionRow) -> bool:
        if action.adapter:
            return self.kit.catalog.usable(action)
        return self.kit.catalog.corrector(action.place, [state.actions[name] for name in action.covers]) is not None

    def _judged_by_another_bundle(self, state: RunState, action: ActionRow) -> bool:
        undos = [undo.decided for undo in state.undos_of(action.action_id) if undo.decided is not None]
        last = undos[-1] if undos else action.decided
        return last is not None and last.effective_digest != self.kit.authorizer.bundle().effective_digest
