"""Looking: authorized, recorded, bounded reads of the real system, and what follows from them (rules 7, 17, 18)."""

from __future__ import annotations

from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.canonical import Json
from amends.core.evidence import Decision, Evidence, Observation
from amends.core.release import absence_of_success_final_us
from amends.core.rows import ActionRow, RunState
from amends.core.status import TRANSITIONS, ActionKind, Move, Outcome, ParkedCause
from amends.runtime import drafting
from amends.runtime.asking import Policy, subject_of
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.flights import Flights, question_of
from amends.runtime.kit import Kit


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, and when it was asked for: what it proves is what held then, however long its driver then stood
    still (rule 4).
    """

    observation: Observation
    began_us: int  # ledger time


@dataclass(frozen=True)
class Looker:
    """Asks the real system about one action at a time."""

    kit: Kit
    book: Book
    policy: Policy
    flights: Flights
    escalations: Escalations

    def reconcile(self, run_id: str, action_id: str, epoch: int, purpose: e.ProbePurpose = "reconcile") -> RunState:
        """Look at an action whose outcome is open and record what the look proves; twins become actions (rule 7)."""
        look = self.observe(run_id, action_id, epoch, purpose)
        if look is None:
            return self.book.state(run_id)
        observation = look.observation

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            now = max(self.kit.clock.now_us(), state.run.ledger_us)
            drafts = [Draft(e.ProbeAnswered(purpose=purpose, observation=observation), action_id)]
            proven = None
            if action.outcome in {Outcome.UNKNOWN, Outcome.FAILED}:
                proven = outcomes.observed(
                    action,
                    observation,
                    looked_us=look.began_us,
                    at_us=now,
                    dead_since_us=state.run.dead_since_us,
                )
            if proven is not None:
                drafts.append(Draft(proven, action_id))
            drafts.extend(self._twins(state, action, observation, now))
            return drafts

        return self.book.record(run_id, decide, epoch=epoch)

    def still_there(self, run_id: str, action_id: str, epoch: int) -> RunState:
        """Look whether a provisional success stands. One that was revoked is gone without us: before the pivot the run
        goes back over it, past it a person decides (rule 7).
        """
        look = self.observe(run_id, action_id, epoch, "still_there")
        if look is None:
            return self.book.state(run_id)
        observation = look.observation

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            drafts = [Draft(e.ProbeAnswered(purpose="still_there", observation=observation), action_id)]
            final = absence_of_success_final_us(action)
            revoked = observation.seen == "absent" and final is not None and look.began_us >= final
            if observation.seen == "diverged" or (revoked and state.pivot_passed):
                detail = observation.detail or "the provider has revoked what it had confirmed"
                return drafts + self.escalations.parked(state, action, ParkedCause.DIVERGED, detail)
            if revoked:
                gone = e.CompensationVerified(how="already_gone", observation=observation)
                drafts.append(Draft(gone, action_id))
            return drafts

        return self.book.record(run_id, decide, epoch=epoch)

    def lost(self, run_id: str, action_id: str, epoch: int) -> RunState:
        """The driver of a call in flight is gone, or silent past every deadline: unknown (rule 14)."""

        def decide(state: RunState) -> list[Draft]:
            now = max(self.kit.clock.now_us(), state.run.ledger_us)
            detail = "its driver was taken over" if state.run.dead_since_us else "it did not return in time"
            return [Draft(outcomes.owner_lost(at_us=now, detail=detail), action_id)]

        return self.book.record(run_id, decide, epoch=epoch)

    def fold_late(self, run_id: str, action_id: str, epoch: int) -> RunState:
        """Let late evidence about an action count, if it proves something (rule 13)."""

        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            folded = outcomes.folded_late(action, at_us=self.kit.ledger_now_us(state.run))
            return [] if folded is None else self.escalations.heard(state, action, folded)

        return self.book.record(run_id, decide, epoch=epoch)

    def observe(self, run_id: str, action_id: str, epoch: int, purpose: e.ProbePurpose) -> Look | None:
        """Authorize, record and ask. `None` if policy denied the read: the action is parked then. A look whether an
        undo has worked counts in the undo's own schedule too.
        """
        state = self.book.state(run_id)
        action = state.actions[action_id]
        decision = self.policy.probe(state.run, subject_of(action))
        if not decision.allowed:
            self._denied(run_id, action_id, epoch, decision)
            return None

        def sent(state: RunState) -> list[Draft]:
            asked = state.actions[action_id]
            undo = state.undo_of(asked) if purpose == "verify_undone" else None
            return [
                Draft(e.DecisionRecorded(phase="probe", decision=decision), action_id),
                *(
                    Draft(e.ProbeSent(purpose=purpose, number=each.probes + 1), each.action_id)
                    for each in (asked, undo)
                    if each is not None
                ),
            ]

        state = self.book.record(run_id, sent, epoch=epoch)
        began_us = state.actions[action_id].probed_us or 0
        self.kit.progress.reached("before_probe", run_id, action_id)
        observation = self._ask(state, action_id, purpose)
        self.kit.progress.reached("after_probe", run_id, action_id)
        return Look(observation, began_us)

    def _ask(self, state: RunState, action_id: str, purpose: e.ProbePurpose) -> Observation:
        action = state.actions[action_id]
        offer = self.kit.catalog.get(action.contract.capability)
        verifying = purpose in {"verify_undone", "late_check"}
        ask = offer.capability.verify_undone if verifying else offer.capability.probe
        return self.flights.observe(ask, question_of(self.kit, action, offer), offer.context.name)

    def _denied(self, run_id: str, action_id: str, epoch: int, decision: Decision) -> None:
        def decide(state: RunState) -> list[Draft]:
            action = state.actions[action_id]
            drafts = [Draft(e.DecisionRecorded(phase="probe", decision=decision), action_id)]
            if (action.status, Move.PARK) in TRANSITIONS:
                detail = f"the read was refused by policy: {decision.code}"
                drafts += self.escalations.parked(state, action, ParkedCause.DENIED, detail)
            return drafts

        self.book.record(run_id, decide, epoch=epoch)

    def _twins(self, state: RunState, action: ActionRow, observation: Observation, now_us: int) -> list[Draft]:
        if observation.seen != "many" or action.kind is not ActionKind.DO:
            return []
        own = action.reference or observation.reference
        known = {own} | {a.reference for a in state.actions.values() if a.of == action.action_id}
        drafts: list[Draft] = []
        for reference in observation.twins:
            if reference in known or not outcomes.valid_reference(action.contract, reference):
                continue
            twin_id = self.kit.ids.new()
            drafts += [
                Draft(_twin_planned(action, reference), twin_id),
                Draft(_twin_found(action, observation, reference, now_us), twin_id),
            ]
        return drafts


def _twin_planned(action: ActionRow, reference: str) -> e.ActionPlanned:
    return drafting.twin(
        action,
        f"{action.slot}~{reference}",
        generation=action.generation,
        depends_on=action.depends_on if action.depends_on is not None else action.after,
        inputs_from=action.inputs_from,
    )


def _twin_found(action: ActionRow, observation: Observation, reference: str, now_us: int) -> e.OutcomeRecorded:
    effect: dict[str, Json] = dict(observation.effect)
    if action.contract.reference is not None:
        effect[action.contract.reference.field] = reference
    return e.OutcomeRecorded(
        outcome=Outcome.SUCCEEDED,
        evidence=Evidence(source="probe", strength="authoritative", at_us=now_us, code="twin_found"),
        effect=effect,
        reference=reference,
    )
