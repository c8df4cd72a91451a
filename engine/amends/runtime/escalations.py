"""Escalations: actions parked with a bounded work item, people's named choices carried out (rules 16, 22, 31, 34)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.canonical import Json
from amends.core.errors import Conflict, InvalidInput, UnknownName
from amends.core.rows import ActionRow, EscalationRow, RunState
from amends.core.schedule import microseconds
from amends.core.settling import settled
from amends.core.status import ActionStatus, Outcome, ParkedCause, RunStatus
from amends.runtime.book import Book, Draft
from amends.runtime.kit import Kit
from amends.runtime.listing import readable

_S = ActionStatus

CHOICES: dict[ParkedCause, tuple[str, ...]] = {
    ParkedCause.UNKNOWN: ("it_happened", "it_did_not_happen", "look_again", "accept_as_is", "abandon"),
    ParkedCause.DENIED: ("look_again", "compensate", "accept_as_is", "it_did_not_happen", "withdraw", "abandon"),
    ParkedCause.DIVERGED: ("look_again", "compensate", "accept_as_is", "it_did_not_happen", "abandon"),
    ParkedCause.UNDO_FAILED: ("compensate", "already_undone", "accept_as_is", "abandon"),
    ParkedCause.UNREGISTERED: ("already_undone", "accept_as_is", "abandon"),
    ParkedCause.ADAPTER_UNAVAILABLE: ("look_again", "compensate", "already_undone", "accept_as_is", "abandon"),
    ParkedCause.NOT_DELIVERED: ("it_happened", "accept_as_is", "abandon"),
    ParkedCause.POLICY_CHANGED: ("compensate", "look_again", "accept_as_is", "withdraw", "abandon"),
}
_ON_THE_WAY = {RunStatus.OPEN: (RunStatus.RECOVERING,), RunStatus.COMMITTING: (RunStatus.NEEDS_HUMAN,)}
UNDRIVABLE = "cannot_be_driven"
NEEDS_EVIDENCE = frozenset({"it_happened", "it_did_not_happen", "already_undone"})


@dataclass(frozen=True)
class Escalations:
    """The bounded queue of what waits for a person."""

    kit: Kit
    book: Book

    def park(self, run_id: str, action_id: str, cause: ParkedCause, detail: str, epoch: int) -> RunState:
        """Stop automation for one action, with an open escalation that says why."""
        return self.book.record(
            run_id, lambda state: self.parked(state, state.actions[action_id], cause, detail), epoch=epoch
        )

    def parked(
        self, state: RunState, action: ActionRow, cause: ParkedCause, detail: str, choices: tuple[str, ...] = ()
    ) -> list[Draft]:
        """The drafts that park an action: one open item per (run, action, cause) (rule 16). `choices`: if not those
        that the cause has by itself.
        """
        drafts = [Draft(e.ActionParked(cause=cause, detail=detail), action.action_id)]
        if not self._is_open(state, action.action_id, cause.value):
            drafts.append(self._opened(state, action, cause.value, detail, choices or CHOICES[cause]))
        return drafts

    def escalate_inverse(self, run_id: str, action_id: str, target_id: str, epoch: int) -> RunState:
        """A model proposed an inverse that nobody registered: a person reconciles (rule 11)."""

        def decide(state: RunState) -> list[Draft]:
            action, target = state.actions[action_id], state.actions[target_id]
            detail = f"`{action.capability}` was proposed against `{target.capability}` on `{target.resource}`"
            return [self._opened(state, action, "unregistered_inverse", detail, ("acknowledge", "abandon"))]

        return self.book.record(run_id, decide, epoch=epoch)

    def undrivable(self, run_id: str, detail: str) -> RunState:
        """Recovery itself stops at this run: a person looks, with one item on the action it stands at (rule 16)."""

        def decide(state: RunState) -> list[Draft]:
            actions = state.forward_actions()
            action = next((a for a in actions if not settled(state, a)), actions[-1] if actions else None)
            if state.run.terminal or action is None or self._is_open(state, action.action_id, UNDRIVABLE):
                return []
            return [self._opened(state, action, UNDRIVABLE, detail, ("look_again", "abandon"))]

        return self.book.record(run_id, decide)

    def _is_open(self, state: RunState, action_id: str, cause: str) -> bool:
        return any(
            item.action_id == action_id and item.cause == cause and item.status != "resolved"
            for item in state.escalations.values()
        )

    def _opened(self, state: RunState, action: ActionRow, cause: str, detail: str, choices: tuple[str, ...]) -> Draft:
        rule = action.contract.escalation
        now = max(self.kit.clock.now_us(), state.run.ledger_us)
        body = e.EscalationOpened(
            escalation_id=self.kit.ids.new(),
            cause=cause,
            queue=rule.queue,
            owner=rule.owner or state.run.owner,
            deadline_us=now + microseconds(rule.deadline_seconds),
            known=_known(action),
            in_doubt=detail,
            proposed=_proposed(cause),
            choices=choices,
            evidence=_evidence(action),
        )
        return Draft(body, action.action_id)

    # --- resolving escalations ----------------------------------------------------------------------------

    def resolve(
        self,
        run_id: str,
        escalation_id: str,
        choice: str,
        *,
        by: str,
        channel: str,
        comment: str = "",
        evidence: str = "",
        reference: str = "",
    ) -> RunState:
        """Carry out a person's named choice; compare-and-set on the item (rule 31)."""

        def decide(state: RunState) -> list[Draft]:
            item = self._item(state, escalation_id)
            if choice not in item.choices:
                raise InvalidInput(f"`{choice}` is not a choice here", hint=f"choose one of {', '.join(item.choices)}")
            if choice in NEEDS_EVIDENCE and not evidence:
                raise InvalidInput(f"`{choice}` needs evidence", hint="say where you looked: --evidence '…'")
            action = state.actions[item.action_id]
            drafts = self._carry_out(state, action, choice, by, comment, evidence, reference)
            resolved = e.EscalationResolved(
                escalation_id=escalation_id, choice=choice, by=by, channel=channel, comment=comment, evidence=evidence
            )
            drafts.append(Draft(resolved, item.action_id))
            if choice == "abandon":
                return drafts + self._abandoned(state, item, by)
            return drafts + self.waking(state, f"a person decided: {choice}", by)

        return self.book.record(run_id, decide)

    def acknowledge(self, run_id: str, escalation_id: str, *, by: str, channel: str) -> RunState:
        """A person has seen it: paging stops; it stays open."""

        def decide(state: RunState) -> list[Draft]:
            item = self._item(state, escalation_id)
            body = e.EscalationAcknowledged(escalation_id=escalation_id, by=by, channel=channel)
            return [Draft(body, item.action_id)] if item.status == "open" else []

        return self.book.record(run_id, decide)

    def _item(self, state: RunState, escalation_id: str) -> EscalationRow:
        item = state.escalations.get(escalation_id)
        if item is None:
            raise UnknownName(f"no escalation `{escalation_id}`", hint="`amends inbox list` shows what waits")
        if item.status == "resolved":
            raise Conflict(
                f"`{item.by}` already decided `{item.choice}`",
                hint="nothing is left to decide",
                by=item.by,
                choice=item.choice,
            )
        return item

    def _carry_out(
        self, state: RunState, action: ActionRow, choice: str, by: str, comment: str, evidence: str, reference: str
    ) -> list[Draft]:
        now = max(self.kit.clock.now_us(), state.run.ledger_us)
        action_id = action.action_id
        if action.status is not _S.NEEDS_HUMAN:
            return []
        if state.run.terminal:
            raise Conflict(f"the run is `{state.run.status}` and never changes again", hint="acknowledge it")
        match choice:
            case "it_happened" | "it_did_not_happen":
                body = outcomes.said_by_person(
                    happened=choice == "it_happened", at_us=now, by=by, evidence=evidence, reference=reference
                )
                return [Draft(body, action_id)]
            case "already_undone":
                return [Draft(e.CompensationVerified(how="person"), action_id)]
            case "accept_as_is":
                return [Draft(e.ActionAccepted(by=by, comment=comment), action_id)]
            case "withdraw" if not action.ever_sent:
                return [Draft(e.ActionWithdrawn(reason=comment or "withdrawn by a person", by=by), action_id)]
            case "compensate" | "look_again":
                return [Draft(e.ActionReopened(reason=choice, by=by), action_id)]
            case "abandon":
                return []
            case _:
                raise InvalidInput(f"`{choice}` does not apply to an action that was sent", hint="choose another")

    def _abandoned(self, state: RunState, decided: EscalationRow, by: str) -> list[Draft]:
        """The run ends for good, and with it every other question about it."""
        drafts = [
            Draft(
                e.EscalationResolved(escalation_id=item.escalation_id, choice="abandon", by=by, channel="engine"),
                item.action_id,
            )
            for item in state.escalations.values()
            if item.status != "resolved" and item.escalation_id != decided.escalation_id
        ]
        drafts += [
            Draft(e.ApprovalClosed(approval_id=row.approval_id, how="withdrawn", by=by), row.action_id)
            for row in state.approvals.values()
            if row.status == "pending"
        ]
        moves = [*_ON_THE_WAY.get(state.run.status, ()), RunStatus.ABANDONED]
        return drafts + [Draft(e.RunMoved(to=to, reason="abandoned by a person", by=by)) for to in moves]

    def waking(self, state: RunState, reason: str, by: str = "") -> list[Draft]:
        """What lets a waiting run go on in its last direction, now and not when it was due."""
        if state.run.status is RunStatus.NEEDS_HUMAN:
            to = RunStatus.COMMITTING if state.run.forward else RunStatus.RECOVERING
            return [Draft(e.RunMoved(to=to, reason=reason, by=by))]
        if state.run.status in {RunStatus.RECOVERING, RunStatus.COMMITTING} and state.run.due_us is not None:
            return [Draft(e.RecoveryWaiting(due_us=self.kit.clock.now_us()))]
        return []

    def closed(
        self, state: RunState, action_id: str, choice: str, by: str = "engine", evidence: str = ""
    ) -> list[Draft]:
        """Close every open item about an action whose question is answered."""
        return [
            Draft(
                e.EscalationResolved(
                    escalation_id=item.escalation_id, choice=choice, by=by, channel="engine", evidence=evidence
                ),
                action_id,
            )
            for item in state.escalations.values()
            if item.action_id == action_id and item.status != "resolved"
        ]

    def heard(self, state: RunState, action: ActionRow, folded: e.OutcomeRecorded) -> list[Draft]:
        """Evidence settles an action: its open items are closed, and a run that waited for it goes on (rule 22). Nobody
        is asked any more whether to send what may have landed.
        """
        drafts = [Draft(folded, action.action_id)]
        asked = state.approvals.get(action.approval_id)
        if action.status is _S.AWAITING_APPROVAL and asked is not None and asked.status in {"pending", "approved"}:
            drafts.append(Draft(e.ApprovalClosed(approval_id=asked.approval_id, how="withdrawn"), action.action_id))
        parked, doubt = action.status is _S.NEEDS_HUMAN, folded.outcome is Outcome.UNKNOWN
        if parked and not doubt:
            drafts += self.closed(state, action.action_id, "late_evidence", evidence=folded.evidence.detail)
            drafts += self.waking(state, "late evidence settles what was in doubt")
        elif doubt and not parked:
            drafts += self.waking(state, "what seemed to come to nothing may exist")
        return drafts

    # --- bounds -------------------------------------------------------------------------------------------

    def queue_full(self) -> bool:
        """True if no more consequential runs may start until people have caught up (rule 16)."""
        limit = self.kit.settings.max_open_escalations
        return len(self.kit.journal.rows("escalation", active=True, limit=limit)) >= limit


