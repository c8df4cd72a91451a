"""The engine's face: runs, recovery, people's decisions, late evidence, pauses, drills."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress

from amends.core import events as e
from amends.core.canonical import Json
from amends.core.errors import AmendsError, Conflict, InvalidInput, UnknownName
from amends.core.rows import ApprovalRow, EscalationRow, PauseRow, QuarantineRow, RunRow, RunState
from amends.core.schedule import microseconds
from amends.core.status import RunStatus
from amends.ports.journal import RowKey
from amends.runtime import approvals as approving
from amends.runtime import escalations as escalating
from amends.runtime import quarantines as quarantining
from amends.runtime.book import Book, Draft
from amends.runtime.drilling import Drills, SandboxOf, no_sandbox
from amends.runtime.kit import Kit
from amends.runtime.listing import readable
from amends.runtime.opening import Lifecycle, RunRequest
from amends.runtime.parts import Parts, assemble
from amends.runtime.releasing import BUILT_IN_CHECK
from amends.runtime.reporting import run_report
from amends.runtime.results import CallResult, result_of
from amends.runtime.runs import Run

STATES_KEPT = 1000  # of runs that `recover` has driven
_LAST_WORDS_SECONDS = 2.0


class Engine:
    """One process's engine over one journal. Safe for threads; not for forked children (rule 9). `sandbox_of`: where
    drills are held.
    """

    def __init__(self, kit: Kit, sandbox_of: SandboxOf = no_sandbox) -> None:
        self.kit = kit
        self._made = assemble(kit)
        self._lifecycle = Lifecycle(self._made)
        self._drills = Drills(self._made, sandbox_of)

    @property
    def book(self) -> Book:
        """Runs as recorded, and the only way to add to them."""
        return self._made.book

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
        request = RunRequest(
            workflow=workflow,
            run_key=run_key,
            agent=agent,
            initiator=initiator,
            owner=owner,
            intent_ref=intent_ref,
            check=check,
            resume_grace_seconds=resume_grace_seconds,
        )
        session = self._lifecycle.open(request, resume=resume)
        return Run(self._made, self._lifecycle, session)

    def freeze(self, run_id: str, reason: str) -> RunState:
        """No forward intent of this run passes any more (rule 14)."""
        return self._lifecycle.freeze(run_id, reason)

    # --- recovery -----------------------------------------------------------------------------------------

    def recover(
        self,
        run_id: str | None = None,
        *,
        to: str = "",
        by: str = "",
        wait_seconds: float = 0.0,
        limit: int = STATES_KEPT,
    ) -> list[RunState]:
        """Recover one run, or every run whose driver is gone; waits for due work up to `wait_seconds`.

        All are driven, however many; the states of the last `limit` are kept and returned (`sweep` keeps none). For one
        run raises `Conflict` if it is driven, `UnknownName` for a checkpoint it never reached.
        """
        until = self._until(wait_seconds)
        if run_id is None:
            kept: dict[str, RunState] = {}
            for state in self._made.sweeper.sweep(until):
                kept[state.run.run_id] = state
                if len(kept) > limit:
                    kept.pop(next(iter(kept)))
            return list(kept.values())
        if to:
            self._target(run_id, to, by)
        return [self._made.sweeper.recover(run_id, until, ordered_by=by)]

    def sweep(self, *, wait_seconds: float = 0.0) -> Iterator[RunState]:
        """`recover` for any number of runs: each as it comes to rest, and none kept. A run that has more to do within
        `wait_seconds` comes again.
        """
        return self._made.sweeper.sweep(self._until(wait_seconds))

    def _target(self, run_id: str, checkpoint: str, by: str) -> None:
        state = self.state(run_id)
        if checkpoint not in state.run.checkpoints:
            raise UnknownName(f"run `{run_id}` has no checkpoint `{checkpoint}`", known=sorted(state.run.checkpoints))
        if state.run.status is not RunStatus.OPEN:
            raise Conflict(f"run `{run_id}` is `{state.run.status}`", hint="only an open run goes back to a checkpoint")
        self._made.sweeper.refuse_if_driven(state)
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
        return self._made.listener.report(
            run_id, action_id, happened=happened, source=source, reference=reference, detail=detail
        )

    # --- looking ------------------------------------------------------------------------------------------

    def state(self, run_id: str) -> RunState:
        """A run as recorded now. Raises `UnknownName` or `CorruptLedger`."""
        return self.book.state(run_id)

    def find(self, workflow: str, run_key: str) -> RunState | None:
        """The run of this identity, if there is one."""
        return self._lifecycle.find(workflow, run_key)

    def runs(self, statuses: frozenset[RunStatus] | None = None, *, limit: int = 1000) -> list[RunRow]:
        """Runs in order of their opening; one that cannot be read back is quarantined and left out."""
        wanted = None if statuses is None else frozenset(s.value for s in statuses)
        rows = self.kit.journal.rows("run", statuses=wanted, limit=limit)
        return self.book.runs(rows)

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
        return self._made.approvals.approve(run_id, approval_id, by=by, channel=channel, comment=comment, digest=digest)

    def reject(
        self, approval_id: str, *, by: str, channel: str = "python", comment: str = "", roll_back: bool = False
    ) -> RunState:
        """A person's no."""
        run_id = self._run_of("approval", approval_id)
        return self._made.approvals.reject(
            run_id, approval_id, by=by, channel=channel, comment=comment, roll_back=roll_back
        )

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
        return self._made.escalations.resolve(
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
        return self._made.escalations.acknowledge(run_id, escalation_id, by=by, channel=channel)

    def withdraw(self, run_id: str, action_id: str, *, by: str) -> CallResult:
        """Take a queued item out of the outbox, unsent. Raises `Conflict` for anything else."""
        return result_of(self._made.approvals.withdraw(run_id, action_id, by=by).actions[action_id])

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

    # --- quarantines --------------------------------------------------------------------------------------

    def quarantines(self) -> tuple[QuarantineRow, ...]:
        """Runs that could not be read back and that nothing drives (rule 16)."""
        return readable(quarantining.in_force(self.kit.journal), QuarantineRow)

    def lift_quarantine(self, run_id: str, *, by: str, channel: str = "python", comment: str = "") -> RunState:
        """A person of the project lets a quarantined run be driven again.

        Raises `CorruptLedger` while it does not read back as its events say, `Conflict` if it is lifted already, and
        `UnknownName`.
        """
        return quarantining.lift(self.kit, self.book, run_id, by=by, channel=channel, comment=comment)

    # --- drills -------------------------------------------------------------------------------------------

    def drill(
        self,
        capability: str,
        args: Mapping[str, object],
        *,
        agent: str = "drill",
        by: str = "",
        wait_seconds: float = 300.0,
    ) -> e.DrillCertified:
        """Do, verify, undo, verify on the adapter's own copy or on the project's sandbox, and certify it.

        On the sandbox, policies see `agent` calling, and `by`, a person of amends.toml, says yes where they ask for
        one; looks, repeats and late checks are waited for `wait_seconds`.
        Raises `CallerError` for what cannot be drilled (`ConfigError`: no sandbox), `Denied` if policy says no there,
        and `SystemRefused` with the step that did not hold and what is left; there is no certificate then.
        """
        return self._drills.drill(capability, args, agent=agent, by=by, wait_seconds=wait_seconds)

    def close(self) -> None:
        """Write what is left, let go of every lease, close the journal. Idempotent.

        Calls still in flight, whose callers have given up, get a moment to answer: a process that was frozen in its
        call, and taken over, may be the only one who learns that it landed.
        """
        self._made.sending.hear_out(_LAST_WORDS_SECONDS)
        with suppress(AmendsError):  # what cannot be written is found again by a probe
            self._made.sending.flush()
        self._made.claims.close()
        self.kit.journal.close()


@contextmanager
def parts_of(engine: Engine) -> Generator[Parts]:
    """What an engine is made of, until it is closed: how a drill holds its sandbox."""
    try:
        yield engine._made  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - of this module
    finally:
        engine.close()
