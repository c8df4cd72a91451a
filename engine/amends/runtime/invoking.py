"""Invoking a forward call: resolve, prepare, authorize, intent, do, verify, classify, outcome (DESIGN section 2).

`begin` ends with a durable intent or with an answer; `Sending.send` makes the call on a thread of its own and records
what came of it, whoever still waits. Between the two nothing is held but values, so sync and async callers share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from amends.core import events as e
from amends.core import outcomes
from amends.core.contract import Phase
from amends.core.errors import Conflict
from amends.core.evidence import Decision
from amends.core.identity import claim_of
from amends.core.rows import ActionRow, ClaimRow, RunRow, RunState
from amends.core.schedule import flight_over_at_us, next_probe_us
from amends.core.status import ActionStatus, RunStatus
from amends.ports.journal import RowKey
from amends.runtime import drafting
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy, subject_of
from amends.runtime.book import Book, Draft
from amends.runtime.escalations import Escalations
from amends.runtime.flights import Flights, describe
from amends.runtime.kit import Kit
from amends.runtime.looking import Looker
from amends.runtime.resolving import Prior, Request, Resolved, prior, proposed_inverse, resolve
from amends.runtime.results import CallResult, result_of
from amends.runtime.sending import Sending, pause_keys
from amends.runtime.sessions import Session
from amends.spi.capability import Capability, Prepared

OPEN = frozenset({RunStatus.OPEN})
_S = ActionStatus


@dataclass(frozen=True, slots=True)
class ToSend:
    """A durable intent whose call is still to be made."""

    action_id: str


Begun = ToSend | CallResult


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A call in a free slot on its way to being registered."""

    session: Session
    request: Request
    resolved: Resolved
    action_id: str
    wanted: Callable[[], bool]


