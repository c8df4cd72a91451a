"""A drill on a sandbox: a call and its undo as an ordinary run there, with every rule of life in force.

Intent first, policy asked, secrets kept out, undone by recovery itself. What did not hold proves nothing, and stays in
the sandbox's ledger as it is, for the next drill, `recover` or a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amends.core import schedule
from amends.core.audit import undrillable
from amends.core.contract import Contract
from amends.core.errors import AmendsError, CallerError, Conflict, Denied, PolicyError, SystemRefused
from amends.core.evidence import Observation
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, ActionStatus, ParkedCause, RunStatus
from amends.runtime.opening import Lifecycle, RunRequest
from amends.runtime.parts import Parts
from amends.runtime.reporting import exists, might_exist
from amends.runtime.runs import Run

_S = ActionStatus
_UNSETTLED = frozenset({RunStatus.NEEDS_HUMAN.value, RunStatus.RECOVERING.value})
_CHANNEL = "drill"
_NAME_ONE = "; name who gives it: `--by PERSON`"


@dataclass(frozen=True, slots=True)
class Proof:
    """What a drill showed: what it was about (empty: nothing but the adapter), and what was seen, in words."""

    subject_digest: str
    detail: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The step of a drill that did not hold, and why."""

    step: str  # `do`, `verify`, `undo`, `verify undone`, or `settle`
    why: str
    denied: bool = False  # it is policy that said no


def refuse_undrillable(contract: Contract) -> None:
    """Raises `CallerError` for a call that has no undo of its own to drill."""
    reason = undrillable(contract)
    if reason:
        raise CallerError(
            f"`{contract.capability}` has no undo to drill: {reason}",
            hint="drill calls that recovery takes back; the others need a person's yes, or leave a correction",
        )


