"""Listening: evidence that arrives late; follow-up runs for terminal ones (rules 13 and 25)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.errors import UnknownName
from amends.core.evidence import Evidence
from amends.core.identity import run_claim
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionStatus, Outcome, ParkedCause, RunStatus
from amends.ports.journal import RowKey
from amends.runtime import drafting
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims
from amends.runtime.escalations import Escalations
from amends.runtime.kit import Kit

_S = ActionStatus
_TOLD = {Outcome.SUCCEEDED: "exists", Outcome.FAILED: "revoked", Outcome.UNKNOWN: "in-doubt"}
_IN_DOUBT = ("it_happened", "it_did_not_happen", "accept_as_is", "abandon")  # a look finds only what bears its own id


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
            return self._contradicted(state, action, evidence, happened=happened, reference=reference)
        body = e.LateEvidence(
            outcome=Outcome.SUCCEEDED if happened else Outcome.FAILED, evidence=evidence, reference=reference
        )

        return self.book.record(run_id, lambda state: self.heard(state, state.actions[action_id], body))

    def heard(self, state: RunState, action: ActionRow, body: e.LateEvidence) -> list[Draft]:
        """Late evidence, and what it proves about an action that nobody is looking at just now: what is doubtful is
        settled, what is parked reopens (rule 22), and a run that waits for a later date is woken.
        """
        late = Draft(body, action.action_id)
        if state.run.terminal:
            return [late]
        heard = action.model_copy(
            update={
                "late": (*action.late, body.evidence),
                "late_outcome": body.outcome,
                "late_effect": body.effect,
                "late_reference": body.reference,
            }
        )
        folded = outcomes.folded_late(heard, at_us=max(body.evidence.at_us, state.run.ledger_us))
        return [late] if folded is None else [late, *self.escalations.heard(state, action, folded)]

    # --- after the end ------------------------------------------------------------------------------------

    def after_the_end(self, state: RunState, action: ActionRow, body: e.LateEvidence, *, attempt: int) -> RunState:
        """What became known of an attempt after a run's end: a follow-up run, if it contradicts what the ledger says,
        or if the call may have landed behind its back (rule 25).
        """
        if body.outcome is Outcome.UNKNOWN:
            told = max(action.compensated_us or 0, action.outcome_us or 0)
            if body.evidence.at_us <= told or (_stands(action) and attempt == action.attempt):
                return state  # what was seen since says more
            return self._follow_up(
                state, action, body.evidence, Outcome.UNKNOWN, "", "it may have landed after the end"
            )
        if body.evidence.strength == "weak":
            return state
        happened = body.outcome is Outcome.SUCCEEDED
        return self._contradicted(state, action, body.evidence, happened=happened, reference=body.reference)

    def _contradicted(
        self, state: RunState, action: ActionRow, evidence: Evidence, *, happened: bool, reference: str
    ) -> RunState:
        same = not reference or not action.reference or reference == action.reference
        known = _stands(action)
        if (happened == known and (same or not happened)) or (action.proven_failed and happened):
            return state
        if happened and same and action.compensated_us is not None and evidence.at_us <= action.compensated_us:
            return state  # an answer from before it was seen to be gone
        if not happened:
            return self._follow_up(state, action, evidence, Outcome.FAILED, "", "it was revoked by the provider")
        wrong = "it exists twice" if known else "it exists after all"
        return self._follow_up(state, action, evidence, Outcome.SUCCEEDED, reference or action.reference, wrong)

    def _follow_up(
        self, state: RunState, action: ActionRow, evidence: Evidence, outcome: Outcome, reference: str, wrong: str
    ) -> RunState:
        """A terminal run never changes: what became known later is a run of its own, which a person decides about.
        The same fact told twice opens one.
        """
        detail = f"`{action.capability}` of run `{state.run.run_key}`: {wrong} ({evidence.detail})"
        recorded = e.OutcomeRecorded(
            outcome=outcome,
            evidence=evidence,
            effect=action.effect if outcome is Outcome.SUCCEEDED else {},
            reference=reference,
        )
        opened = self._opened(state, f"{action.action_id}/{_TOLD[outcome]}")
        claim = RowKey("claim", run_claim(opened.tenant, opened.workflow, opened.run_key))
        known_run = self.kit.journal.row(claim)
        if known_run is not None:
            return self.book.state(known_run.run_id)
        found_id = self.kit.ids.new()

        cause, choices = (ParkedCause.UNKNOWN, _IN_DOUBT) if outcome is Outcome.UNKNOWN else (ParkedCause.DIVERGED, ())

        def parked(now: RunState) -> list[Draft]:
            return [
                *self.escalations.parked(now, now.actions[found_id], cause, detail, choices),
                Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=detail)),
                Draft(e.RunMoved(to=RunStatus.NEEDS_HUMAN, reason="a person decides what is to be done")),
                Draft(e.LeaseReleased()),
            ]

        found = [Draft(drafting.twin(action, f"{action.slot}~later"), found_id), Draft(recorded, found_id)]
        return self.book.open(self.kit.ids.new(), opened, lambda _: found, parked)

    def _opened(self, state: RunState, what: str) -> e.RunOpened:
        run = state.run
        return e.RunOpened(
            tenant=run.tenant,
            workflow=run.workflow,
            run_key=f"{run.run_key}/follow-up/{what}",
            agent=run.agent,
            initiator=run.initiator,
            owner=run.owner,
            intent_ref=run.intent_ref,
            holder=self.kit.owners.me(),
            lease_until_us=self.kit.clock.now_us() + self.kit.lease_us,
            caused_by=run.run_id,
        )


def _stands(action: ActionRow) -> bool:
    """True if the ledger says that the effect is there."""
    return action.outcome is Outcome.SUCCEEDED and action.status is not _S.COMPENSATED
