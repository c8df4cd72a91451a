"""Undoing: one undo with its own intent, policy decision, attempts and verification (rules 18, 19 and 30)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from amends.core import events as e
from amends.core import outcomes
from amends.core.contract import Alternative
from amends.core.evidence import Decision, Observation
from amends.core.rows import ActionRow, ApprovalRow, RunState
from amends.core.schedule import settle_over_at_us
from amends.core.status import TRANSITIONS, Move, Outcome, ParkedCause, RunStatus
from amends.runtime import drafting, undo_drafts
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.flights import CALL_SPARE_SECONDS, Flights, call_of, classified, landed, question_of
from amends.runtime.kit import Kit
from amends.runtime.looking import Look, Looker
from amends.runtime.places import Seat
from amends.runtime.sending import Sending
from amends.runtime.sessions import Session
from amends.spi.capability import Call, Receipt

UNDOING = frozenset({RunStatus.RECOVERING, RunStatus.COMMITTING})


@dataclass(frozen=True)
class Undoing:
    """Sends undos and looks at what became of them."""

    kit: Kit
    book: Book
    policy: Policy
    flights: Flights
    looker: Looker
    approvals: Approvals
    escalations: Escalations
    sending: Sending

    def undo(
        self,
        session: Session,
        state: RunState,
        action: ActionRow,
        rung: Alternative,
        undo: ActionRow | None,
        look: Look,
    ) -> None:
        """Authorize, intend, send and verify one undo of what a look has just seen; `undo` is the one recorded already,
        if there is one.
        """
        approval = state.approvals.get(undo.approval_id) if undo else None
        if undo and approval and approval.status == "approved" and not self._still_that(state, undo, approval):
            self.approvals.void(session.run_id, undo.action_id, session.epoch)
            return  # people are asked again about what it is now
        decision = self.policy.undo(state, action, rung, approval, residue=action.outcome is Outcome.FAILED)
        undo_id = undo.action_id if undo else self.kit.ids.new()
        if not decision.allowed:
            self._not_allowed(session, action, rung, undo_id, decision, approval)
            return
        self._intend(session, action.action_id, rung, undo_id, decision, approval, look)
        self._send(session, action.action_id, undo_id, rung, look.observation)

    def _still_that(self, state: RunState, undo: ActionRow, approval: ApprovalRow) -> bool:
        """True if a yes is about this very undo as it is now (rule 30)."""
        return approval.digest == self.policy.binding(state, undo, "undo")

    def _not_allowed(
        self,
        session: Session,
        action: ActionRow,
        rung: Alternative,
        undo_id: str,
        decision: Decision,
        approval: ApprovalRow | None,
    ) -> None:
        """Denied, or a person must approve: the forward action is parked, the question stays (rules 22 and 30)."""
        changed = decision.policy_version != action.forward_policy_version and bool(action.forward_policy_version)
        cause = ParkedCause.POLICY_CHANGED if changed else ParkedCause.DENIED
        words = "; ".join(decision.reasons) or decision.code
        versions = f"{decision.policy_version}; forward under {action.forward_policy_version}"

        def decide(state: RunState) -> list[Draft]:
            forward = state.actions[action.action_id]
            drafts = (
                [] if undo_id in state.actions else [Draft(undo_drafts.planned(state, forward, rung, undo_id), undo_id)]
            )
            undo = undo_drafts.row(state, forward, rung, undo_id)
            drafts.append(Draft(e.DecisionRecorded(phase="undo", decision=decision), undo_id))
            if decision.verdict == "needs_approval":
                if approval is None or approval.status != "pending":
                    drafts.append(self.approvals.asked(state, undo, decision, "undo"))
                detail = f"needs approval of tier {decision.tier}: {words} ({versions})"
            else:
                if (undo.status, Move.DENY) in TRANSITIONS:
                    drafts.append(Draft(e.ActionDenied(code=decision.code, reason=words), undo_id))
                detail = f"policy denied the compensation: {words} ({versions})"
            return [*drafts, *self.escalations.parked(state, forward, cause, detail)]

        self.book.record(session.run_id, decide, epoch=session.epoch)

    def _intend(
        self,
        session: Session,
        action_id: str,
        rung: Alternative,
        undo_id: str,
        decision: Decision,
        approval: ApprovalRow | None,
        look: Look,
    ) -> None:
        def decide(state: RunState) -> list[Draft]:
            forward = state.actions[action_id]
            undo = undo_drafts.row(state, forward, rung, undo_id)
            drafts = (
                [] if undo_id in state.actions else [Draft(undo_drafts.planned(state, forward, rung, undo_id), undo_id)]
            )
            intent = e.IntentRecorded(
                attempt=undo.attempt + 1,
                idempotency_key=undo_drafts.key(forward, undo),
                deadline_us=drafting.deadline_us(decision, forward.contract, look.began_us),
                before_image=forward.after_image,
                approval_id=approval.approval_id if approval and approval.status == "approved" else "",
            )
            return [
                *drafts,
                Draft(e.DecisionRecorded(phase="undo", decision=decision), undo_id),
                Draft(intent, undo_id),
                Draft(e.CompensationStarted(undo=undo_id, rung=rung.name), action_id),
            ]

        self.book.record(session.run_id, decide, epoch=session.epoch, allowed=UNDOING)

    def _send(
        self, session: Session, action_id: str, undo_id: str, rung: Alternative, observation: Observation
    ) -> None:
        state = self.book.state(session.run_id)
        forward, undo = state.actions[action_id], state.actions[undo_id]
        call = self._call(session, forward, undo, rung, observation)
        send = self._send_of(forward, rung)
        now_us = self.kit.clock.now_us
        adapter = self.kit.catalog.get(forward.contract.capability).context.name
        seat = Seat(adapter, action_id, call.timeout_seconds + CALL_SPARE_SECONDS)
        flight = self.flights.launch(
            lambda: classified(send, call, now_us, forward, self.kit.secrets),
            f"undo-{undo_id[-6:]}",
            seat,
            instead=lambda why: outcomes.not_sent(at_us=now_us(), code="no_place", detail=why),
        )
        try:
            body = landed(flight, seat)
        except TimeoutError:
            body = outcomes.lost(
                at_us=self.kit.clock.now_us(), code="timeout", detail="the undo did not return in time"
            )
        body = undo_drafts.claimed(body)
        self.book.record(session.run_id, lambda _: [Draft(body, undo_id)], epoch=session.epoch)
        if body.outcome is Outcome.UNKNOWN:
            self.verify(session, action_id)

    def _call(
        self, session: Session, forward: ActionRow, undo: ActionRow, rung: Alternative, observation: Observation
    ) -> Call:
        offer = self.kit.catalog.get(forward.contract.capability)
        question = question_of(self.kit, forward, offer)
        return call_of(
            question,
            deadline_us=undo.deadline_us or 0,
            still_wanted=lambda: self.sending.may_send(session, undo, UNDOING),
            rung=rung.name,
            undo_key=undo.idempotency_key,
            undo_marker=undo.action_id,
            observed=observation,
        )

    def _send_of(self, forward: ActionRow, rung: Alternative) -> Callable[[Call], Receipt]:
        if rung.undo == "own":
            return self.kit.catalog.get(forward.contract.capability).capability.undo
        other = self.kit.catalog.get(rung.undo).capability
        args = undo_drafts.inputs(forward, rung)
        return lambda call: other.do(replace(call, args=args, marker=call.undo_marker, idempotency_key=call.undo_key))

    # --- after --------------------------------------------------------------------------------------------

    def verify(self, session: Session, action_id: str) -> None:
        """The separate read after an undo: only `absent` makes it compensated (rule 18)."""
        self.kit.progress.reached("before_verify", session.run_id, action_id)
        look = self.looker.observe(session.run_id, action_id, session.epoch, "verify_undone")
        if look is None:
            return

        def decide(state: RunState) -> list[Draft]:
            forward = state.actions[action_id]
            undo = state.undo_of(forward)
            drafts = [Draft(e.ProbeAnswered(purpose="verify_undone", observation=look.observation), action_id)]
            return drafts if undo is None else [*drafts, *self._after_look(state, forward, undo, look)]

        self.book.record(session.run_id, decide, epoch=session.epoch)
        self.kit.progress.reached("after_verify", session.run_id, action_id)

    def _after_look(self, state: RunState, forward: ActionRow, undo: ActionRow, look: Look) -> list[Draft]:
        now, observation = self.kit.ledger_now_us(state.run), look.observation
        match observation.seen:
            case "absent":
                return [
                    Draft(undo_drafts.seen(Outcome.SUCCEEDED, now, "verified_undone"), undo.action_id),
                    Draft(undo_drafts.verified(forward, undo, observation, "undone", look.began_us), forward.action_id),
                ]
            case "diverged":
                detail = observation.detail or "the system is in neither state after the undo"
                return self.escalations.parked(state, forward, ParkedCause.DIVERGED, detail)
            case "applied" | "many" if look.began_us >= settle_over_at_us(forward, undo):
                return [Draft(undo_drafts.seen(Outcome.FAILED, now, "still_applied"), undo.action_id)]
            case _:
                return []

    def late_check(self, session: Session, action_id: str) -> None:
        """One more look at `call deadline + settle`: something may have landed after the verified undo (rule 18)."""
        look = self.looker.observe(session.run_id, action_id, session.epoch, "late_check")
        if look is None:
            return
        observation = look.observation

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            drafts = [Draft(e.ProbeAnswered(purpose="late_check", observation=observation), action_id)]
            looks = len(action.contract.probe.schedule_seconds) if action.contract.probe else 0
            match observation.seen:
                case "applied" | "many":
                    drafts.append(Draft(e.EffectReappeared(observation=observation), action_id))
                case "inconclusive" if action.probes < looks:
                    pass  # the planner looks again
                case seen:
                    drafts.append(Draft(e.LateCheckDone(seen=seen), action_id))
            return drafts

        self.book.record(session.run_id, decide, epoch=session.epoch)