def _known(action: ActionRow) -> str:
    evidence = action.evidence[-1] if action.evidence else None
    seen = f"; last evidence: {evidence.code} ({evidence.source})" if evidence else ""
    return f"`{action.capability}` on `{action.resource}` is `{action.status}`, outcome `{action.outcome}`{seen}"


def _proposed(cause: str) -> str:
    proposals = {
        "unknown": "look into the system itself and say whether it happened",
        "denied": "ask the policy's owner, or decide what should stand",
        "diverged": "compare with the before- and after-image: somebody changed it since",
        "undo_failed": "undo it by hand, or accept it",
        "unregistered": "no inverse is registered: undo it by hand, or accept it",
        "adapter_unavailable": "bring the adapter back, then look again",
        "not_delivered": "deliver it yourself and say where, or leave it out",
        "policy_changed": "the policy changed since: decide under the new one",
        UNDRIVABLE: "mend what stops its recovery, then look again; it is tried again meanwhile, less and less often",
        "unregistered_inverse": "check what the agent wanted to take back; nothing was sent",
    }
    return proposals.get(cause, "look at the evidence and decide")


def _evidence(action: ActionRow) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "reference": action.reference,
        "attempts": action.attempt,
        "probes": action.probes,
        "policy_version": action.decided.policy_version if action.decided else "",
        "policy_ids": list(action.decided.policy_ids) if action.decided else [],
    }
    if action.observation is not None:
        facts["observed"] = action.observation.seen
    for name in action.contract.escalation.evidence_fields:
        facts.setdefault(name, action.effect.get(name, action.args.get(name)))
    return facts


def open_items(kit: Kit, *, limit: int = 1000) -> tuple[EscalationRow, ...]:
    """Every open escalation, oldest first."""
    rows = kit.journal.rows("escalation", active=True, limit=limit)
    return readable(rows, EscalationRow)
