"""Listening: evidence that arrives late; follow-up runs for terminal ones (rules 13 and 25)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.errors import UnknownName
from amends.core.evidence import Evidence
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit

_S = ActionStatus


@dataclass(frozen=True)
class Listener:
    """Takes evidence that nobody waits for any more."""

    kit: Kit
    book: Book
    escalations: Escalations
    claims: Claims

    def report(
        self, run_id: str, action_id: str, *, happened: bool, source: str, reference: str, detail: str
    ) -> RunState:
        """Record the evidence; the run's driver folds it at its next plan. Returns the run it was recorded in."""
        state = self.book.state(run_id)
        action = state.actions.get(action_id)
        if action is None:
            raise UnknownName(f"run `{run_id}` has no action `{action_id}`", hint="`amends runs show` lists them")
        evidence = Evidence(
            source="late",
            strength="authoritative",
            at_us=max(self.kit.clock.now_us(), state.run.ledger_us),
            code="reported",
            detail=f"{source}: {detail}" if detail else source,
        )
        if state.run.terminal:
            return self._follow_up(state, action, evidence, happened=happened, reference=reference)
        body = e.LateEvidence(
            outcome=Outcome.SUCCEEDED if happened else Outcome.FAILED, evidence=evidence, reference=reference
        )

        def decide(state: RunState) -> list[Draft]:
            drafts = [Draft(body, action_id)]
            return [*drafts, *self._waking(state, state.actions[action_id], body)]

        return self.book.record(run_id, decide)

    def _waking(self, state: RunState, action: ActionRow, body: e.LateEvidence) -> list[Draft]:
        """A parked unknown reopens on authoritative evidence (rule 22)."""
        if action.status is not _S.NEEDS_HUMAN or action.outcome is not Outcome.UNKNOWN:
            return []
        heard = action.model_copy(
            update={
                "late": (*action.late, body.evidence),
                "late_outcome": body.outcome,
                "late_reference": body.reference,
            }
        )
        folded = outcomes.folded_late(heard, at_us=body.evidence.at_us)
        if folded is None:
            return []
        closed = self.escalations.closed(state, action.action_id, "late_evidence", evidence=body.evidence.detail)
        woken = self.escalations.waking(state, "late evidence settles what was in doubt")
        return [Draft(folded, action.action_id), *closed, *woken]

    def _follow_up(
        self, state: RunState, action: ActionRow, evidence: Evidence, *, happened: bool, reference: str
    ) -> RunState:
        """A terminal run never changes: what became known later is a run of its own, which corrects or escalates."""
        known = action.outcome is Outcome.SUCCEEDED and action.status is not _S.COMPENSATED
        if happened == known:
            return state
        opened = self._open(state, action)
        twin_id = self.kit.ids.new()
        outcome = e.OutcomeRecorded(
            outcome=Outcome.SUCCEEDED, evidence=evidence, effect=action.effect, reference=reference or action.reference
        )
        wrong = "it exists after all" if happened else "it was revoked by the provider"
        detail = f"`{action.capability}` of run `{state.run.run_key}`: {wrong} ({evidence.detail})"
        planned = [Draft(_found(action), twin_id), Draft(outcome, twin_id)]
        run_id = opened.run.run_id
        self.book.record(run_id, lambda _: planned, epoch=opened.run.epoch)

        def park(now: RunState) -> list[Draft]:
            parked = self.escalations.parked(now, now.actions[twin_id], ParkedCause.DIVERGED, detail)
            moves = [
                Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=detail)),
                Draft(e.RunMoved(to=RunStatus.NEEDS_HUMAN, reason="a person decides what is to be done")),
                Draft(e.LeaseReleased()),
            ]
            return [*parked, *moves]

        return self.book.record(run_id, park, epoch=opened.run.epoch)

    def _open(self, state: RunState, action: ActionRow) -> RunState:
        run = state.run
        body = e.RunOpened(
            tenant=run.tenant,
            workflow=run.workflow,
            run_key=f"{run.run_key}/follow-up/{action.action_id}/{self.kit.ids.new()}",
            agent=run.agent,
            initiator=run.initiator,
            owner=run.owner,
            intent_ref=run.intent_ref,
            holder=self.kit.owners.me(),
            lease_until_us=self.kit.clock.now_us() + self.kit.lease_us,
            caused_by=run.run_id,
        )
        return self.book.open(self.kit.ids.new(), body)


def _found(action: ActionRow) -> e.ActionPlanned:
    return e.ActionPlanned(
        action_kind=ActionKind.DUPLICATE,
        of=action.action_id,
        capability=action.capability,
        adapter=action.adapter,
        instance=action.instance,
        environment=action.environment,
        slot=f"{action.slot}~later",
        args=action.args,
        args_digest=action.args_digest,
        input=action.input,
        resource=action.resource,
        contract=action.contract,
        depends_on=(),
    )
