"""Intending: a registered action on its way to its call: people asked where they must be, policy asked at the moment of
sending, and the intent of one attempt written once (rules 1, 5, 29 and 30).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from amends.core import events as e
from amends.core.contract import Phase
from amends.core.evidence import Decision
from amends.core.rows import ActionRow, ApprovalRow, RunRow, RunState
from amends.core.status import ActionStatus, RunStatus
from amends.runtime import drafting
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy, subject_of
from amends.runtime.book import Book, Draft
from amends.runtime.drafting import Reading
from amends.runtime.flights import describe
from amends.runtime.kit import Kit
from amends.runtime.preparing import Preparing
from amends.runtime.results import CallResult, result_of
from amends.runtime.sending import pause_keys
from amends.runtime.sessions import Session

OPEN = frozenset({RunStatus.OPEN})
_S = ActionStatus


@dataclass(frozen=True, slots=True)
class ToSend:
    """A durable intent whose call is still to be made."""

    action_id: str


Begun: TypeAlias = ToSend | CallResult


@dataclass(frozen=True)
class Intending:
    """Second half of a forward call: from the registered action to the durable intent."""

    kit: Kit
    book: Book
    policy: Policy
    preparing: Preparing
    approvals: Approvals

    def again(self, session: Session, state: RunState, action: ActionRow, wanted: Callable[[], bool]) -> Begun:
        """The same generation and key, after a proof that nothing landed (rule 5); people are asked again if what they
        approved has changed since.
        """
        read = self._read(state.run, action)
        if isinstance(read, str):
            return result_of(action, repeated=True, reason=read)
        if self.approvals.outdated(state, action, read.content_digest):
            state = self.approvals.void(session.run_id, action.action_id, session.epoch)
            return self.ask_first(session, state, state.actions[action.action_id], read)
        decision, phase = self._may_send(state, action, read)
        if decision.allowed:
            return self._intend(session, action, decision, phase, read, wanted)
        drafts = [Draft(e.DecisionRecorded(phase=phase, decision=decision), action.action_id)]
        state = self.book.record(session.run_id, lambda _: drafts, epoch=session.epoch, allowed=OPEN)
        return result_of(
            state.actions[action.action_id], repeated=True, reason="; ".join(decision.reasons) or decision.code
        )

    def ask_first(self, session: Session, state: RunState, action: ActionRow, prepared: Reading | None) -> CallResult:
        """A gate, or a forward call for which policy wants a person's yes: they are asked about what is there now."""
        read = prepared or self._read(state.run, action)
        if isinstance(read, str):
            return result_of(action, repeated=True, reason=read)
        decision, phase = self._may_send(state, action, read)
        if decision.allowed:  # the contract asks for a person even where policy does not
            decision = decision.model_copy(update={"verdict": "needs_approval", "tier": max(decision.tier, 1)})
        state = self.approvals.ask_or_deny(
            session.run_id,
            action.action_id,
            decision,
            phase,
            session.epoch,
            allowed=OPEN,
            content_digest=read.content_digest,
        )
        return result_of(state.actions[action.action_id])

    def after_approval(self, session: Session, action_id: str, wanted: Callable[[], bool]) -> Begun:
        """Go on with an action that awaits approval, if people have said yes to what it is now."""
        state = self.book.state(session.run_id)
        action = state.actions[action_id]
        approval = state.approvals.get(action.approval_id)
        if action.status is not _S.AWAITING_APPROVAL or approval is None or state.run.status is not RunStatus.OPEN:
            return result_of(action, repeated=True)
        over = approval.status == "approved" and self.kit.ledger_now_us(state.run) >= approval.expires_us
        if over or approval.status in {"expired", "voided"}:
            return self.ask_first(session, state, action, None)
        if approval.status != "approved":
            return result_of(action, repeated=True)
        return self._approved(session, state, action, approval, wanted)

    def _approved(
        self,
        session: Session,
        state: RunState,
        action: ActionRow,
        approval: ApprovalRow,
        wanted: Callable[[], bool],
    ) -> Begun:
        read = self._read(state.run, action)
        if isinstance(read, str):
            return result_of(action, repeated=True, reason=read)
        decision, phase = self._may_send(state, action, read)
        now = action.model_copy(update={"content_digest": read.content_digest})
        if approval.digest != self.policy.binding(state, now, phase):
            state = self.approvals.void(session.run_id, action.action_id, session.epoch)
            return self.ask_first(session, state, state.actions[action.action_id], read)
        if decision.allowed:
            return self._intend(session, action, decision, phase, read, wanted)
        state = self.approvals.policy_changed(session.run_id, action.action_id, decision, phase, session.epoch)
        return result_of(state.actions[action.action_id])

    def _read(self, run: RunRow, action: ActionRow) -> Reading | str:
        try:
            return self.preparing.again(run, action)
        except Exception as error:  # noqa: BLE001 - rule 2: nothing was sent; it may be tried again
            return f"what it is about cannot be read: {describe(error, self.kit.secrets)}"

    def _may_send(self, state: RunState, action: ActionRow, read: Reading) -> tuple[Decision, Phase]:
        """Policy at the moment of sending, with the approval and what was read just now as evidence (rule 30)."""
        approval = state.approvals.get(action.approval_id)
        action = action.model_copy(update={"subject_digest": read.subject_digest or action.subject_digest})
        if action.contract.release is not None:
            return self.policy.release(state, action, approval), "release"
        return self.policy.forward(state.run, subject_of(action), approval), "forward"

    def _intend(
        self,
        session: Session,
        action: ActionRow,
        decision: Decision,
        phase: Phase,
        prepared: Reading,
        wanted: Callable[[], bool],
    ) -> Begun:
        """Write the intent, unless somebody else has moved the action since it was looked at."""
        self.kit.progress.reached("before_intent", session.run_id, action.action_id)
        written: list[bool] = []

        def decide(state: RunState) -> list[Draft]:
            now = state.actions[action.action_id]
            written[:] = [now.status is action.status and now.attempt == action.attempt]
            if not written[0]:
                return []
            intent = drafting.next_intent(now, prepared, decision, now.approval_id)
            return [
                Draft(e.DecisionRecorded(phase=phase, decision=decision), now.action_id),
                Draft(intent, now.action_id),
            ]

        state = self.book.record(
            session.run_id,
            decide,
            epoch=session.epoch,
            allowed=OPEN,
            forbidden=pause_keys(self.book.state(session.run_id).run),
            wanted=wanted,
        )
        if not written[0]:
            return result_of(state.actions[action.action_id], repeated=True)
        self.kit.progress.reached("after_intent", session.run_id, action.action_id)
        return ToSend(action.action_id)
