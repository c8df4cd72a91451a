"""Compensating: a look at the real system, and the way back that fits what it shows (rules 17 to 19).

Nothing is undone on the strength of the ledger alone: every undo begins with a look, and counts only after another
one (`amends.runtime.undoing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core.contract import Alternative
from amends.core.evidence import Observation
from amends.core.rows import ActionRow, RunState
from amends.core.settling import next_rung, unexpired_rungs
from amends.core.status import ActionStatus, Outcome, ParkedCause
from amends.runtime import undo_drafts
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit
from amends.runtime.looking import Look, Looker
from amends.runtime.sessions import Session
from amends.runtime.undoing import Undoing

_S = ActionStatus


@dataclass(frozen=True)
class Compensator:
    """Takes effects back, one action at a time."""

    kit: Kit
    book: Book
    looker: Looker
    escalations: Escalations
    undoing: Undoing

    def compensate(self, session: Session, action_id: str) -> None:
        """Look, choose the rung by what is seen, authorize, intend, undo, verify. Every ending is recorded."""
        self.kit.progress.reached("before_undo", session.run_id, action_id)
        look = self.looker.observe(session.run_id, action_id, session.epoch, "before_undo")
        if look is None:
            return
        observation = look.observation
        state = self._seen_before(session, action_id, look)
        action = state.actions[action_id]
        if action.status in {_S.COMPENSATED, _S.NEEDS_HUMAN} or not self._may_undo(action, observation):
            return
        undo = self._retryable(state, action)
        if undo is not None and not undo.ever_sent and not _fits(action, undo, observation):
            state = self._give_way(session, undo.action_id)
            undo = None
        rung = self._rung(action, undo, observation)
        if rung is None:
            self._park(session, action_id, ParkedCause.UNDO_FAILED, "no alternative fits what the system shows now")
        elif rung.undo == "escalate":
            self._park(session, action_id, ParkedCause.UNREGISTERED, f"the contract's `{rung.name}` asks a person")
        elif rung.undo == "correct":
            self._let_stand(session, action_id, rung)
        else:
            self.undoing.undo(session, state, action, rung, undo, look)
        self.kit.progress.reached("after_undo", session.run_id, action_id)

    # --- before -------------------------------------------------------------------------------------------

    def _seen_before(self, session: Session, action_id: str, look: Look) -> RunState:
        observation = look.observation

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            drafts = [Draft(e.ProbeAnswered(purpose="before_undo", observation=observation), action_id)]
            nothing = action.contract.restores_before_image and action.before_image == action.after_image
            if observation.seen == "absent" or (nothing and observation.seen == "applied" and action.after_image):
                how: undo_drafts.How = "nothing_to_undo" if nothing and action.after_image else "already_gone"
                drafts.append(Draft(undo_drafts.verified(action, None, observation, how, look.began_us), action_id))
            elif observation.seen == "diverged":
                drafts += self.escalations.parked(
                    state, action, ParkedCause.DIVERGED, observation.detail or "somebody changed it since"
                )
            return drafts

        return self.book.record(session.run_id, decide, epoch=session.epoch)

    def _may_undo(self, action: ActionRow, observation: Observation) -> bool:
        """Only on evidence of presence, or where the inverse is harmless when absent (rule 17)."""
        if observation.seen in {"applied", "many"}:
            missing = set(action.contract.parts) - set(observation.parts or action.parts)
            return not missing or action.contract.partial_inverse or action.outcome is Outcome.SUCCEEDED
        return action.outcome is Outcome.UNKNOWN and any(
            rung.harmless_when_absent and Outcome.UNKNOWN in rung.safe_when for rung in action.contract.compensation
        )

    def _retryable(self, state: RunState, action: ActionRow) -> ActionRow | None:
        """The undo that may be sent (again): approved, or proven to have done nothing."""
        for undo in reversed(state.undos_of(action.action_id)):
            if undo.status in {_S.PLANNED, _S.AWAITING_APPROVAL}:
                return undo
            resendable = undo.status is _S.FAILED and undo.error is not None and undo.error.resendable
            retry = action.contract.undo_alternative(undo.rung).retry
            return undo if resendable and undo.attempt < retry.attempts else None
        return None

    def _rung(self, action: ActionRow, undo: ActionRow | None, observation: Observation) -> Alternative | None:
        if undo is not None:
            return action.contract.undo_alternative(undo.rung)
        rung = next_rung(action, observation.state, self.kit.clock.now_us())
        if rung is not None or action.outcome is not Outcome.UNKNOWN:
            return rung
        harmless = [r for r in unexpired_rungs(action, self.kit.clock.now_us()) if r.harmless_when_absent]
        return next((r for r in harmless if r.name not in action.tried_rungs), None)

    def _give_way(self, session: Session, undo_id: str) -> RunState:
        """An unsent undo whose rung no longer fits leaves, and the question about it with it."""

        def decide(state: RunState) -> list[Draft]:
            drafts = [Draft(e.ActionWithdrawn(reason="the system shows another state now"), undo_id)]
            asked = state.approvals.get(state.actions[undo_id].approval_id)
            if asked is not None and asked.status in {"pending", "approved"}:
                drafts.append(Draft(e.ApprovalClosed(approval_id=asked.approval_id, how="withdrawn"), undo_id))
            return drafts

        return self.book.record(session.run_id, decide, epoch=session.epoch)

    def _park(self, session: Session, action_id: str, cause: ParkedCause, detail: str) -> None:
        self.escalations.park(session.run_id, action_id, cause, detail, session.epoch)

    def _let_stand(self, session: Session, action_id: str, rung: Alternative) -> None:
        """The last rung says: leave it, and tell the people concerned."""
        drafts = [
            Draft(
                e.ActionParked(cause=ParkedCause.UNREGISTERED, detail=f"`{rung.name}`: corrected, not undone"),
                action_id,
            ),
            Draft(e.ActionAccepted(by=f"contract:{rung.name}"), action_id),
        ]
        self.book.record(session.run_id, lambda _: drafts, epoch=session.epoch)


def _fits(action: ActionRow, undo: ActionRow, observation: Observation) -> bool:
    """True while the rung that an unsent undo was planned for is one that the probed state calls for."""
    when = action.contract.undo_alternative(undo.rung).when
    return all(observation.state.get(name) in accepted for name, accepted in when.items())
