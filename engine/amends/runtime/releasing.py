"""Releasing: the outbox of a committing run, each item decided anew at the moment of sending (rules 26 to 28)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core.errors import InternalError
from amends.core.evidence import Decision
from amends.core.release import all_actions_succeeded, is_release
from amends.core.rows import ActionRow, RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionStatus, ParkedCause, RunStatus
from amends.core.steps import Step
from amends.runtime import drafting
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy
from amends.runtime.book import Book, Draft
from amends.runtime.checking import Checks
from amends.runtime.drafting import Reading
from amends.runtime.escalations import Escalations
from amends.runtime.flights import describe
from amends.runtime.kit import Kit
from amends.runtime.preparing import Preparing
from amends.runtime.sending import Sending, pause_keys
from amends.runtime.sessions import Session
from amends.spi.hookspecs import CheckAnswer

BUILT_IN_CHECK = "all_actions_succeeded"
_COMMITTING = frozenset({RunStatus.COMMITTING})
_WAITING = frozenset({ActionStatus.QUEUED, ActionStatus.AWAITING_APPROVAL})


@dataclass(frozen=True)
class Outbox:
    """Carries out the steps of a release plan."""

    kit: Kit
    book: Book
    policy: Policy
    preparing: Preparing
    sending: Sending
    approvals: Approvals
    escalations: Escalations
    checks: Checks

    def take(self, session: Session, step: Step) -> None:
        """One step: check, ask, release, or turn the run back."""
        match step.verb:
            case "check":
                self.check(session)
            case "ask":
                self._ask(session, step.action_id)
            case "release":
                self._release(session, step.action_id)
            case "turn_back":
                self._turn_back(session, step.reason)
            case _:
                raise InternalError(f"`{step.verb}` is not the outbox's", hint="report this")

    # --- the success check --------------------------------------------------------------------------------

    def check_is_fresh(self, state: RunState) -> bool:
        """True if the check was answered after the last change that a release rests on; one that has not passed is
        asked again after a while.
        """
        run = state.run
        if not run.check or run.checked_seq is None:
            return not run.check
        if run.check_answer == "passed":
            return run.checked_seq > max((a.outcome_seq or 0 for a in state.forward_actions()), default=0)
        due = self.check_due_us(run)
        return due is not None and self.kit.ledger_now_us(run) < due

    def check_due_us(self, run: RunRow) -> int | None:
        """When the check is asked again, if it was asked."""
        if run.checked_us is None:
            return None
        return run.checked_us + microseconds(self.kit.settings.check_every_seconds)

    def check(self, session: Session) -> RunState:
        """Ask the run's success condition and record the answer; only `passed` ever releases (rule 27)."""
        state = self.book.state(session.run_id)
        answer, detail = self._answer(state)

        def decide(state: RunState) -> list[Draft]:
            drafts = [Draft(e.CheckAnswered(check=state.run.check, answer=answer, detail=detail))]
            waited = self.kit.ledger_now_us(state.run) - state.run.moved_us
            if answer != "passed" and waited > microseconds(self.kit.settings.check_deadline_seconds):
                drafts += self._over(state, f"the success check had not passed by its deadline: {answer}")
            return drafts

        return self.book.record(session.run_id, decide, epoch=session.epoch)

    def _over(self, state: RunState, reason: str) -> list[Draft]:
        """Before the pivot the run goes back; past it, what waits is a person's to decide."""
        if not state.pivot_passed:
            return [Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=reason))]
        waiting = [a for a in state.forward_actions() if is_release(a) and a.status in _WAITING]
        return [draft for a in waiting for draft in self.escalations.parked(state, a, ParkedCause.UNKNOWN, reason)]

    def _answer(self, state: RunState) -> tuple[CheckAnswer, str]:
        name = state.run.check
        if name == BUILT_IN_CHECK:
            passed = all_actions_succeeded(state)
            return ("passed" if passed else "not_passed"), "every action succeeded" if passed else "not every action"
        return self.checks.ask(name, state.run.run_id)

    def paused(self, run: RunRow) -> bool:
        """True while a pause holds releases back (rule 15)."""
        return self.sending.paused(run)

    # --- items --------------------------------------------------------------------------------------------

    def _ask(self, session: Session, action_id: str) -> None:
        state = self.book.state(session.run_id)
        action = state.actions[action_id]
        prepared = self._read_again(session, state.run, action)
        if prepared is None:
            return
        decision = self.policy.release(state, action, None)
        if decision.allowed:  # the contract asks for a person even where policy does not
            decision = decision.model_copy(update={"verdict": "needs_approval", "tier": max(decision.tier, 1)})
        self._not_allowed(session, action_id, decision, prepared)

    def _not_allowed(self, session: Session, action_id: str, decision: Decision, prepared: Reading) -> None:
        if decision.verdict == "needs_approval":
            self.approvals.ask_or_deny(
                session.run_id,
                action_id,
                decision,
                "release",
                session.epoch,
                content_digest=prepared.content_digest,
            )
            return

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            changed = action.forward_policy_version not in {"", decision.policy_version}
            cause = ParkedCause.POLICY_CHANGED if changed else ParkedCause.DENIED
            words = "; ".join(decision.reasons) or decision.code
            detail = f"policy denied the release: {words} ({decision.policy_version})"
            recorded = Draft(e.DecisionRecorded(phase="release", decision=decision), action_id)
            return [recorded, *self.escalations.parked(state, action, cause, detail)]

        self.book.record(session.run_id, decide, epoch=session.epoch)

    def _release(self, session: Session, action_id: str) -> None:
        state = self.book.state(session.run_id)
        action = state.actions[action_id]
        prepared = self._read_again(session, state.run, action)
        if prepared is None:
            return
        if self._voided(session, state, action, prepared):
            return
        approval = state.approvals.get(action.approval_id)
        decision = self.policy.release(state, action, approval)
        if not decision.allowed and approval is not None and approval.status in {"approved", "consumed"}:
            self.approvals.policy_changed(session.run_id, action_id, decision, "release", session.epoch)
            return
        if not decision.allowed:
            self._not_allowed(session, action_id, decision, prepared)
            return
        self._send(session, action, decision, prepared)

    def _read_again(self, session: Session, run: RunRow, action: ActionRow) -> Reading | None:
        """`prepare` runs again: what is sent, and what people approve, may have changed since (rule 27). `None`: it
        cannot be read any more, and a person looks.
        """
        if not self.kit.catalog.usable(action):
            detail = "no adapter accepts the contract it was registered with"
            self.escalations.park(
                session.run_id, action.action_id, ParkedCause.ADAPTER_UNAVAILABLE, detail, session.epoch
            )
            return None
        try:
            return self.preparing.again(run, action)
        except Exception as error:  # noqa: BLE001 - nothing was sent; a person looks
            detail = f"what it is about can no longer be read: {describe(error, self.kit.secrets)}"
            self.escalations.park(session.run_id, action.action_id, ParkedCause.DIVERGED, detail, session.epoch)
            return None

    def _voided(self, session: Session, state: RunState, action: ActionRow, prepared: Reading) -> bool:
        """A changed content digest voids an approval: people are asked again about what it is now."""
        approval = state.approvals.get(action.approval_id)
        now = action.model_copy(update={"content_digest": prepared.content_digest})
        unlike = (
            approval is not None
            and approval.status == "approved"
            and (approval.digest != self.policy.binding(state, now, "release"))
        )
        if not unlike and not self.approvals.outdated(state, action, prepared.content_digest):
            return False
        self.approvals.void(session.run_id, action.action_id, session.epoch)
        return True

    def _send(self, session: Session, action: ActionRow, decision: Decision, prepared: Reading) -> None:
        self.kit.progress.reached("before_release", session.run_id, action.action_id)
        action_id = action.action_id

        def decide(state: RunState) -> list[Draft]:
            now = state.actions[action_id]
            intent = drafting.next_intent(now, prepared, decision, now.approval_id)
            return [Draft(e.DecisionRecorded(phase="release", decision=decision), action_id), Draft(intent, action_id)]

        self.book.record(
            session.run_id,
            decide,
            epoch=session.epoch,
            allowed=_COMMITTING,
            forbidden=pause_keys(self.book.last_known(session.run_id).run),
        )
        self.sending.send_and_wait(session, action_id, allowed=_COMMITTING)

    def _turn_back(self, session: Session, reason: str) -> None:
        drafts = [Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=reason))]
        self.book.record(session.run_id, lambda _: drafts, epoch=session.epoch, allowed=_COMMITTING)
