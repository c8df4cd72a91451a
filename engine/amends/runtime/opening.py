"""The life of a run from its opening to its rest: open, re-attach, freeze, finish, fail (rules 12, 14, 23, 24)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from amends.core import events as e
from amends.core import public
from amends.core.errors import Conflict, InvalidInput, SystemUnavailable
from amends.core.identity import run_claim
from amends.core.rows import RunState
from amends.core.schedule import microseconds
from amends.core.status import RunStatus
from amends.ports.journal import RowKey
from amends.runtime.book import Draft
from amends.runtime.parts import Parts
from amends.runtime.releasing import BUILT_IN_CHECK
from amends.runtime.reporting import run_report
from amends.runtime.sessions import Session


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as its caller names it. Identity is tenant + workflow + run key."""

    workflow: str
    run_key: str
    agent: str
    initiator: str = ""
    owner: str = ""  # a named person; empty: the project's owner
    intent_ref: str = ""
    check: str = BUILT_IN_CHECK
    resume_grace_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of a run when its handle was closed."""

    run_id: str
    status: RunStatus
    message: str


@dataclass(frozen=True)
class Lifecycle:
    """Opens runs and brings them to rest."""

    parts: Parts

    def find(self, workflow: str, run_key: str) -> RunState | None:
        """The run of this identity, if there is one."""
        kit = self.parts.kit
        row = kit.journal.row(RowKey("claim", run_claim(kit.tenant, workflow, run_key)))
        return self.parts.book.state(row.run_id) if row else None

    def open(self, request: RunRequest, *, resume: bool) -> Session:
        """A session of a new run, or of an open one with `resume`. Raises `Conflict` or `InvalidInput`."""
        self.parts.kit.owners.me()
        existing = self.find(request.workflow, request.run_key)
        if existing is not None:
            return self._attach(existing, resume=resume)
        body = self._opened(request)
        run_id = self.parts.kit.ids.new()
        try:
            state = self.parts.book.open(run_id, body)
        except Conflict:
            raced = self.find(request.workflow, request.run_key)
            if raced is None:
                raise
            return self._attach(raced, resume=resume)
        return self.parts.claims.adopt(Session(run_id, state.run.epoch, state.run.lease_until_us))

    def _opened(self, request: RunRequest) -> e.RunOpened:
        kit = self.parts.kit
        if self.parts.escalations.queue_full():
            raise Conflict("the queue of open escalations is full", hint="decide some of them: `amends inbox list`")
        owner = request.owner or kit.default_owner
        if not owner:
            raise InvalidInput("a run needs a named human owner", hint="pass owner=… or set project.owner")
        if request.check != BUILT_IN_CHECK and request.check not in kit.checks:
            hint = f"configure `[checks.{request.check}]` in amends.toml"
            raise InvalidInput(f"no success check `{request.check}`", hint=hint)
        return e.RunOpened(
            tenant=kit.tenant,
            workflow=request.workflow,
            run_key=request.run_key,
            agent=request.agent,
            initiator=request.initiator,
            owner=owner,
            intent_ref=request.intent_ref,
            check=request.check,
            resume_grace_seconds=request.resume_grace_seconds,
            holder=kit.owners.me(),
            lease_until_us=kit.clock.now_us() + kit.lease_us,
        )

    def _attach(self, existing: RunState, *, resume: bool) -> Session:
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
        return self.parts.claims.take(run.run_id)

    def freeze(self, run_id: str, reason: str) -> RunState:
        """One durable compare-and-set: no forward intent passes any more (rule 14)."""
        return self._leave_open(run_id, RunStatus.RECOVERING, reason, None)

    def finish(self, session: Session, *, wait_seconds: float) -> RunOutcome:
        """From `open` to `committing`, then as far as it goes: committed, waiting for people, or recovered."""
        self._leave_open(session.run_id, RunStatus.COMMITTING, "the agent finished", session.epoch)
        return self._rest(session, wait_seconds)

    def fail(self, session: Session, reason: str, *, wait_seconds: float) -> RunOutcome:
        """Freeze and recover."""
        self._leave_open(session.run_id, RunStatus.RECOVERING, reason, session.epoch)
        return self._rest(session, wait_seconds)

    def _leave_open(self, run_id: str, to: RunStatus, reason: str, epoch: int | None) -> RunState:
        def decide(state: RunState) -> list[Draft]:
            return [Draft(e.RunMoved(to=to, reason=reason))] if state.run.status is RunStatus.OPEN else []

        state = self.parts.book.record(run_id, decide, epoch=epoch)
        if to is RunStatus.RECOVERING:
            self.parts.kit.progress.reached("after_freeze", run_id, "")
        return state

    def _rest(self, session: Session, wait_seconds: float) -> RunOutcome:
        with suppress(SystemUnavailable):
            self.parts.sending.flush()  # what was known but could not be written (rule 9)
        until_us = self.parts.kit.clock.now_us() + microseconds(wait_seconds)
        state = self.parts.sweeper.settle(session, until_us)
        return RunOutcome(session.run_id, state.run.status, public.run_message(public.of_run(state)))
