"""Invoking a forward call: resolve, prepare, authorize, intent, do, verify, classify, outcome (DESIGN section 2).

`begin` ends with a durable intent or with an answer; `Sending.send` makes the call on a thread of its own and records
what came of it, whoever still waits. Between the two nothing is held but values, so sync and async callers share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amends.core import events as e
from amends.core import outcomes
from amends.core.errors import Conflict, InvalidInput
from amends.core.evidence import Decision
from amends.core.identity import claim_of
from amends.core.rows import ActionRow, ClaimRow, RunRow, RunState
from amends.core.schedule import flight_over_at_us, next_probe_us
from amends.core.status import ActionStatus, RunStatus
from amends.ports.journal import RowKey
from amends.runtime import drafting
from amends.runtime.asking import Policy
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims
from amends.runtime.drafting import Reading
from amends.runtime.escalations import Escalations
from amends.runtime.flights import CALL_SPARE_SECONDS, describe
from amends.runtime.intending import OPEN, Begun, Intending, ToSend
from amends.runtime.kit import Kit
from amends.runtime.looking import Looker
from amends.runtime.preparing import Preparing
from amends.runtime.reads import Reads
from amends.runtime.resolving import Prior, Request, Resolved, prior, proposed_inverse, resolve
from amends.runtime.results import result_of
from amends.runtime.sending import Sending, pause_keys
from amends.runtime.sessions import Session
from amends.spi.capability import Refused

_S = ActionStatus
_NOT_MADE = frozenset({_S.DENIED, _S.WITHDRAWN, _S.FAILED, _S.COMPENSATED})


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A call in a free slot on its way to being registered."""

    session: Session
    request: Request
    resolved: Resolved
    action_id: str
    wanted: Callable[[], bool]


