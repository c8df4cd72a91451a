"""Approvals: people are asked, bound to exactly what they were shown, and their answers recorded (rules 29 to 31)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core.canonical import Json
from amends.core.contract import Phase
from amends.core.errors import CallerError, Conflict, UnknownName
from amends.core.evidence import Decision
from amends.core.rows import ActionRow, ApprovalRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionStatus, ParkedCause, RunStatus
from amends.runtime.asking import Policy
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit
from amends.runtime.listing import readable

_S = ActionStatus
_UNDO_APPROVAL_SECONDS = 86_400.0


@dataclass(frozen=True)
class Approvals:
    """Questions to people and their answers."""

    kit: Kit
    book: Book
    policy: Policy
    escalations: Escalations

    def ask_or_deny(
        self,
        run_id: str,
        action_id: str,
        decision: Decision,
        phase: Phase,
        epoch: int,
        *,
        allowed: frozenset[RunStatus] | None = None,
        content_digest: str = "",
    ) -> RunState:
        """Record a decision that is not an allow: ask people (about content read just now), or deny the action."""

        def decide(state: RunState) -> list[Draft]:
            drafts = [Draft(e.DecisionRecorded(phase=phase, decision=decision), action_id)]
            if decision.verdict == "needs_approval":
                action = state.actions[action_id]
                shown = action.model_copy(update={"content_digest": content_digest or action.content_digest})
                return [*drafts, self.asked(state, shown, decision, phase)]
            reason = "; ".join(decision.reasons) or decision.code
            return [*drafts, Draft(e.ActionDenied(code=decision.code, reason=reason), action_id)]

        return self.book.record(run_id, decide, epoch=epoch, allowed=allowed)

    def asked(self, state: RunState, action: ActionRow, decision: Decision, phase: Phase) -> Draft:
        """The question to people about one action, bound to exactly what is shown (rule 30)."""
        now = max(self.kit.clock.now_us(), state.run.ledger_us)
        body = e.ApprovalAsked(
            approval_id=self.kit.ids.new(),
            phase=phase,
            tier=decision.tier or 1,
            roles=decision.roles,
            roles_together=decision.roles_together,
            people=max(1, decision.approvers),
            reasons=decision.reasons,
            question=decision.question,
            asked_of=decision.asked_of,
            shown=shown_to_people(state, action, phase),
            digest=self.policy.binding(state, action, phase),
            content_digest=action.content_digest,
            expires_us=now + microseconds(_ttl_seconds(action, decision)),
        )
        return Draft(body, action.action_id)

    def policy_changed(self, run_id: str, action_id: str, decision: Decision, phase: Phase, epoch: int) -> RunState:
        """What people approved is no longer fine under the active bundle (rule 30): a person decides again."""

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            drafts = [Draft(e.DecisionRecorded(phase=phase, decision=decision), action_id)]
            approval = state.approvals.get(action.approval_id)
            if approval is not None and approval.status in {"approved", "consumed"}:
                voided = e.ApprovalClosed(
                    approval_id=approval.approval_id, how="voided", comment="the policy has changed"
                )
                drafts.append(Draft(voided, action_id))
            return [*drafts, *self.escalations.parked(state, action, ParkedCause.POLICY_CHANGED, _why(decision))]

        return self.book.record(run_id, decide, epoch=epoch)

    def outdated(self, state: RunState, action: ActionRow, content_digest: str) -> bool:
        """True if a yes was used for a send that came to nothing, and the content is another one by now (rule 27)."""
        approval = state.approvals.get(action.approval_id)
        return approval is not None and approval.status == "consumed" and content_digest != action.content_digest

    def void(self, run_id: str, action_id: str, epoch: int) -> RunState:
        """What was approved has changed: the yes counts no more, and people are asked about what it is now."""

        def decide(state: RunState) -> list[Draft]:
            approval_id = state.actions[action_id].approval_id
            closed = e.ApprovalClosed(approval_id=approval_id, how="voided", comment="its content has changed")
            return [Draft(closed, action_id)]

        return self.book.record(run_id, decide, epoch=epoch)

    # --- answering ----------------------------------------------------------------------------------------

    def approve(
        self, run_id: str, approval_id: str, *, by: str, channel: str, comment: str = "", digest: str = ""
    ) -> RunState:
        """One person's yes. Raises `Conflict` if the question is closed, `CallerError` if they may not answer it."""
        person = self.kit.person(by)

        def decide(state: RunState) -> list[Draft]:
            row = self._pending(state, approval_id)
            if by == state.run.initiator:
                raise CallerError(
                    f"`{by}` started this run and may not approve it", hint="another person has to approve"
                )
            if by in row.approvers:
                raise Conflict(f"`{by}` has said yes already", hint="another person has to say yes as well")
            if digest and digest != row.digest:
                raise Conflict("what you were shown is not what waits now", hint="look at the item again")
            if person.tier < row.tier or not row.helped_by(person.roles):
                raise CallerError(
                    f"`{by}` holds tier {person.tier} and roles {sorted(person.roles)}",
                    hint=f"it takes {row.who_may}",
                )
            given = e.ApprovalGiven(
                approval_id=approval_id,
                by=by,
                roles=person.roles,
                tier=person.tier,
                channel=channel,
                comment=comment,
                digest=row.digest,
            )
            drafts = [Draft(given, row.action_id)]
            if not row.complete({*row.approvers, by}, {*row.approver_roles, *person.roles}):
                return drafts  # another person has to say yes as well
            drafts += self._approved_compensation(state, row, by)
            return drafts + self.escalations.waking(state, "a person approved", by)

        return self.book.record(run_id, decide)

    def _approved_compensation(self, state: RunState, row: ApprovalRow, by: str) -> list[Draft]:
        """A yes to a compensation reopens the parked forward action."""
        action = state.actions[row.action_id]
        forward = state.actions.get(action.of)
        if row.phase != "undo" or forward is None or forward.status is not _S.NEEDS_HUMAN:
            return []
        drafts = [Draft(e.ActionReopened(reason="compensation approved", by=by), forward.action_id)]
        return drafts + self.escalations.closed(state, forward.action_id, "approve", by)

    def reject(
        self, run_id: str, approval_id: str, *, by: str, channel: str, comment: str = "", roll_back: bool = False
    ) -> RunState:
        """One person's no: the item is withdrawn; with `roll_back` the run recovers, if no pivot has passed.

        A "no, and roll back" past the pivot is a `Conflict` (rule 27).
        """

        def decide(state: RunState) -> list[Draft]:
            row = self._pending(state, approval_id)
            if roll_back and state.pivot_passed:
                raise Conflict("the run has passed its pivot and only goes forward", hint="reject without roll-back")
            closed = e.ApprovalClosed(
                approval_id=approval_id, how="refused", by=by, channel=channel, comment=comment, roll_back=roll_back
            )
            drafts = [Draft(closed, row.action_id)]
            action = state.actions[row.action_id]
            if action.status is _S.AWAITING_APPROVAL and row.phase in {"forward", "release"}:
                drafts.append(Draft(e.ActionWithdrawn(reason="refused by a person", by=by), row.action_id))
            back = _turning_back(state, action, roll_back=roll_back, by=by)
            return [*drafts, *(back or self.escalations.waking(state, "a person said no", by))]

        return self.book.record(run_id, decide)

    def expire(self, run_id: str, epoch: int | None) -> RunState:
        """Close what nobody answered in time; a timer never approves (rule 30)."""

        def decide(state: RunState) -> list[Draft]:
            now = max(self.kit.clock.now_us(), state.run.ledger_us)
            late = [row for row in state.approvals.values() if row.status == "pending" and now >= row.expires_us]
            drafts = [Draft(e.ApprovalClosed(approval_id=r.approval_id, how="expired"), r.action_id) for r in late]
            gates = [move for r in late for move in _turning_back(state, state.actions[r.action_id])]
            return [*drafts, *gates[:1]]

        return self.book.record(run_id, decide, epoch=epoch)

    def withdraw(self, run_id: str, action_id: str, *, by: str) -> RunState:
        """Take a queued item out of the outbox, unsent; a question about it is closed. Raises `Conflict`."""

        def decide(state: RunState) -> list[Draft]:
            action = state.actions.get(action_id)
            if action is None or action.status not in {_S.QUEUED, _S.AWAITING_APPROVAL}:
                raise Conflict("only a queued item can be withdrawn", hint="`amends outbox list` shows what waits")
            drafts = [Draft(e.ActionWithdrawn(reason="withdrawn", by=by), action_id)]
            asked = state.approvals.get(action.approval_id)
            if asked is not None and asked.status == "pending":
                closed = e.ApprovalClosed(approval_id=asked.approval_id, how="withdrawn", by=by)
                drafts.append(Draft(closed, action_id))
            return drafts

        return self.book.record(run_id, decide)

    def _pending(self, state: RunState, approval_id: str) -> ApprovalRow:
        row = state.approvals.get(approval_id)
        if row is None:
            raise UnknownName(f"no approval `{approval_id}`", hint="`amends inbox list` shows what waits")
        if row.status != "pending":
            raise Conflict(
                f"this was already `{row.status}` by `{row.by or 'nobody'}`",
                hint="nothing is left to decide",
                status=row.status,
                by=row.by,
            )
        if self.kit.clock.now_us() >= row.expires_us:
            raise Conflict("this question has expired", hint="it is asked again if it is still needed")
        return row


