"""A run as an agent holds it. The handle can call, plan, set checkpoints and withdraw; it cannot release, approve or
recover (rule 26).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from amends.core import events as e
from amends.core.errors import CallerError, Conflict
from amends.core.rows import RunState
from amends.core.status import ActionStatus, RunStatus
from amends.runtime.book import Draft
from amends.runtime.intending import OPEN, ToSend
from amends.runtime.opening import Lifecycle, RunOutcome
from amends.runtime.parts import Parts
from amends.runtime.planning import PlannedStep, Step, classify
from amends.runtime.resolving import Request
from amends.runtime.results import CallResult, result_of
from amends.runtime.sessions import Session

_GATE_POLL_SECONDS = 0.2
_SPARE_SECONDS = 5.0


class Run:
    """One agent run, driven by this process until the `with` block ends.

    A block that ends normally finishes the run: its success check is asked and the outbox released. A block that
    ends with an exception freezes the run and recovers it.
    """

    def __init__(self, parts: Parts, lifecycle: Lifecycle, session: Session) -> None:
        self._parts = parts
        self._lifecycle = lifecycle
        self._session = session
        self._pid = os.getpid()
        self.outcome: RunOutcome | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._session.run_id

    @property
    def state(self) -> RunState:
        """The run as recorded now."""
        return self._parts.book.state(self.run_id)

    # --- calls --------------------------------------------------------------------------------------------

    def call(
        self,
        capability: str,
        args: Mapping[str, object] | None = None,
        *,
        label: str = "",
        depends_on: Sequence[CallResult | str] | None = None,
        required: bool = True,
    ) -> CallResult:
        """Make one call and wait for what is known of it.

        Answers with the recorded state for a slot that is taken; never sends because something is unknown. Raises a
        `CallerError`, `PolicyError` or `SystemUnavailable` for calls that were not sent; what a sent call did is told
        by the result, never by an exception.
        """
        self._check_process()
        request = Request(capability, args or {}, label, _ids(depends_on), required)
        begun = self._parts.invoker.begin(self._session, request, lambda: True)
        if isinstance(begun, CallResult):
            return begun
        return self._wait(begun)

    async def acall(
        self,
        capability: str,
        args: Mapping[str, object] | None = None,
        *,
        label: str = "",
        depends_on: Sequence[CallResult | str] | None = None,
        required: bool = True,
    ) -> CallResult:
        """`call` for async agents. A cancelled caller does not cancel the call: its outcome is recorded all the same,
        and a call whose intent is not durable yet is not sent.
        """
        self._check_process()
        gave_up = threading.Event()
        request = Request(capability, args or {}, label, _ids(depends_on), required)
        try:
            begun = await asyncio.to_thread(
                self._parts.invoker.begin, self._session, request, lambda: not gave_up.is_set()
            )
            if isinstance(begun, CallResult):
                return begun
            return await self._await(begun, lambda: not gave_up.is_set())
        except asyncio.CancelledError:
            gave_up.set()
            raise

    async def _await(self, begun: ToSend, wanted: Callable[[], bool]) -> CallResult:
        flight = self._parts.sending.send(self._session, begun.action_id, wanted, allowed=OPEN)
        try:
            return await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(flight)), self._timeout_of(begun.action_id)
            )
        except TimeoutError:
            give_up = self._parts.sending.give_up_waiting
            return await asyncio.to_thread(give_up, self._session, begun.action_id, "timeout")

    def gate(
        self,
        capability: str,
        args: Mapping[str, object] | None = None,
        *,
        label: str = "",
        depends_on: Sequence[CallResult | str] | None = None,
        wait_seconds: float = 0.0,
    ) -> CallResult:
        """A call that a person must approve in mid-run: waits up to `wait_seconds` for their answer (rule 29).

        A caller's own time-out changes nothing: call again with the same arguments to go on waiting.
        """
        result = self.call(capability, args, label=label, depends_on=depends_on)
        until = self._parts.kit.clock.monotonic() + wait_seconds
        while result.status is ActionStatus.AWAITING_APPROVAL and self._parts.kit.clock.monotonic() < until:
            self._parts.kit.clock.sleep(_GATE_POLL_SECONDS)
            self._parts.approvals.expire(self.run_id, None)
            begun = self._parts.invoker.after_approval(self._session, result.action_id, lambda: True)
            result = begun if isinstance(begun, CallResult) else self._wait(begun)
        return result

    def _wait(self, begun: ToSend) -> CallResult:
        flight = self._parts.sending.send(self._session, begun.action_id, lambda: True, allowed=OPEN)
        try:
            return flight.result(timeout=self._timeout_of(begun.action_id))
        except TimeoutError:
            return self._parts.sending.give_up_waiting(self._session, begun.action_id, "timeout")
        except KeyboardInterrupt:
            flight.result(timeout=self._timeout_of(begun.action_id))  # drain; a second interrupt leaves it to the lease
            self._lifecycle.freeze(self.run_id, "interrupted")
            raise

    def _timeout_of(self, action_id: str) -> float:
        contract = self._parts.book.state(self.run_id).actions[action_id].contract
        return contract.limits.timeout_seconds + _SPARE_SECONDS

    # --- the rest of a run --------------------------------------------------------------------------------

    def plan(self, steps: Sequence[Step]) -> tuple[PlannedStep, ...]:
        """Classify planned calls before the first: class, readers, undo, undo cost, order. Raises `CallerError` for
        an unlabelled step or one that needs the output of a queued step (unless that one is a gate).
        """
        return classify(self._parts.kit.catalog, steps)

    def checkpoint(self, name: str) -> None:
        """A point that `recover --to NAME` goes back to (rule 24)."""
        drafts = [Draft(e.CheckpointReached(name=name))]
        self._parts.book.record(
            self.run_id, lambda _: drafts, epoch=self._session.epoch, allowed=frozenset({RunStatus.OPEN})
        )

    def withdraw(self, result: CallResult) -> CallResult:
        """Take a queued item out of the outbox."""
        state = self._parts.approvals.withdraw(self.run_id, result.action_id, by=self.state.run.agent)
        return result_of(state.actions[result.action_id])

    def finish(self, *, wait_seconds: float = 0.0) -> RunOutcome:
        """End the run well: ask its check, release the outbox; or recover, if the check does not pass."""
        self.outcome = self._lifecycle.finish(self._session, wait_seconds=wait_seconds)
        return self.outcome

    def fail(self, reason: str, *, wait_seconds: float = 0.0) -> RunOutcome:
        """End the run badly: freeze it and recover."""
        self.outcome = self._lifecycle.fail(self._session, reason, wait_seconds=wait_seconds)
        return self.outcome

    def detach(self) -> None:
        """Leave the run open for another session to resume; it is recovered if nobody does within its grace."""
        self._parts.claims.release(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if self._session.closed or self.outcome is not None:
            return False
        if error is None:
            self.finish()
        else:
            self.fail(f"the agent stopped: {type(error).__name__}")
        return False

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise CallerError("a forked child may not use the run of its parent", hint="open the engine in the child")
        if self._session.closed:
            raise Conflict("this run's handle is closed", hint="open the run again with resume=True")


def _ids(depends_on: Sequence[CallResult | str] | None) -> tuple[str, ...] | None:
    if depends_on is None:
        return None
    return tuple(item if isinstance(item, str) else item.action_id for item in depends_on)
