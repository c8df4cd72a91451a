"""Runs for tests, built from real events: each is folded at once, so no state exists that a ledger could not hold.

    RunBuilder(clock).planned("a").intent().succeeded().planned("b", depends_on=("a",)).intent().lost().state

Each method records facts about the action named last (`on` names another one) and returns the builder. Action names
are their ids. Time is the clock's; `later` lets it pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from amends.core import events as e
from amends.core import fold, outcomes
from amends.core.canonical import Json, digest
from amends.core.contract import Contract, Phase
from amends.core.evidence import Decision, Evidence, Observation, Seen, Verdict
from amends.core.identity import idempotency_key
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionKind, Outcome, ParkedCause, RunStatus
from amends.testing.contracts import reversible
from amends.testing.fakes import SimClock

PERSON = "Maya Lind"


class RunBuilder:
    """One run under construction: `state` after all `events`. Raises what `fold.apply` raises and is unchanged then."""

    def __init__(
        self,
        clock: SimClock | None = None,
        *,
        run_id: str = "run-1",
        workflow: str = "billing-field",
        run_key: str = "key-1",
        check: str = "",
        lease_seconds: float = 30.0,
    ) -> None:
        self.clock = clock or SimClock()
        self.run_id = run_id
        self._current = ""
        self._epoch = 1
        self._made = 0
        opened = e.RunOpened(
            tenant="acme",
            workflow=workflow,
            run_key=run_key,
            agent="coder",
            initiator="user-7",
            owner=PERSON,
            check=check,
            holder=e.Holder(owner_id="owner-1", host="host-1", pid=1, owner_file="owner-1.lock"),
            lease_until_us=self.clock.now_us() + microseconds(lease_seconds),
        )
        first = e.Event(f"{run_id}-1", self.clock.now_us(), run_id, 1, "", 1, opened)
        self.events = [first]
        self.state: RunState = fold.apply(None, first)

    # --- reading ------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Ledger time: the clock's, never before the last event."""
        return max(self.clock.now_us(), self.state.run.ledger_us)

    def action(self, name: str = "") -> ActionRow:
        """The row of `name`, or of the action named last."""
        return self.state.actions[name or self._current]

    # --- the bottom: anything may be recorded -------------------------------------------------------------

    def record(self, body: e.Body, action: str | None = None) -> RunBuilder:
        """Append one fact about `action` (`None`: the one named last; empty: the run)."""
        name = self._current if action is None else action
        number = len(self.events) + 1
        event = e.Event(f"{self.run_id}-{number}", self.now_us, self.run_id, number, name, self._epoch, body)
        self.state = fold.apply(self.state, event)
        self.events.append(event)
        return self

    def on(self, name: str) -> RunBuilder:
        """Go on with another action."""
        self._current = name
        return self

    def later(self, seconds: float) -> RunBuilder:
        """Let time pass."""
        self.clock.advance(seconds)
        return self

    def _fresh(self, word: str) -> str:
        self._made += 1
        return f"{word}-{self._made}"

    # --- forward actions ----------------------------------------------------------------------------------

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
    ) -> RunBuilder:
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

    def decided(
        self, phase: Phase = "forward", verdict: Verdict = "allow", version: str = "site@sha256:1"
    ) -> RunBuilder:
        """Policy was asked."""
        decision = Decision(
            decision_id=self._fresh("decision"),
            verdict=verdict,
            action=self.action().capability,
            policy_version=version,
            effective_digest=f"effective-{version}",
        )
        return self.record(e.DecisionRecorded(phase=phase, decision=decision))

    def denied(self, reason: str = "no policy permits it") -> RunBuilder:
        """Policy said no."""
        return self.record(e.ActionDenied(code="no_permit", reason=reason))

    def queued(self) -> RunBuilder:
        """Into the outbox, in the mode of the contract's release (`on_success` if it has none)."""
        release = self.action().contract.release
        return self.record(e.ActionQueued(mode=release.mode if release else "on_success", content_digest="content-1"))

    def intent(self, *, before: Mapping[str, Json] | None = None, approval_id: str = "") -> RunBuilder:
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
    ) -> RunBuilder:
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

    def not_sent(self) -> RunBuilder:
        """Proof that nothing left this machine."""
        return self.record(outcomes.not_sent(at_us=self.now_us, code="connection_refused", detail="nobody listens"))

    def refused(self, *, again: bool = False, retry_after_seconds: float | None = None) -> RunBuilder:
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

    def lost(self) -> RunBuilder:
        """The answer is missing."""
        return self.record(outcomes.lost(at_us=self.now_us, code="read_timeout", detail="no answer"))

    def settled(
        self, outcome: Outcome, code: str = "person", source: Literal["person", "probe"] = "person"
    ) -> RunBuilder:
        """An outcome on authority: a person's word, or a probe's."""
        evidence = Evidence(source=source, strength="authoritative", at_us=self.now_us, code=code, by=PERSON)
        return self.record(e.OutcomeRecorded(outcome=outcome, evidence=evidence))

    def adopted(self) -> RunBuilder:
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
    ) -> RunBuilder:
        """One look, and the outcome it proves, if it proves one."""
        action = self.action()
        observation = Observation(seen=seen, parts=parts, reference=reference, state=dict(state or {}))
        self.record(e.ProbeSent(purpose=purpose, number=action.probes + 1))
        self.record(e.ProbeAnswered(purpose=purpose, observation=observation))
        if action.outcome in {Outcome.UNKNOWN, Outcome.FAILED} and purpose in {"reconcile", "confirm"}:
            proven = outcomes.observed(
                self.action(), observation, at_us=self.now_us, dead_since_us=self.state.run.dead_since_us
            )
            if proven is not None:
                self.record(proven)
        return self

    def late(self, outcome: e.OutcomeRecorded) -> RunBuilder:
        """Evidence from a stale owner or a call-back."""
        return self.record(outcomes.late(outcome))

    # --- taking back --------------------------------------------------------------------------------------

    def compensating(self, rung: str = "") -> RunBuilder:
        """An undo of the action named last is planned and lives; go on with the undo."""
        forward = self.action()
        rung = rung or forward.contract.compensation[0].name
        undo = self._fresh(f"undo-{forward.action_id}")
        self.planned(undo, forward.contract, kind=ActionKind.UNDO, of=forward.action_id, rung=rung, args=forward.args)
        self.record(e.CompensationStarted(undo=undo, rung=rung), forward.action_id)
        return self

    def undone(
        self,
        how: Literal["undone", "already_gone", "nothing_to_undo", "person"] = "undone",
        *,
        late_check_seconds: float | None = None,
    ) -> RunBuilder:
        """A separate read found the effect gone; go on with the forward action."""
        action = self.action()
        forward = self.action(action.of) if action.kind is ActionKind.UNDO else action
        undo = self.state.undo_of(forward)
        if undo is not None and undo.outcome is Outcome.UNKNOWN:
            self.on(undo.action_id).settled(Outcome.SUCCEEDED, "verified_undone", "probe")
        due = None if late_check_seconds is None else self.now_us + microseconds(late_check_seconds)
        self.on(forward.action_id)
        return self.record(e.CompensationVerified(how=how, undo=forward.undo, late_check_due_us=due))

    def parked(self, cause: ParkedCause = ParkedCause.UNKNOWN) -> RunBuilder:
        """Waits for a person."""
        return self.record(e.ActionParked(cause=cause, detail="a person must look"))

    def reopened(self, by: str = PERSON) -> RunBuilder:
        """Automation goes on."""
        return self.record(e.ActionReopened(reason="compensate", by=by))

    def accepted(self, by: str = PERSON) -> RunBuilder:
        """A person takes the state as it is."""
        return self.record(e.ActionAccepted(by=by))

    def withdrawn(self, reason: str = "never_sent") -> RunBuilder:
        """Left the outbox unsent."""
        return self.record(e.ActionWithdrawn(reason=reason))

    # --- people -------------------------------------------------------------------------------------------

    def asked(
        self, phase: Literal["forward", "undo", "release", "correct"] = "release", ttl_seconds: float = 600.0
    ) -> RunBuilder:
        """A person must approve the action named last."""
        action = self.action()
        shown: dict[str, Json] = {"action": action.capability, "args": action.args}
        return self.record(
            e.ApprovalAsked(
                approval_id=self._fresh("approval"),
                phase=phase,
                tier=1,
                shown=shown,
                digest=digest(shown),
                expires_us=self.now_us + microseconds(ttl_seconds),
            )
        )

    def approved(self, by: str = PERSON, *, tier: int = 1) -> RunBuilder:
        """One person's yes."""
        row = self.state.approvals[self.action().approval_id]
        return self.record(
            e.ApprovalGiven(approval_id=row.approval_id, by=by, tier=tier, channel="cli", digest=row.digest)
        )

    def closed(
        self, how: Literal["refused", "expired", "voided", "withdrawn"], *, roll_back: bool = False
    ) -> RunBuilder:
        """No yes can come any more."""
        approval_id = self.action().approval_id
        return self.record(
            e.ApprovalClosed(approval_id=approval_id, how=how, by=PERSON, channel="cli", roll_back=roll_back)
        )

    def escalated(self, cause: str = "unknown", choices: Sequence[str] = ("accept_as_is",)) -> RunBuilder:
        """A bounded work item about the action named last."""
        return self.record(
            e.EscalationOpened(
                escalation_id=self._fresh("escalation"),
                cause=cause,
                queue="recovery",
                owner=PERSON,
                deadline_us=self.now_us + microseconds(86_400),
                known="it was sent",
                in_doubt="whether it took effect",
                proposed="look at the system",
                choices=tuple(choices),
            )
        )

    # --- the run ------------------------------------------------------------------------------------------

    def moved(self, *to: RunStatus) -> RunBuilder:
        """The run's status changed, once per given status."""
        for status in to:
            self.record(e.RunMoved(to=status, reason="test"), "")
        return self

    def claimed(self, *, dead_since_us: int | None = None) -> RunBuilder:
        """Another driver took over under the next epoch."""
        self._epoch += 1
        owner = f"owner-{self._epoch}"
        return self.record(
            e.RunClaimed(
                holder=e.Holder(owner_id=owner, host="host-1", pid=self._epoch, owner_file=f"{owner}.lock"),
                lease_until_us=self.now_us + microseconds(30),
                proof="owner_dead",
                dead_since_us=self.now_us if dead_since_us is None else dead_since_us,
            ),
            "",
        )

    def checkpoint(self, name: str) -> RunBuilder:
        """A named point to recover to."""
        return self.record(e.CheckpointReached(name=name), "")

    def targeted(self, checkpoint: str) -> RunBuilder:
        """Recovery goes back to this checkpoint only."""
        return self.record(e.RecoveryTargeted(checkpoint=checkpoint), "")

    def checked(self, answer: Literal["passed", "not_passed", "unknown"]) -> RunBuilder:
        """The success check answered."""
        return self.record(e.CheckAnswered(check=self.state.run.check, answer=answer), "")