def _turning_back(state: RunState, action: ActionRow, *, roll_back: bool = False, by: str = "") -> list[Draft]:
    """A gate that is not passed ends the run's way forward; a "no, and roll back" ends a commit (rules 27 and 29)."""
    release = action.contract.release
    gate = state.run.status is RunStatus.OPEN and release is not None and release.mode == "gate"
    if gate or (roll_back and state.run.status in {RunStatus.COMMITTING, RunStatus.NEEDS_HUMAN}):
        return [Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=f"`{action.slot}` was not approved", by=by))]
    return []


def shown_to_people(state: RunState, action: ActionRow, phase: Phase) -> dict[str, Json]:
    """What an approver sees: exactly what the digest binds, in words and values."""
    contract = action.contract
    shown: dict[str, Json] = {
        "action": action.capability,
        "phase": phase,
        "summary": contract.summary,
        "resource": action.resource,
        "environment": action.environment,
        "args": action.args,
        "input": action.input,
        "readers": f"{contract.readers.audience}: {contract.readers.where}",
        "undo_cost": contract.undo_cost,
        "workflow": state.run.workflow,
        "owner": state.run.owner,
    }
    if contract.release is not None and contract.release.mode == "gate":
        shown["note"] = "This cannot be taken back: if the run fails later, it stays, is listed and is corrected."
    return shown


def _ttl_seconds(action: ActionRow, decision: Decision) -> float:
    """How long a question waits: as the asking policies say, but never longer than the contract lets a release wait."""
    release = action.contract.release
    if release is None:
        return decision.ttl_seconds or _UNDO_APPROVAL_SECONDS
    return min(decision.ttl_seconds or release.approval_ttl_seconds, release.approval_ttl_seconds)


def _why(decision: Decision) -> str:
    words = "; ".join(decision.reasons) or decision.code or decision.verdict
    return f"{words} ({decision.policy_version})"


def pending_approvals(kit: Kit, *, limit: int = 1000) -> tuple[ApprovalRow, ...]:
    """Every question that waits for an answer, oldest first."""
    rows = kit.journal.rows("approval", active=True, limit=limit)
    return readable(rows, ApprovalRow)
