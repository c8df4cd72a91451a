"""Driving a claimed run to its fixpoint: ask the core for a plan, take a step, record, ask again (rules 17 to 28).

Backward (`recovering`) and forward (`committing`) share one loop; what differs is the plan and the steps it may hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.errors import IllegalTransition, InternalError
from amends.core.planner import plan
from amends.core.release import plan_release
from amends.core.rows import RunState
from amends.core.status import ActionStatus, RunStatus
from amends.core.steps import Facts, Plan, Step
from amends.runtime.approvals import Approvals
from amends.runtime.book import Book, Draft, Paused
from amends.runtime.claiming import Claims
from amends.runtime.compensating import Compensator
from amends.runtime.correcting import Corrections
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit
from amends.runtime.looking import Looker
from amends.runtime.releasing import Outbox
from amends.runtime.sessions import Session
from amends.runtime.undoing import Undoing

_S = ActionStatus
_DRIVEN = frozenset({RunStatus.RECOVERING, RunStatus.COMMITTING})
REOPENED = "recovered to the checkpoint"
_LONGEST_NAP_SECONDS = 0.25


@dataclass(frozen=True)
class Driver:
    """Drives one run at a time in the calling thread."""

    kit: Kit
    book: Book
    looker: Looker
    compensator: Compensator
    undoing: Undoing
    outbox: Outbox
    corrections: Corrections
    approvals: Approvals
    escalations: Escalations
    claims: Claims

    def drive(self, session: Session, wait_until_us: int = 0) -> RunState:
        """Go on until the run settles, needs a person, or nothing is due before `wait_until_us` (ledger time)."""
        while True:
            self.claims.keep(session)
            self.approvals.expire(session.run_id, session.epoch)
            state = self.book.state(session.run_id)
            if state.run.status not in _DRIVEN:
                return state
            made = self._plan(state)
            planned = self._record(session, state, made)
            self.kit.progress.reached("after_plan", session.run_id, "")
            if planned is None:
                continue
            if made.work:
                self._taken(session, planned, made.work[0])
            elif made.finish is None and made.due_us is not None and made.due_us <= wait_until_us:
                self._nap(session, made.due_us)
            elif (rested := self._rest(session, planned, made)) is not None:
                return rested

    def _facts(self, state: RunState) -> Facts:
        return Facts(
            now_us=max(self.kit.clock.now_us(), state.run.ledger_us),
            skew_us=self.kit.skew_us,
            usable=frozenset(a.action_id for a in state.actions.values() if self.kit.catalog.usable(a)),
            paused=self.outbox.paused(state.run),
            check_due_us=self.outbox.check_due_us(state.run),
        )

    def _plan(self, state: RunState) -> Plan:
        facts = self._facts(state)
        if state.run.status is RunStatus.RECOVERING:
            return plan(state, facts)
        return plan_release(state, facts, check_fresh=self.outbox.check_is_fresh(state))

    def _record(self, session: Session, state: RunState, made: Plan) -> RunState | None:
        """Keep each decision once, with its reason and facts."""
        news = [
            step
            for step in made.steps
            if (action := state.actions.get(step.action_id)) is not None
            and action.last_decided != f"{step.verb}:{step.reason}"
        ]
        drafts = [
            Draft(e.RecoveryDecided(decision=s.verb, reason=s.reason, facts=s.facts, due_us=s.due_us), s.action_id)
            for s in news
        ]
        return self._if_unchanged(session, state, drafts)

    def _rest(self, session: Session, planned: RunState, made: Plan) -> RunState | None:
        """The run is over, or waits: for a person, or until something is due."""
        if made.finish is None:
            if made.due_us is None or planned.run.due_us == made.due_us:
                return planned
            return self._if_unchanged(session, planned, [Draft(e.RecoveryWaiting(due_us=made.due_us))])
        moved = Draft(e.RunMoved(to=made.finish, reason=_reason_of(made.finish)))
        state = self._if_unchanged(session, planned, [moved])
        if state is not None:
            self.kit.progress.reached("settled", session.run_id, "")
        return state

    def _if_unchanged(self, session: Session, planned: RunState, drafts: list[Draft]) -> RunState | None:
        """The state with these facts added; None, with nothing written, if somebody (a person who decided meanwhile)
        has changed the run since: a plan of the past must not overrule them.
        """
        changed = False

        def decide(state: RunState) -> list[Draft]:
            nonlocal changed
            changed = state.run.head != planned.run.head
            return [] if changed else drafts

        state = self.book.record(session.run_id, decide, epoch=session.epoch)
        return None if changed else state

    def _nap(self, session: Session, due_us: int) -> None:
        left = (due_us - self.kit.clock.now_us()) / 1_000_000
        self.kit.clock.sleep(min(max(left, 0.001), _LONGEST_NAP_SECONDS))
        self.book.forget(session.run_id)  # people decide in other processes

    # --- steps --------------------------------------------------------------------------------------------

    def _taken(self, session: Session, state: RunState, step: Step) -> None:
        try:
            self._take(session, state, step)
        except Paused:
            return  # set since the plan was made, and seen by the intent's own commit: the next plan waits (rule 15)
        except IllegalTransition:
            if not self.book.state(session.run_id).run.terminal:
                raise  # otherwise a person has ended the run meanwhile

    def _take(self, session: Session, state: RunState, step: Step) -> None:
        head = state.run.head
        match step.verb:
            case "skip" | "withdraw":
                self._withdraw(session, step)
            case "reconcile":
                self._reconcile(session, state, step)
            case "compensate":
                self.compensator.compensate(session, step.action_id)
            case "escalate":
                self.escalations.park(session.run_id, step.action_id, step.cause, step.reason, session.epoch)
            case "correct":
                self.corrections.correct(session, step.place, step.action_id)
            case _:
                self.outbox.take(session, step)
        if self.book.state(session.run_id).run.head == head:
            raise InternalError(
                f"step `{step.verb}` ({step.reason}) changed nothing in run `{session.run_id}`",
                hint="the run is left as it is; report it with `amends runs show`",
            )

    def _withdraw(self, session: Session, step: Step) -> None:
        def decide(state: RunState) -> list[Draft]:
            action = state.actions[step.action_id]
            drafts = [Draft(e.ActionWithdrawn(reason=step.reason), step.action_id)]
            approval = state.approvals.get(action.approval_id)
            if approval is not None and approval.status == "pending":
                closed = e.ApprovalClosed(approval_id=approval.approval_id, how="withdrawn")
                drafts.append(Draft(closed, step.action_id))
            return drafts

        self.book.record(session.run_id, decide, epoch=session.epoch)

    def _reconcile(self, session: Session, state: RunState, step: Step) -> None:
        action = state.actions[step.action_id]
        undo = state.undo_of(action)
        in_flight = undo if undo is not None and undo.status is _S.RUNNING else action
        if in_flight.status is _S.RUNNING:
            self.looker.lost(session.run_id, in_flight.action_id, session.epoch)
        elif outcomes.folded_late(action, at_us=state.run.ledger_us) is not None:
            self.looker.fold_late(session.run_id, action.action_id, session.epoch)
        elif step.purpose == "verify_undone":
            self.undoing.verify(session, action.action_id)
        elif step.purpose == "still_there":
            self.looker.still_there(session.run_id, action.action_id, session.epoch)
        elif step.purpose == "late_check":
            self.undoing.late_check(session, action.action_id)
        else:
            self.looker.reconcile(session.run_id, action.action_id, session.epoch, step.purpose)


def _reason_of(to: RunStatus) -> str:
    return {
        RunStatus.RECOVERED: "every action is settled",
        RunStatus.COMMITTED: "every action is settled and the outbox is empty",
        RunStatus.OPEN: REOPENED,
        RunStatus.NEEDS_HUMAN: "nothing is due before a person decides",
    }.get(to, to.value)
