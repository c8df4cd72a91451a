"""Runs for tests, built from real events: each is folded at once, so no state exists that a ledger could not hold.

    RunBuilder(clock).planned("a").intent().succeeded().planned("b", depends_on=("a",)).intent().lost().state

Each method records facts about the action named last (`on` names another one) and returns the builder. Action names
are their ids. Time is the clock's; `later` lets it pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from amends.core import events as e
from amends.core import outcomes
from amends.core.canonical import Json, digest
from amends.core.contract import Contract, Phase
from amends.core.evidence import Decision, Evidence, Observation, Seen, Verdict
from amends.core.identity import idempotency_key
from amends.core.schedule import microseconds
from amends.core.status import ActionKind, Outcome, ParkedCause
from amends.testing.contracts import reversible
from amends.testing.run_record import PERSON, RunRecord


class RunBuilder(RunRecord):
    """One run under construction: `state` after all `events`."""

    def planned(
        self,
        name: str,
        contract: Contract | None = None,
        *,
        kind: ActionKind = ActionKind.DO,
        of: str = "",
        rung: str = "",
        slot: str = "",
        generation: int = 1,
        args: Mapping[str, Json] | None = None,
        depends_on: tuple[str, ...] | None = None,
        inputs_from: tuple[str, ...] = (),
        claim: str = "",
        place: str = "",
        revision: int = 0,
        label: str = "",
        covers: tuple[str, ...] = (),
        required: bool = True,
    ) -> Self:
        """An intended call; by default a reversible one in the slot `<name>`."""
        contract = contract or reversible()
        given: dict[str, Json] = {"name": name} if args is None else dict(args)
        body = e.ActionPlanned(
            action_kind=kind,
            of=of,
            rung=rung,
            capability=contract.capability,
            adapter=contract.capability.split(".", 1)[0],
            instance="main",
            environment="staging",
            slot=slot or name,
            label=label,
            generation=generation,
            args=given,
            args_digest=digest(given),
            resource=f"{contract.effect.resource_type}:{name}",
            contract=contract,
            depends_on=depends_on,
            inputs_from=inputs_from,
            claim=claim,
            place=place,
            revision=revision,
            covers=covers,
            required=required,
        )
        return self.record(body, name).on(name)

    def decided(self, phase: Phase = "forward", verdict: Verdict = "allow", version: str = "site@sha256:1") -> Self:
        """Policy was asked."""
        decision = Decision(
            decision_id=self.fresh("decision"),
            verdict=verdict,
            action=self.action().capability,
            policy_version=version,
            effective_digest=f"effective-{version}",
        )
        return self.record(e.DecisionRecorded(phase=phase, decision=decision))

    def denied(self, reason: str = "no policy permits it") -> Self:
        """Policy said no."""
        return self.record(e.ActionDenied(code="no_permit", reason=reason))

    def queued(self) -> Self:
        """Into the outbox, in the mode of the contract's release (`on_success` if it has none)."""
        release = self.action().contract.release
        return self.record(e.ActionQueued(mode=release.mode if release else "on_success", content_digest="content-1"))

    def intent(self, *, before: Mapping[str, Json] | None = None, approval_id: str = "") -> Self:
        """The durable intent of the next attempt; its deadline is the contract's time-out."""
        action = self.action()
        return self.record(
            e.IntentRecorded(
                attempt=action.attempt + 1,
                idempotency_key=idempotency_key(
                    self.run_id, action.kind, action.slot, action.generation, action.of, action.rung
                ),
                deadline_us=self.now_us + microseconds(action.contract.limits.timeout_seconds),
                before_image=dict(before or {}),
                content_digest=action.content_digest,
                approval_id=approval_id,
            )
        )

    def succeeded(
        self, *, reference: str = "", effect: Mapping[str, Json] | None = None, parts: tuple[str, ...] = ()
    ) -> Self:
        """The call returned; the contract decides whether that is proof."""
        action = self.action()
        made = {"id": f"made-{action.action_id}"} if effect is None else dict(effect)
        return self.record(
            outcomes.answered(
                action.contract,
                at_us=self.now_us,
                reference=reference or f"ref-{action.action_id}",
                effect=made,
                output=made,
                after={},
                parts=parts or action.contract.parts,
            )
        )

    def not_sent(self) -> Self:
        """Proof that nothing left this machine."""
        return self.record(outcomes.not_sent(at_us=self.now_us, code="connection_refused", detail="nobody listens"))

    def refused(self, *, again: bool = False, retry_after_seconds: float | None = None) -> Self:
        """The provider's authoritative no."""
        return self.record(
            outcomes.refused(
                at_us=self.now_us,
                code="rate_limited" if again else "invalid",
                detail="the provider said no",
                again=again,
                retry_after_seconds=retry_after_seconds,
            )
        )

    def lost(self) -> Self:
        """The answer is missing."""
        return self.record(outcomes.lost(at_us=self.now_us, code="read_timeout", detail="no answer"))

    def settled(self, outcome: Outcome, code: str = "person", source: Literal["person", "probe"] = "person") -> Self:
        """An outcome on authority: a person's word, or a probe's."""
        evidence = Evidence(source=source, strength="authoritative", at_us=self.now_us, code=code, by=PERSON)
        return self.record(e.OutcomeRecorded(outcome=outcome, evidence=evidence))

    def adopted(self) -> Self:
        """The effect exists and belongs to a committed run."""
        return self.record(outcomes.adopted(self.action(), at_us=self.now_us))

    # --- looking ------------------------------------------------------------------------------------------

    def probed(
        self,
        seen: Seen,
        purpose: e.ProbePurpose = "reconcile",
        *,
        parts: tuple[str, ...] = (),
        reference: str = "",
        state: Mapping[str, Json] | None = None,
        retry_after_seconds: float | None = None,
    ) -> Self:
        """One look, and the outcome it proves, if it proves one."""
        action = self.action()
        observation = Observation(
            seen=seen,
            parts=parts,
            reference=reference,
            state=dict(state or {}),
            retry_after_seconds=retry_after_seconds,
        )
        self.record(e.ProbeSent(purpose=purpose, number=action.probes + 1))
        self.record(e.ProbeAnswered(purpose=purpose, observation=observation))
        if action.outcome in {Outcome.UNKNOWN, Outcome.FAILED} and purpose in {"reconcile", "confirm"}:
            proven = outcomes.observed(
                self.action(),
                observation,
                looked_us=self.action().probed_us or 0,
                at_us=self.now_us,
                dead_since_us=self.state.run.dead_since_us,
            )
            if proven is not None:
                self.record(proven)
        return self

    def late(self, outcome: e.OutcomeRecorded) -> Self:
        """Evidence from a stale owner or a call-back."""
        return self.record(outcomes.late(outcome))

    # --- taking back --------------------------------------------------------------------------------------

    def compensating(self, rung: str = "") -> Self:
        """An undo of the action named last is planned and lives; go on with the undo."""
        forward = self.action()
        rung = rung or forward.contract.compensation[0].name
        undo = self.fresh(f"undo-{forward.action_id}")
        self.planned(undo, forward.contract, kind=ActionKind.UNDO, of=forward.action_id, rung=rung, args=forward.args)
        self.record(e.CompensationStarted(undo=undo, rung=rung), forward.action_id)
        return self

    def undone(
        self,
        how: Literal["undone", "already_gone", "nothing_to_undo", "person"] = "undone",
        *,
        late_check_seconds: float | None = None,
    ) -> Self:
        """A separate read found the effect gone; go on with the forward action."""
        action = self.action()
        forward = self.action(action.of) if action.kind is ActionKind.UNDO else action
        undo = self.state.undo_of(forward)
        if undo is not None and undo.outcome is Outcome.UNKNOWN:
            self.on(undo.action_id).settled(Outcome.SUCCEEDED, "verified_undone", "probe")
        due = None if late_check_seconds is None else self.now_us + microseconds(late_check_seconds)
        self.on(forward.action_id)
        return self.record(e.CompensationVerified(how=how, undo=forward.undo, late_check_due_us=due))

    def parked(self, cause: ParkedCause = ParkedCause.UNKNOWN) -> Self:
        """Waits for a person."""
        return self.record(e.ActionParked(cause=cause, detail="a person must look"))

    def reopened(self, by: str = PERSON) -> Self:
        """Automation goes on."""
        return self.record(e.ActionReopened(reason="compensate", by=by))

    def accepted(self, by: str = PERSON) -> Self:
        """A person takes the state as it is."""
        return self.record(e.ActionAccepted(by=by))

    def withdrawn(self, reason: str = "never_sent") -> Self:
        """Left the outbox unsent."""
        return self.record(e.ActionWithdrawn(reason=reason))
