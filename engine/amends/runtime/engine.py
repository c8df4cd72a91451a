"""The engine: runs opened, finished, recovered; people's decisions; late evidence. Everything is wired here once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress

from amends.core import events as e
from amends.core import public
from amends.core.canonical import Json
from amends.core.errors import AmendsError, Conflict, InvalidInput, UnknownName
from amends.core.identity import run_claim
from amends.core.rows import ApprovalRow, EscalationRow, PauseRow, RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import ActionStatus, RunStatus
from amends.ports.journal import RowKey
from amends.runtime import approvals as approving
from amends.runtime import escalations as escalating
from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy
from amends.runtime.book import Book, Draft
from amends.runtime.claiming import Claims
from amends.runtime.compensating import Compensator
from amends.runtime.correcting import Corrections
from amends.runtime.drilling import Drills
from amends.runtime.driving import Driver
from amends.runtime.escalations import Escalations
from amends.runtime.flights import Flights
from amends.runtime.invoking import OPEN, Invoker
from amends.runtime.kit import Kit
from amends.runtime.listening import Listener
from amends.runtime.looking import Looker
from amends.runtime.paging import Pager
from amends.runtime.releasing import BUILT_IN_CHECK, Outbox
from amends.runtime.reporting import run_report
from amends.runtime.results import CallResult, result_of
from amends.runtime.runs import Run, RunOutcome
from amends.runtime.sending import Sending
from amends.runtime.sessions import Session
from amends.runtime.sweeping import Sweeper


class Engine:
    """One process's engine over one journal. Safe for threads; not for forked children (rule 9)."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.book = Book(kit)
        policy = Policy(kit)
        flights = Flights(kit)
        looker = Looker(kit, self.book, policy, flights)
        self._escalations = Escalations(kit, self.book)
        self._approvals = Approvals(kit, self.book, policy, self._escalations)
        self.sending = Sending(kit, self.book, flights, looker)
        self.invoker = Invoker(
            kit, self.book, policy, flights, looker, self._approvals, self._escalations, self.sending
        )
        self.claims = Claims(kit, self.book)
        outbox = Outbox(kit, self.book, policy, flights, self.sending, self._approvals, self._escalations)
        compensator = Compensator(
            kit, self.book, policy, flights, looker, self._approvals, self._escalations, self.sending
        )
        corrections = Corrections(kit, self.book, policy, self._approvals, self._escalations, self.sending)
        driver = Driver(kit, self.book, looker, compensator, outbox, corrections, self._approvals, self._escalations)
        pager = Pager(kit, self.book)
        self._sweeper = Sweeper(kit, self.book, self.claims, driver, pager)
        self._listener = Listener(kit, self.book, self._escalations, self.claims)
        self._drills = Drills(kit, self.book, flights)

    # --- runs ---------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        workflow: str,
        run_key: str,
        agent: str,
        initiator: str = "",
        owner: str = "",
        intent_ref: str = "",
        check: str = BUILT_IN_CHECK,
        resume: bool = False,
        resume_grace_seconds: float = 0.0,
    ) -> Run:
        """Open a run, or re-attach to it with `resume` (rule 24).

        Raises `Conflict` if a live process drives a run of this identity (naming holder and until), or if it exists
        and `resume` is not given; `InvalidInput` for a run without a named owner or with an unknown check.
        """
        self.kit.owners.me()
        existing = self.find(workflow, run_key)
        if existing is not None:
            return self._attach(existing, resume=resume)
        if self._escalations.queue_full():
            raise Conflict("the queue of open escalations is full", hint="decide some of them: `amends inbox list`")
        person = owner or self.kit.default_owner
        if not person:
            raise InvalidInput("a run needs a named human owner", hint="pass owner=… or set project.owner")
        if check != BUILT_IN_CHECK and check not in self.kit.checks:
            raise InvalidInput(f"no success check `{check}`", hint=f"configure `[checks.{check}]` in amends.toml")
        body = e.RunOpened(
            tenant=self.kit.tenant,
            workflow=workflow,
            run_key=run_key,
            agent=agent,
            initiator=initiator,
            owner=person,
            intent_ref=intent_ref,
            check=check,
            resume_grace_seconds=resume_grace_seconds,
            holder=self.kit.owners.me(),
            lease_until_us=self.kit.clock.now_us() + self.kit.lease_us,
        )
        run_id = self.kit.ids.new()
        try:
            state = self.book.open(run_id, body)
        except Conflict:
            found = self.find(workflow, run_key)
            if found is None:
                raise
            return self._attach(found, resume=resume)
        return Run(self, self.claims.adopt(Session(run_id, state.run.epoch, state.run.lease_until_us)))

    def _attach(self, existing: RunState, *, resume: bool) -> Run:
        run = existing.run
        if run.terminal:
            raise Conflict(
                f"run `{run.run_key}` of `{run.workflow}` is `{run.status}` and never changes again",
                hint="its report tells what became of it; open a run with a new key",
                run_id=run.run_id,
                report=run_report(existing),
            )
        if not resume:
            raise Conflict(
                f"run `{run.run_key}` of `{run.workflow}` exists and is `{run.status}`",
                hint="pass resume=True to re-attach, or recover it",
                run_id=run.run_id,
                holder=run.holder_id,
                until_us=run.lease_until_us,
            )
        if run.status is not RunStatus.OPEN:
            raise Conflict(
                f"run `{run.run_key}` is `{run.status}`, not open", hint="let recovery finish it", run_id=run.run_id
            )
        return Run(self, self.claims.take(run.run_id))

    def send(self, session: Session, action_id: str, wanted: Callable[[], bool]) -> Future[CallResult]:
        """Make the call of a durable intent of an open run."""
        return self.sending.send(session, action_id, wanted, allowed=OPEN)

    def finish(self, session: Session, *, wait_seconds: float = 0.0) -> RunOutcome:
        """From `open` to `committing`, then as far as it goes: committed, waiting for people, or recovered."""
        self._move(session, RunStatus.COMMITTING, "the agent finished")
        return self._settle(session, wait_seconds)

    def fail(self, session: Session, reason: str, *, wait_seconds: float = 0.0) -> RunOutcome:
        """Freeze and recover."""
        self._move(session, RunStatus.RECOVERING, reason)
        return self._settle(session, wait_seconds)

    def freeze(self, run_id: str, reason: str) -> RunState:
        """One durable compare-and-set: no forward intent passes any more (rule 14)."""

        def decide(state: RunState) -> list[Draft]:
            if state.run.status is not RunStatus.OPEN:
                return []
            return [Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=reason))]

        state = self.book.record(run_id, decide)
        self.kit.progress.reached("after_freeze", run_id, "")
        return state

    def _move(self, session: Session, to: RunStatus, reason: str) -> None:
        def decide(state: RunState) -> list[Draft]:
            return [Draft(e.RunMoved(to=to, reason=reason))] if state.run.status is RunStatus.OPEN else []

        self.book.record(session.run_id, decide, epoch=session.epoch)
        if to is RunStatus.RECOVERING:
            self.kit.progress.reached("after_freeze", session.run_id, "")

    def _settle(self, session: Session, wait_seconds: float) -> RunOutcome:
        state = self._sweeper.settle(session, self._until(wait_seconds))
        return RunOutcome(session.run_id, state.run.status, public.run_message(public.of_run(state)))

    # --- recovery -----------------------------------------------------------------------------------------

    def recover(
        self, run_id: str | None = None, *, to: str = "", by: str = "", wait_seconds: float = 0.0
    ) -> list[RunState]:
        """Recover one run, or every run whose driver is gone; waits for due work up to `wait_seconds`.

        For one run raises `Conflict` if it is driven, `UnknownName` for a checkpoint it never reached.
        """
        until = self._until(wait_seconds)
        if run_id is None:
            return self._sweeper.sweep(until)
        if to:
            self._target(run_id, to, by)
        return [self._sweeper.recover(run_id, until, ordered_by=by)]

    def _target(self, run_id: str, checkpoint: str, by: str) -> None:
        state = self.state(run_id)
        if checkpoint not in state.run.checkpoints:
            raise UnknownName(f"run `{run_id}` has no checkpoint `{checkpoint}`", known=sorted(state.run.checkpoints))
        if state.run.status is not RunStatus.OPEN:
            raise Conflict(f"run `{run_id}` is `{state.run.status}`", hint="only an open run goes back to a checkpoint")
        self._sweeper.refuse_if_driven(state)
        drafts = [
            Draft(e.RecoveryTargeted(checkpoint=checkpoint)),
            Draft(e.RunMoved(to=RunStatus.RECOVERING, reason=f"recover to checkpoint `{checkpoint}`", by=by)),
        ]
        self.book.record(run_id, lambda _: drafts, allowed=frozenset({RunStatus.OPEN}))

    def _until(self, wait_seconds: float) -> int:
        return self.kit.clock.now_us() + microseconds(wait_seconds)

    def report(
        self, run_id: str, action_id: str, *, happened: bool, source: str, reference: str = "", detail: str = ""
    ) -> RunState:
        """Take a delayed call-back as evidence (rule 13); on a terminal run it opens a follow-up run (rule 25)."""
        return self._listener.report(
            run_id, action_id, happened=happened, source=source, reference=reference, detail=detail
        )

    def expire(self, run_id: str) -> RunState:
        """Close questions that nobody answered in time."""
        return self._approvals.expire(run_id, None)

    # --- looking ------------------------------------------------------------------------------------------

    def state(self, run_id: str) -> RunState:
        """A run as recorded now. Raises `UnknownName` or `CorruptLedger`."""
        return self.book.state(run_id)

    def find(self, workflow: str, run_key: str) -> RunState | None:
        """The run of this identity, if there is one."""
        row = self.kit.journal.row(RowKey("claim", run_claim(self.kit.tenant, workflow, run_key)))
        return self.book.state(row.run_id) if row else None

    def runs(self, statuses: frozenset[RunStatus] | None = None, *, limit: int = 1000) -> list[RunRow]:
        """Runs in order of their opening; unreadable ones are left to `amends ledger verify`."""
        wanted = None if statuses is None else frozenset(s.value for s in statuses)
        rows = self.kit.journal.rows("run", statuses=wanted, limit=limit)
        return [RunRow.model_validate_json(row.body) for row in rows]

    def run_report(self, run_id: str) -> dict[str, Json]:
        """The report of a run: what exists, what might, what can be undone, who decides."""
        return run_report(self.state(run_id))

    def approvals(self) -> tuple[ApprovalRow, ...]:
        """Questions that wait for an answer."""
        return approving.pending_approvals(self.kit)

    def escalations(self) -> tuple[EscalationRow, ...]:
        """Open work items."""
        return escalating.open_items(self.kit)

    # --- people -------------------------------------------------------------------------------------------

    def approve(
        self, approval_id: str, *, by: str, channel: str = "python", comment: str = "", digest: str = ""
    ) -> RunState:
        """A person's yes, bound to what they were shown."""
        run_id = self._run_of("approval", approval_id)
        return self._approvals.approve(run_id, approval_id, by=by, channel=channel, comment=comment, digest=digest)

    def reject(
        self, approval_id: str, *, by: str, channel: str = "python", comment: str = "", roll_back: bool = False
    ) -> RunState:
        """A person's no."""
        run_id = self._run_of("approval", approval_id)
        return self._approvals.reject(run_id, approval_id, by=by, channel=channel, comment=comment, roll_back=roll_back)

    def resolve(
        self,
        escalation_id: str,
        choice: str,
        *,
        by: str,
        channel: str = "python",
        comment: str = "",
        evidence: str = "",
        reference: str = "",
    ) -> RunState:
        """A person's named choice on an escalation."""
        run_id = self._run_of("escalation", escalation_id)
        return self._escalations.resolve(
            run_id,
            escalation_id,
            choice,
            by=by,
            channel=channel,
            comment=comment,
            evidence=evidence,
            reference=reference,
        )

    def acknowledge(self, escalation_id: str, *, by: str, channel: str = "python") -> RunState:
        """A person has seen it: paging stops."""
        run_id = self._run_of("escalation", escalation_id)
        return self._escalations.acknowledge(run_id, escalation_id, by=by, channel=channel)

    def withdraw(self, run_id: str, action_id: str, *, by: str) -> CallResult:
        """Take a queued item out of the outbox, unsent."""

        def decide(state: RunState) -> list[Draft]:
            action = state.actions.get(action_id)
            if action is None or action.status not in {ActionStatus.QUEUED, ActionStatus.AWAITING_APPROVAL}:
                raise Conflict("only a queued item can be withdrawn", hint="`amends outbox list` shows what waits")
            return [Draft(e.ActionWithdrawn(reason="withdrawn", by=by), action_id)]

        return result_of(self.book.record(run_id, decide).actions[action_id])

    def _run_of(self, kind: str, key: str) -> str:
        row = self.kit.journal.row(RowKey("approval" if kind == "approval" else "escalation", key))
        if row is None:
            raise UnknownName(f"no {kind} `{key}`", hint="`amends inbox list` shows what waits")
        return row.run_id

    # --- pauses -------------------------------------------------------------------------------------------

    def pause(self, scope: str, *, reason: str, by: str) -> None:
        """Let no forward intent pass in `all`, `tenant:x` or `workflow:x` (rule 15). Recovery goes on."""
        if scope != "all" and not scope.startswith(("tenant:", "workflow:")):
            raise InvalidInput(f"`{scope}` is no scope", hint="use `all`, `tenant:NAME` or `workflow:NAME`")
        self.book.record_system([e.PauseSet(scope=scope, reason=reason, by=by)])

    def lift_pause(self, scope: str, *, by: str) -> None:
        """Let forward intents pass again."""
        self.book.record_system([e.PauseLifted(scope=scope, by=by)])

    def pauses(self) -> list[PauseRow]:
        """The pauses in force."""
        return [PauseRow.model_validate_json(r.body) for r in self.kit.journal.rows("pause", active=True)]

    # --- drills -------------------------------------------------------------------------------------------

    def drill(self, capability: str, args: Mapping[str, object]) -> e.DrillCertified:
        """Do, verify, undo, verify on a sandbox copy, and certify it."""
        return self._drills.drill(capability, args)

    def close(self) -> None:
        """Write what is left, let go of every lease, close the journal. Idempotent."""
        with suppress(AmendsError):  # what cannot be written is found again by a probe
            self.sending.flush()
        self.claims.close()
        self.kit.journal.close()