@dataclass(frozen=True)
class Rehearsal:
    """One capability on one sandbox. `agent` is who calls, in policies; `by` the person who says yes where policy asks
    for one (empty: nobody); all waiting ends after `wait_seconds`.
    """

    sandbox: Parts
    capability: str
    agent: str
    by: str
    wait_seconds: float

    def hold(self, args: Mapping[str, object]) -> Proof:
        """Do, verify, undo, verify. What an earlier drill left is recovered first.

        Raises `Conflict` if it cannot be, `Denied` if policy says no at any step, and `SystemRefused` with the step
        that did not hold; nothing but a whole drill returns.
        """
        self._settle_earlier()
        lifecycle = Lifecycle(self.sandbox)
        request = RunRequest(workflow=self._workflow, run_key=self.sandbox.kit.ids.new(), agent=self.agent)
        with Run(self.sandbox, lifecycle, lifecycle.open(request, resume=False)) as run:
            until = self._until_us()
            action_id, trouble = self._do(run, args, until)
            trouble = trouble or self._verify(run, action_id, until)
            run.fail(trouble.why if trouble else "the drill takes it back", wait_seconds=self.wait_seconds)
        if self._approved(run.state) or self._nobody_to_tell(run.state):
            self.sandbox.sweeper.recover(run.run_id, self._until_us())
        state = self.sandbox.book.state(run.run_id)
        trouble = trouble or _undone(state, action_id) or _settled(state)
        if trouble is not None:
            raise self._error(trouble, state)
        return self._proof(state, action_id)

    @property
    def _workflow(self) -> str:
        return f"drill:{self.capability}"

    def _until_us(self) -> int:
        return self.sandbox.kit.clock.now_us() + schedule.microseconds(self.wait_seconds)

    # --- before -------------------------------------------------------------------------------------------

    def _settle_earlier(self) -> None:
        """Recover runs whose driver is gone. Raises `Conflict` if a drill of this capability is left unsettled."""
        for _ in self.sandbox.sweeper.sweep(self._until_us()):
            pass
        for run in self.sandbox.book.runs(self.sandbox.kit.journal.rows("run", statuses=_UNSETTLED, limit=10_000)):
            if run.workflow == self._workflow and not self._driven(run.run_id):
                raise Conflict(
                    f"an earlier drill of `{self.capability}` left run `{run.run_id}` on the sandbox as `{run.status}`",
                    hint="decide it: `amends --sandbox inbox list`; then drill again",
                    run_id=run.run_id,
                )

    def _driven(self, run_id: str) -> bool:
        try:
            self.sandbox.sweeper.refuse_if_driven(self.sandbox.book.state(run_id))
        except Conflict:
            return True
        return False

    # --- do, verify ---------------------------------------------------------------------------------------

    def _do(self, run: Run, args: Mapping[str, object], until_us: int) -> tuple[str, Trouble | None]:
        """The call, looked at until its outcome is known."""
        result = run.call(self.capability, args, label="drill")
        if result.status is _S.AWAITING_APPROVAL and self._approved(run.state):
            result = run.call(self.capability, args, label="drill")
        while result.status is _S.UNKNOWN:
            action = run.state.actions[result.action_id]
            if not self._wait(schedule.next_probe_us(action, None), until_us):
                return result.action_id, Trouble("do", f"its outcome stayed unknown: {_said(action)}")
            result = run.call(self.capability, args, label="drill")
        if result.status is _S.AWAITING_APPROVAL:
            return result.action_id, Trouble("do", f"policy asks for a person's yes{_NAME_ONE}", denied=True)
        if result.status is not _S.SUCCEEDED:
            action = run.state.actions[result.action_id]
            denied = result.status is _S.DENIED
            return result.action_id, Trouble("do", f"it is `{result.status}`: {_said(action)}", denied=denied)
        return result.action_id, None

    def _verify(self, run: Run, action_id: str, until_us: int) -> Trouble | None:
        """A separate read of the system, which must find exactly this effect, whole."""
        while True:
            before = run.state.actions[action_id].probes
            state = self.sandbox.looker.reconcile(run.run_id, action_id, run.state.run.epoch)
            action = state.actions[action_id]
            seen = action.observation
            if action.probes == before or seen is None:
                return Trouble("verify", f"policy denied the read: {action.parked_detail}", denied=True)
            if seen.seen == "applied":
                return _incomplete(action.contract, seen)
            again = seen.seen in {"absent", "inconclusive"}
            if not again or not self._wait(schedule.next_look_us(action), until_us):
                return Trouble("verify", f"a separate read says `{seen.seen}`: {seen.detail or 'no more than that'}")

    def _wait(self, due_us: int | None, until_us: int) -> bool:
        """Wait for the next look; False if there is none in time."""
        if due_us is None or due_us > until_us:
            return False
        clock = self.sandbox.kit.clock
        clock.sleep(max(0.0, (due_us - clock.now_us()) / 1_000_000) + 0.001)
        return True

    # --- after --------------------------------------------------------------------------------------------

    def _approved(self, state: RunState) -> bool:
        """Say yes to whatever this run asks, if somebody is there to say it; True if anything was asked."""
        asked = [row for row in state.approvals.values() if row.status == "pending"] if self.by else []
        for row in asked:
            self.sandbox.approvals.approve(
                state.run.run_id, row.approval_id, by=self.by, channel=_CHANNEL, comment="for the drill"
            )
        return bool(asked)

    def _nobody_to_tell(self, state: RunState) -> bool:
        """Close notes for places that nothing on the sandbox serves: nobody reads there. True if there were any. A note
        that can be posted is posted.
        """
        unposted = {
            action.action_id
            for action in state.actions.values()
            if action.kind is ActionKind.CORRECT
            and action.parked_cause is ParkedCause.ADAPTER_UNAVAILABLE
            and not action.ever_sent
        }
        items = [i for i in state.escalations.values() if i.action_id in unposted and i.status != "resolved"]
        for item in items:
            self.sandbox.escalations.resolve(
                state.run.run_id,
                item.escalation_id,
                "accept_as_is",
                by=_CHANNEL,
                channel=_CHANNEL,
                comment="nobody reads there on a sandbox",
            )
        return bool(items)

    def _error(self, trouble: Trouble, state: RunState) -> AmendsError:
        left = [_line(action) for action in state.forward_actions() if exists(action) or might_exist(action)]
        told = f"left there: {'; '.join(left)}" if left else "nothing is left there"
        kind: type[PolicyError | SystemRefused] = Denied if trouble.denied else SystemRefused
        return kind(
            f"the drill of `{self.capability}` did not hold: `{trouble.step}`: {trouble.why}; {told}",
            hint=f"`amends --sandbox runs show {state.run.run_id}` tells it; mend it, then drill again",
            step=trouble.step,
            run_id=state.run.run_id,
            run_status=state.run.status.value,
            left=left,
        )

    def _proof(self, state: RunState, action_id: str) -> Proof:
        action = state.actions[action_id]
        rungs = " → ".join(undo.rung for undo in _undos(state, action_id))
        detail = f"done, seen, undone by `{rungs}`, seen gone in `{action.environment}`: run {state.run.run_id}"
        return Proof(action.subject_digest, detail)