class Invoker:
    """Forward calls of one engine."""

    def __init__(
        self,
        kit: Kit,
        book: Book,
        policy: Policy,
        flights: Flights,
        looker: Looker,
        approvals: Approvals,
        escalations: Escalations,
        sending: Sending,
    ) -> None:
        self._kit = kit
        self._book = book
        self._policy = policy
        self._flights = flights
        self._looker = looker
        self._approvals = approvals
        self._escalations = escalations
        self._sending = sending

    def begin(self, session: Session, request: Request, wanted: Callable[[], bool]) -> Begun:
        """Everything up to the durable intent, or the answer that needs none.

        Raises a `CallerError`, `PolicyError` or `SystemUnavailable`; nothing was sent then.
        """
        self._sending.flush()
        offer = self._kit.catalog.get(request.capability)
        resolved = resolve(offer, request.args, request.label, self._kit.digest_key, self._kit.secrets.revealed())
        state = self._book.state(session.run_id)
        earlier = prior(state, resolved)
        fresh = _Fresh(session, request, resolved, self._kit.ids.new(), wanted)
        if earlier.blocks or earlier.resend:
            return self._earlier(fresh, state, earlier)
        return self._begin_fresh(fresh, state)

    # --- a slot that is taken -----------------------------------------------------------------------------

    def _earlier(self, fresh: _Fresh, state: RunState, earlier: Prior) -> Begun:
        """One intent, however often and however worded it is called (rule 5)."""
        action = earlier.recorded
        session = fresh.session
        if earlier.resend:
            return self._again(fresh, state, action)
        if earlier.conflict:
            return result_of(action, repeated=True, conflict=True)
        if action.status is _S.RUNNING:
            flight = self._sending.in_flight(action.action_id)
            if flight is not None:
                return replace(flight.result(timeout=action.contract.limits.timeout_seconds + 5.0), repeated=True)
            if self._kit.clock.now_us() >= flight_over_at_us(state.run, action, self._kit.skew_us):
                state = self._looker.lost(session.run_id, action.action_id, session.epoch)
                action = state.actions[action.action_id]
        if action.status is _S.UNKNOWN and self._kit.catalog.usable(action):
            due = next_probe_us(action, state.run.dead_since_us)
            if due is not None and due <= self._kit.clock.now_us():
                state = self._looker.reconcile(session.run_id, action.action_id, session.epoch)
                action = state.actions[action.action_id]
        if action.status is _S.AWAITING_APPROVAL:
            return self.after_approval(session, action.action_id, fresh.wanted)
        return result_of(action, repeated=True)

    def _again(self, fresh: _Fresh, state: RunState, action: ActionRow) -> Begun:
        """The same generation and key, after a proof that nothing landed."""
        decision, phase = self._may_send(state, action)
        if not decision.allowed:
            drafts = [Draft(e.DecisionRecorded(phase=phase, decision=decision), action.action_id)]
            session = fresh.session
            state = self._book.record(session.run_id, lambda _: drafts, epoch=session.epoch, allowed=OPEN)
            told = result_of(state.actions[action.action_id], repeated=True)
            return replace(told, reason="; ".join(decision.reasons) or decision.code)
        return self._intend(fresh.session, action, decision, phase, fresh.wanted)

    # --- a slot that is free ------------------------------------------------------------------------------

    def _begin_fresh(self, fresh: _Fresh, state: RunState) -> Begun:
        inverse = proposed_inverse(state, fresh.resolved)
        if inverse is not None:
            return self._refuse_inverse(fresh, inverse)
        if fresh.resolved.invalid:
            return self._failed_before(fresh, "invalid_input", fresh.resolved.invalid)
        held = self._held_elsewhere(fresh, state)
        if held is not None:
            return held
        prepared, drafts = Prepared(), list[Draft]()
        if type(fresh.resolved.offer.capability).prepare is not Capability.prepare:
            read = self._policy.probe(state.run, drafting.subject(fresh.resolved, prepared))
            drafts.append(Draft(e.DecisionRecorded(phase="probe", decision=read), fresh.action_id))
            if not read.allowed:
                return self._denied(fresh, drafts, read)
            try:
                prepared = self._prepare(state.run, fresh)
            except Exception as error:  # noqa: BLE001 - rule 2: prepare sends nothing, so its failure is `failed`
                return self._failed_before(fresh, "prepare_failed", describe(error))
        decision = self._policy.forward(state.run, drafting.subject(fresh.resolved, prepared))
        drafts.append(Draft(e.DecisionRecorded(phase="forward", decision=decision), fresh.action_id))
        if decision.verdict == "deny":
            return self._denied(fresh, drafts, decision)
        return self._register(fresh, prepared, drafts, decision)

    def _held_elsewhere(self, fresh: _Fresh, state: RunState) -> CallResult | None:
        """Rule 6: an effect whose identity reaches past the run is adopted from a committed run; any other holder is
        a conflict. Raises `Conflict`.
        """
        contract = fresh.resolved.contract
        claim = claim_of(contract, state.run.tenant, state.run.workflow, fresh.resolved.slot)
        stored = self._kit.journal.row(RowKey("claim", claim)) if claim else None
        if stored is None or not stored.active or stored.run_id == state.run.run_id:
            return None
        holder = self._book.state(stored.run_id)
        held = holder.actions[ClaimRow.model_validate_json(stored.body).action_id]
        if holder.run.status is RunStatus.COMMITTED and held.status is _S.SUCCEEDED:
            body = outcomes.adopted(held, at_us=self._kit.clock.now_us())
            return self._end(fresh, [Draft(body, fresh.action_id)])
        raise Conflict(
            f"run `{holder.run.run_id}` (key `{holder.run.run_key}`) holds this effect and is `{holder.run.status}`",
            hint="resume that run, or recover it first; nothing was sent",
            holder_run=holder.run.run_id,
            holder_action=held.action_id,
            holder_status=held.status.value,
        )

    def _prepare(self, run: RunRow, fresh: _Fresh) -> Prepared:
        resolved = fresh.resolved
        question = drafting.question_before(
            self._kit, run.run_id, fresh.action_id, resolved.args, resolved.contract.limits.timeout_seconds
        )
        capability = resolved.offer.capability
        flight = self._flights.launch(lambda: capability.prepare(question), f"prepare-{fresh.action_id[-6:]}")
        prepared = flight.result(timeout=question.timeout_seconds + 1.0)
        drafting.refuse_unrecordable(self._kit, resolved.contract.capability, prepared)
        return prepared

    def _register(self, fresh: _Fresh, prepared: Prepared, drafts: list[Draft], decision: Decision) -> Begun:
        """Registration, decision and what follows from it, in one commit (rule 1)."""
        session = fresh.session
        self._kit.progress.reached("before_intent", session.run_id, fresh.action_id)

        def decide(state: RunState) -> list[Draft]:
            earlier = prior(state, fresh.resolved)
            if earlier.blocks:
                return []  # a twin of this call won the slot
            planned = drafting.planned(state, fresh.resolved, fresh.request, prepared, earlier.generation)
            follows = self._follows(fresh, prepared, decision, earlier.generation)
            return [Draft(body, fresh.action_id) for body in (planned, *(d.body for d in drafts), *follows)]

        state = self._book.record(
            session.run_id,
            decide,
            epoch=session.epoch,
            allowed=OPEN,
            forbidden=pause_keys(self._book.last_known(session.run_id).run),
            wanted=fresh.wanted,
        )
        action = state.actions.get(fresh.action_id)
        if action is None:
            return self._earlier(fresh, state, prior(state, fresh.resolved))
        if action.status is _S.RUNNING:
            self._kit.progress.reached("after_intent", session.run_id, fresh.action_id)
            return ToSend(action.action_id)
        if action.status is _S.QUEUED:
            return result_of(action)
        return self._ask_first(session, state, action, decision, fresh.wanted)

    def _follows(self, fresh: _Fresh, prepared: Prepared, decision: Decision, generation: int) -> list[e.Body]:
        """After an allow: into the outbox, or the intent itself. Nothing where people are asked first."""
        release = fresh.resolved.contract.release
        if not decision.allowed or (release is not None and release.mode == "gate"):
            return []
        if release is None:
            return [drafting.first_intent(self._kit, fresh.session.run_id, fresh.resolved, prepared, generation)]
        before = dict(prepared.before)
        return [e.ActionQueued(mode=release.mode, content_digest=prepared.content_digest, before_image=before)]

    # --- gates and approvals in the middle of a run -------------------------------------------------------

    def _ask_first(
        self, session: Session, state: RunState, action: ActionRow, decision: Decision, wanted: Callable[[], bool]
    ) -> Begun:
        """A gate, or a forward call for which policy wants a person's yes."""
        phase: Phase = "forward"
        if decision.allowed:
            decision, phase = self._may_send(state, action)
        if decision.allowed:
            return self._intend(session, action, decision, phase, wanted)
        state = self._approvals.ask_or_deny(
            session.run_id, action.action_id, decision, phase, session.epoch, allowed=OPEN
        )
        return result_of(state.actions[action.action_id])

    def after_approval(self, session: Session, action_id: str, wanted: Callable[[], bool]) -> Begun:
        """Go on with an action that awaits approval, if people have said yes."""
        state = self._book.state(session.run_id)
        action = state.actions[action_id]
        approval = state.approvals.get(action.approval_id)
        if action.status is not _S.AWAITING_APPROVAL or approval is None or approval.status != "approved":
            return result_of(action, repeated=True)
        decision, phase = self._may_send(state, action)
        if decision.allowed and approval.digest == self._policy.binding(state.run, action, phase):
            return self._intend(session, action, decision, phase, wanted)
        state = self._approvals.policy_changed(session.run_id, action_id, decision, phase, session.epoch)
        return result_of(state.actions[action_id])

    def _may_send(self, state: RunState, action: ActionRow) -> tuple[Decision, Phase]:
        """Policy at the moment of sending, with the approval as evidence (rule 30)."""
        approval = state.approvals.get(action.approval_id)
        if action.contract.release is not None:
            return self._policy.release(state, action, approval), "release"
        return self._policy.forward(state.run, subject_of(action), approval), "forward"

    def _intend(
        self, session: Session, action: ActionRow, decision: Decision, phase: Phase, wanted: Callable[[], bool]
    ) -> ToSend:
        self._kit.progress.reached("before_intent", session.run_id, action.action_id)

        def decide(state: RunState) -> list[Draft]:
            now = state.actions[action.action_id]
            intent = drafting.next_intent(self._kit, now, None, now.approval_id)
            return [
                Draft(e.DecisionRecorded(phase=phase, decision=decision), now.action_id),
                Draft(intent, now.action_id),
            ]

        self._book.record(
            session.run_id,
            decide,
            epoch=session.epoch,
            allowed=OPEN,
            forbidden=pause_keys(self._book.last_known(session.run_id).run),
            wanted=wanted,
        )
        self._kit.progress.reached("after_intent", session.run_id, action.action_id)
        return ToSend(action.action_id)

    # --- endings without a call ---------------------------------------------------------------------------

    def _failed_before(self, fresh: _Fresh, code: str, detail: str) -> CallResult:
        body = outcomes.failed_before(at_us=self._kit.clock.now_us(), code=code, detail=detail)
        return self._end(fresh, [Draft(body, fresh.action_id)])

    def _denied(self, fresh: _Fresh, drafts: list[Draft], decision: Decision) -> CallResult:
        reason = "; ".join(decision.reasons) or decision.code
        denied = Draft(e.ActionDenied(code=decision.code or "denied", reason=reason), fresh.action_id)
        return self._end(fresh, [*drafts, denied])

    def _refuse_inverse(self, fresh: _Fresh, inverse: ActionRow) -> CallResult:
        """Rule 11: a proposed inverse is not a forward call. The registered one is recovery's; others are escalated."""
        name = fresh.resolved.contract.capability
        registered = any(rung.undo == name for rung in inverse.contract.compensation)
        code = "registered_compensation" if registered else "unregistered_inverse"
        reason = (
            f"`{name}` would take back what `{inverse.capability}` did in this run; "
            "only recovery takes back effects of a run"
        )
        result = self._end(fresh, [Draft(e.ActionDenied(code=code, reason=reason), fresh.action_id)])
        if not registered:
            self._escalations.escalate_inverse(
                fresh.session.run_id, fresh.action_id, inverse.action_id, fresh.session.epoch
            )
        return result

    def _end(self, fresh: _Fresh, drafts: list[Draft]) -> CallResult:
        """Record a call that ends before it is sent."""

        def decide(state: RunState) -> list[Draft]:
            generation = prior(state, fresh.resolved).generation
            planned = drafting.planned(state, fresh.resolved, fresh.request, Prepared(), generation)
            unclaimed = planned.model_copy(update={"claim": ""})
            return [Draft(unclaimed, fresh.action_id), *drafts]

        session = fresh.session
        state = self._book.record(session.run_id, decide, epoch=session.epoch, allowed=OPEN)
        return result_of(state.actions[fresh.action_id])
