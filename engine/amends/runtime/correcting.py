"""Correcting: notes where people saw a signal, posted once per place and revision (rule 32)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import correction
from amends.core import events as e
from amends.core.canonical import Json, digest
from amends.core.evidence import Decision
from amends.core.fold_actions import planned_row
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, ParkedCause, RunStatus
from amends.runtime import drafting
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy, subject_of
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit, Offer
from amends.runtime.sending import Sending
from amends.runtime.sessions import Session

_S = ActionStatus
POSTING = frozenset({RunStatus.RECOVERING, RunStatus.COMMITTING})


@dataclass(frozen=True)
class Corrections:
    """Composes, authorizes and posts corrections; a correction is an action like any other."""

    kit: Kit
    book: Book
    policy: Policy
    approvals: Approvals
    escalations: Escalations
    sending: Sending

    def correct(self, session: Session, place: str, action_id: str = "") -> None:
        """Post the note for a place: a new revision, or the one recorded as `action_id`."""
        if not action_id:
            action_id = self._register(session, place)
        state = self.book.state(session.run_id)
        action = state.actions[action_id]
        if action.status not in {_S.PLANNED, _S.QUEUED, _S.AWAITING_APPROVAL, _S.FAILED}:
            return
        if not self.kit.catalog.usable(action):
            self._unserved(session, action)
            return
        approval = state.approvals.get(action.approval_id)
        decision = self.policy.correct(state.run, subject_of(action), approval)
        if decision.verdict == "needs_approval":
            self.approvals.ask_or_deny(session.run_id, action_id, decision, "correct", session.epoch)
            return
        if not decision.allowed:
            self._denied(session, action_id, decision)
            return
        self._post(session, action_id, decision)

    def _register(self, session: Session, place: str) -> str:
        action_id = self.kit.ids.new()

        def decide(state: RunState) -> list[Draft]:
            note = correction.compose(state, place)
            offer = self.kit.catalog.corrector(place, [state.actions[name] for name in note.covers])
            planned = self._planned(note, offer)
            drafts = [Draft(planned, action_id)]
            if offer is None:
                row = planned_row(state.run, action_id, state.run.head + 1, state.run.ledger_us, planned)
                detail = f"no enabled adapter posts at `{place}`: tell the people there yourself"
                drafts += self.escalations.parked(state, row, ParkedCause.ADAPTER_UNAVAILABLE, detail)
            return drafts

        self.book.record(session.run_id, decide, epoch=session.epoch, allowed=POSTING)
        return action_id

    def _planned(self, note: correction.Correction, offer: Offer | None) -> e.ActionPlanned:
        contract = offer.contract if offer else correction.unserved_contract(note.place.split(":", 1)[0])
        args: dict[str, Json] = {"place": note.place, "text": note.text}
        return e.ActionPlanned(
            action_kind=ActionKind.CORRECT,
            capability=contract.capability,
            adapter=offer.context.name if offer else "",
            instance=offer.context.instance if offer else "",
            environment=offer.context.environment if offer else "",
            slot=f"correct:{note.place}#{note.revision}",
            label=note.says,
            generation=1,
            args=args,
            args_digest=digest(args),
            input={name: args[name] for name in contract.input if name in args},
            resource=f"{contract.effect.resource_type}:{note.place}",
            contract=contract,
            depends_on=(),
            place=note.place,
            revision=note.revision,
            covers=note.covers,
        )

    def _unserved(self, session: Session, action: ActionRow) -> None:
        detail = f"no enabled adapter posts at `{action.place}`: tell the people there yourself"
        self.escalations.park(session.run_id, action.action_id, ParkedCause.ADAPTER_UNAVAILABLE, detail, session.epoch)

    def _denied(self, session: Session, action_id: str, decision: Decision) -> None:
        detail = f"policy denied the correction: {decision.code}"
        recorded = Draft(e.DecisionRecorded(phase="correct", decision=decision), action_id)

        def decide(state: RunState) -> list[Draft]:
            return [recorded, *self.escalations.parked(state, state.actions[action_id], ParkedCause.DENIED, detail)]

        self.book.record(session.run_id, decide, epoch=session.epoch)

    def _post(self, session: Session, action_id: str, decision: Decision) -> None:
        self.kit.progress.reached("before_correction", session.run_id, action_id)

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            intent = drafting.next_intent(action, None, decision, action.approval_id)
            return [Draft(e.DecisionRecorded(phase="correct", decision=decision), action_id), Draft(intent, action_id)]

        self.book.record(session.run_id, decide, epoch=session.epoch, allowed=POSTING)
        self.sending.send_and_wait(session, action_id, allowed=POSTING)
        self.kit.progress.reached("after_correction", session.run_id, action_id)