def _incomplete(contract: Contract, seen: Observation) -> Trouble | None:
    """What is not there of an effect whose undo takes back the whole of it, or nothing (rule 7)."""
    missing = [] if contract.partial_inverse else sorted(set(contract.parts) - set(seen.parts))
    return Trouble("verify", f"only some parts exist; missing: {', '.join(missing)}") if missing else None


def _undos(state: RunState, action_id: str) -> list[ActionRow]:
    return [a for a in state.actions.values() if a.kind is ActionKind.UNDO and a.of == action_id]


def _undone(state: RunState, action_id: str) -> Trouble | None:
    """What is missing for an effect that was taken back by its registered undo, and seen to be gone."""
    action = state.actions[action_id]
    sent = [undo for undo in _undos(state, action_id) if undo.ever_sent]
    if action.status is not _S.COMPENSATED:
        denied = action.parked_cause in {ParkedCause.DENIED, ParkedCause.POLICY_CHANGED}
        verified = any(undo.status is _S.SUCCEEDED for undo in sent)
        asked = any(row.status == "pending" for row in state.approvals.values())
        why = f"{_said(action)}{_NAME_ONE if asked else ''}"
        return Trouble("verify undone" if verified else "undo", why, denied=denied)
    if not sent:
        return Trouble(
            "undo", "nothing was undone: with these arguments the call changes nothing, or it was gone before"
        )
    return None


def _settled(state: RunState) -> Trouble | None:
    """What is left besides the call itself: a second effect, a correction that could not be posted."""
    twins = [a for a in state.actions.values() if a.kind is ActionKind.DUPLICATE]
    if twins:
        return Trouble("verify", f"one call made {len(twins) + 1} effects")
    if state.run.status is not RunStatus.RECOVERED:
        open_ones = [_line(a) for a in state.actions.values() if a.status is _S.NEEDS_HUMAN]
        return Trouble("settle", f"its run is `{state.run.status}`: {'; '.join(open_ones) or state.run.reason}")
    return None


def _said(action: ActionRow) -> str:
    """What the record says of an action that did not come out as it should."""
    if action.parked_detail or action.withdrawn_reason:
        return action.parked_detail or action.withdrawn_reason
    if action.error is not None:
        return f"{action.error.code}: {action.error.message}"
    last = action.evidence[-1] if action.evidence else None
    return (last.detail or last.code) if last else f"`{action.status}`"


def _line(action: ActionRow) -> str:
    reference = f" ({action.reference})" if action.reference else ""
    detail = f": {action.parked_detail}" if action.parked_detail else ""
    return f"`{action.capability}` on `{action.resource}`{reference} is `{action.status}`{detail}"