@dataclass(frozen=True)
class Invoker:
    """Forward calls of one engine."""

    kit: Kit
    book: Book
    policy: Policy
    preparing: Preparing
    looker: Looker
    escalations: Escalations
    sending: Sending
    claims: Claims
    intending: Intending
    reads: Reads

    def begin(self, session: Session, request: Request, wanted: Callable[[], bool]) -> Begun:
        """Everything up to the durable intent, or the answer that needs none.

        Raises a `CallerError`, `PolicyError` or `SystemUnavailable`; nothing was sent then.
        """
        self.sending.flush()
        self.claims.keep(session)
        offer = self.kit.catalog.get(request.capability)
        if offer.contract.corrects:
            raise InvalidInput(f"`{request.capability}` posts corrections, which only recovery does", hint="drop it")
        resolved = resolve(offer, request.args, request.label, self.kit.digest_key, self.kit.secrets.revealed())
        state = self.book.state(session.run_id)
        if not resolved.contract.consequential:
            return self.reads.read(state, request, resolved, wanted)
        _refuse_unknown_dependencies(state, request)
        fresh = _Fresh(session, request, resolved, self.kit.ids.new(), wanted)
        state, earlier = self._heard(fresh, state)
        if earlier.blocks or earlier.resend:
            return self._earlier(fresh, state, earlier)
        return self._begin_fresh(fresh, state)

    def after_approval(self, session: Session, action_id: str, wanted: Callable[[], bool]) -> Begun:
        """Go on with an action that awaits approval, if people have said yes."""
        self.sending.flush()
        self.claims.keep(session)
        state = self.book.state(session.run_id)
        if outcomes.folded_late(state.actions[action_id], at_us=self.kit.ledger_now_us(state.run)) is not None:
            state = self.looker.fold_late(session.run_id, action_id, session.epoch)
            return result_of(state.actions[action_id], repeated=True)
        return self.intending.after_approval(session, action_id, wanted)

    # --- a slot that is taken -----------------------------------------------------------------------------

    def _heard(self, fresh: _Fresh, state: RunState) -> tuple[RunState, Prior]:
        """What stands in the slot, once late evidence about it is folded (rules 4 and 13)."""
        earlier = prior(state, fresh.resolved)
        action = earlier.action
        if action is None or outcomes.folded_late(action, at_us=self.kit.ledger_now_us(state.run)) is None:
            return state, earlier
        state = self.looker.fold_late(fresh.session.run_id, action.action_id, fresh.session.epoch)
        return state, prior(state, fresh.resolved)

    def _earlier(self, fresh: _Fresh, state: RunState, earlier: Prior) -> Begun:
        """One intent, however often and however worded it is called (rule 5)."""
        action = earlier.recorded
        session = fresh.session
        if earlier.resend:
            return self.intending.again(session, state, action, fresh.wanted)
        if earlier.conflict:
            return result_of(action, repeated=True, conflict=True)
        if action.status is _S.RUNNING:
            self.sending.wait_for(action, action.contract.limits.timeout_seconds + CALL_SPARE_SECONDS)
            state = self._lost_by_now(session, action.action_id)
        action = self._looked_at(session, state, state.actions[action.action_id])
        if action.status is _S.AWAITING_APPROVAL:
            return self.intending.after_approval(session, action.action_id, fresh.wanted)
        if action.status in {_S.PLANNED, _S.QUEUED} and action.release_mode is None:
            return self.intending.ask_first(session, state, action, None)
        return result_of(action, repeated=True)

    def _lost_by_now(self, session: Session, action_id: str) -> RunState:
        """A call that nobody makes any more is lost, once its driver is gone or every deadline has passed (rule 14)."""
        state = self.book.state(session.run_id)
        action = state.actions[action_id]
        over = self.kit.ledger_now_us(state.run) >= flight_over_at_us(state.run, action, self.kit.skew_us)
        if action.status is _S.RUNNING and over and self.sending.in_flight(action_id) is None:
            return self.looker.lost(session.run_id, action_id, session.epoch)
        return state

    def _looked_at(self, session: Session, state: RunState, action: ActionRow) -> ActionRow:
        """An unknown outcome is looked at when a look is due, and never sent again (rule 5)."""
        if action.status is not _S.UNKNOWN or not self.kit.catalog.usable(action):
            return action
        due = next_probe_us(action, state.run.dead_since_us)
        if due is None or due > self.kit.ledger_now_us(state.run):
            return action
        return self.looker.reconcile(session.run_id, action.action_id, session.epoch).actions[action.action_id]

    # --- a slot that is free ------------------------------------------------------------------------------

    def _begin_fresh(self, fresh: _Fresh, state: RunState) -> Begun:
        inverse = proposed_inverse(state, fresh.resolved)
        if inverse is not None:
            return self._refuse_inverse(fresh, inverse)
        if fresh.resolved.invalid:
            return self._failed_before(fresh, "invalid_input", fresh.resolved.invalid)
        if _too_many(state, fresh.resolved):
            return self._end(fresh, [Draft(_bounded(fresh.resolved), fresh.action_id)])
        held = self._held_elsewhere(fresh, state)
        if held is not None:
            return held
        prepared, drafts = Reading(), list[Draft]()
        if self.preparing.reads(fresh.resolved.offer):
            read = self.policy.probe(state.run, drafting.subject(fresh.resolved, prepared))
            drafts.append(Draft(e.DecisionRecorded(phase="probe", decision=read), fresh.action_id))
            if not read.allowed:
                return self._denied(fresh, drafts, read)
            seen = self._prepared(fresh, state.run)
            if not isinstance(seen, Reading):
                return self._failed_before(fresh, *seen)
            prepared = seen
        decision = self.policy.forward(state.run, drafting.subject(fresh.resolved, prepared))
        drafts.append(Draft(e.DecisionRecorded(phase="forward", decision=decision), fresh.action_id))
        if decision.verdict == "deny" or (not decision.allowed and fresh.resolved.queued):
            return self._denied(fresh, drafts, decision)
        return self._register(fresh, prepared, drafts, decision)

    def _prepared(self, fresh: _Fresh, run: RunRow) -> Reading | tuple[str, str]:
        """What `prepare` read, or code and words of its failure: it sends nothing, so that is `failed` (rule 2)."""
        resolved = fresh.resolved
        try:
            return self.preparing.read(resolved.offer, run, fresh.action_id, resolved.args)
        except Refused as error:
            return "prepare_refused", describe(error, self.kit.secrets)
        except Exception as error:  # noqa: BLE001 - same
            return "prepare_failed", describe(error, self.kit.secrets)

    def _held_elsewhere(self, fresh: _Fresh, state: RunState) -> Begun | None:
        """Rule 6: an effect whose identity reaches past the run is adopted from a committed run; any other holder is
        a conflict. Raises `Conflict`.
        """
        contract = fresh.resolved.contract
        claim = claim_of(contract, state.run.tenant, state.run.workflow, fresh.resolved.slot)
        stored = self.kit.journal.row(RowKey("claim", claim)) if claim else None
        if stored is None or not stored.active or stored.run_id == state.run.run_id:
            return None
        holder = self.book.state(stored.run_id)
        held = holder.actions[ClaimRow.model_validate_json(stored.body).action_id]
        same = held.args_digest == fresh.resolved.args_digest
        if same and holder.run.status is RunStatus.COMMITTED and held.status is _S.SUCCEEDED:
            body = outcomes.adopted(held, at_us=self.kit.ledger_now_us(state.run))
            return self._end(fresh, [Draft(body, fresh.action_id)])
        other = "" if same else " with other arguments"
        raise Conflict(
            f"run `{holder.run.run_id}` (key `{holder.run.run_key}`) holds this effect{other} and is "
            f"`{holder.run.status}`",
            hint="resume that run, or recover it first; nothing was sent",
            holder_run=holder.run.run_id,
            holder_action=held.action_id,
            holder_status=held.status.value,
        )

    def _register(self, fresh: _Fresh, prepared: Reading, drafts: list[Draft], decision: Decision) -> Begun:
        """Registration, decision and what follows from it, in one commit (rule 1)."""
        session = fresh.session
        self.kit.progress.reached("before_intent", session.run_id, fresh.action_id)

        def decide(state: RunState) -> list[Draft]:
            earlier = prior(state, fresh.resolved)
            if earlier.blocks or earlier.resend:
                return []  # a twin of this call won the slot
            planned = drafting.planned(state, fresh.resolved, fresh.request, prepared, earlier.generation)
            follows = self._follows(fresh, state, prepared, decision, earlier.generation)
            return [Draft(body, fresh.action_id) for body in (planned, *(d.body for d in drafts), *follows)]

        state = self.book.record(
            session.run_id,
            decide,
            epoch=session.epoch,
            allowed=OPEN,
            forbidden=pause_keys(self.book.state(session.run_id).run),
            wanted=fresh.wanted,
        )
        action = state.actions.get(fresh.action_id)
        if action is None:
            return self._earlier(fresh, state, prior(state, fresh.resolved))
        if action.status is _S.RUNNING:
            self.kit.progress.reached("after_intent", session.run_id, fresh.action_id)
            return ToSend(action.action_id)
        if action.status is _S.QUEUED:
            return result_of(action)
        return self.intending.ask_first(session, state, action, prepared)

    def _follows(
        self, fresh: _Fresh, state: RunState, prepared: Reading, decision: Decision, generation: int
    ) -> list[e.Body]:
        """After an allow: into the outbox, or the intent itself. Nothing where people are asked first."""
        release = fresh.resolved.contract.release
        if not decision.allowed or (release is not None and release.mode == "gate"):
            return []
        if release is None:
            return [drafting.first_intent(state.run, fresh.resolved, prepared, generation, decision)]
        before = dict(prepared.before)
        return [e.ActionQueued(mode=release.mode, content_digest=prepared.content_digest, before_image=before)]

    # --- endings without a call ---------------------------------------------------------------------------

    def _failed_before(self, fresh: _Fresh, code: str, detail: str) -> Begun:
        body = outcomes.failed_before(at_us=self.kit.clock.now_us(), code=code, detail=detail)
        return self._end(fresh, [Draft(body, fresh.action_id)])

    def _denied(self, fresh: _Fresh, drafts: list[Draft], decision: Decision) -> Begun:
        reason = "; ".join(decision.reasons) or decision.code
        denied = Draft(e.ActionDenied(code=decision.code or "denied", reason=reason), fresh.action_id)
        return self._end(fresh, [*drafts, denied])

    def _refuse_inverse(self, fresh: _Fresh, inverse: ActionRow) -> Begun:
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
            self.escalations.escalate_inverse(
                fresh.session.run_id, fresh.action_id, inverse.action_id, fresh.session.epoch
            )
        return result

    def _end(self, fresh: _Fresh, drafts: list[Draft]) -> Begun:
        """Record a call that ends before it is sent; answer for the slot, if a twin of this call has won it."""

        def decide(state: RunState) -> list[Draft]:
            earlier = prior(state, fresh.resolved)
            if earlier.blocks or earlier.resend:
                return []
            planned = drafting.planned(state, fresh.resolved, fresh.request, Reading(), earlier.generation)
            unclaimed = planned.model_copy(update={"claim": ""})
            return [Draft(unclaimed, fresh.action_id), *drafts]

        session = fresh.session
        state = self.book.record(session.run_id, decide, epoch=session.epoch, allowed=OPEN)
        action = state.actions.get(fresh.action_id)
        if action is None:
            return self._earlier(fresh, state, prior(state, fresh.resolved))
        return result_of(action)


def _too_many(state: RunState, resolved: Resolved) -> bool:
    """True if the run has made as many calls of this capability as its contract allows."""
    limit = resolved.contract.limits.per_run
    made = sum(
        1 for a in state.forward_actions() if a.capability == resolved.contract.capability and a.status not in _NOT_MADE
    )
    return limit is not None and made >= limit


def _bounded(resolved: Resolved) -> e.ActionDenied:
    reason = f"the contract allows {resolved.contract.limits.per_run} calls of this capability in a run"
    return e.ActionDenied(code="per_run_limit", reason=reason)


def _refuse_unknown_dependencies(state: RunState, request: Request) -> None:
    unknown = [name for name in request.depends_on or () if name not in state.actions]
    if unknown:
        raise InvalidInput(
            f"`{unknown[0]}` is no action of this run, so nothing can depend on it",
            hint="pass results of earlier calls of this run",
            unknown=unknown,
        )
