"""A run as an agent holds it. The handle can call, plan, set checkpoints and withdraw; it cannot release, approve or
recover (rule 26).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from amends.core import events as e
from amends.core.errors import CallerError, Conflict, InvalidInput
from amends.core.redaction import redact_text
from amends.core.rows import RunState
from amends.core.status import ActionStatus, RunStatus
from amends.runtime.book import Draft
from amends.runtime.flights import CALL_SPARE_SECONDS
from amends.runtime.intending import OPEN, Begun
from amends.runtime.opening import Lifecycle, RunOutcome
from amends.runtime.parts import Parts
from amends.runtime.planning import PlannedStep, Step, classify
from amends.runtime.resolving import Request
from amends.runtime.results import CallResult, result_of
from amends.runtime.sessions import Session

_GATE_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Flight:
    """A call in flight, and how long its caller waits for it."""

    action_id: str
    future: Future[CallResult]
    patience_seconds: float


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
        with self._interruptible():
            return self._wait(self._sent(self._parts.invoker.begin(self._session, request, _always), _always))

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

        def wanted() -> bool:
            return not gave_up.is_set()

        def start() -> _Flight | CallResult:
            return self._sent(self._parts.invoker.begin(self._session, request, wanted), wanted)

        try:
            # One thread for both halves: a caller cancelled between them leaves no intent that nobody follows up.
            flight = await asyncio.to_thread(start)
            return flight if isinstance(flight, CallResult) else await self._await(flight)
        except asyncio.CancelledError:
            gave_up.set()
            raise

    def _sent(self, begun: Begun, wanted: Callable[[], bool]) -> _Flight | CallResult:
        if isinstance(begun, CallResult):
            return begun
        contract = self._parts.book.last_known(self.run_id).actions[begun.action_id].contract
        future = self._parts.sending.send(self._session, begun.action_id, wanted, allowed=OPEN)
        return _Flight(begun.action_id, future, contract.limits.timeout_seconds + CALL_SPARE_SECONDS)

    async def _await(self, flight: _Flight) -> CallResult:
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(flight.future)), flight.patience_seconds)
        except TimeoutError:
            give_up = self._parts.sending.give_up_waiting
            return await asyncio.to_thread(give_up, self._session, flight.action_id, "timeout")

    def _wait(self, flight: _Flight | CallResult) -> CallResult:
        if isinstance(flight, CallResult):
            return flight
        try:
            return flight.future.result(timeout=flight.patience_seconds)
        except TimeoutError:
            return self._parts.sending.give_up_waiting(self._session, flight.action_id, "timeout")

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        """The first interrupt freezes the run and waits for its calls in flight; a second leaves them to the lease."""
        try:
            yield
        except KeyboardInterrupt:
            state = self._lifecycle.freeze(self.run_id, "interrupted")
            self._parts.sending.drain(state, CALL_SPARE_SECONDS)
            raise

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
        clock = self._parts.kit.clock
        until = clock.monotonic() + wait_seconds
        while result.status is ActionStatus.AWAITING_APPROVAL and clock.monotonic() < until:
            clock.sleep(_GATE_POLL_SECONDS)
            state = self._parts.approvals.expire(self.run_id, None)
            if state.run.status is not RunStatus.OPEN:
                return result_of(state.actions[result.action_id])
            with self._interruptible():
                begun = self._parts.invoker.after_approval(self._session, result.action_id, _always)
                result = self._wait(self._sent(begun, _always))
        return result

    # --- the rest of a run --------------------------------------------------------------------------------

    def plan(self, steps: Sequence[Step]) -> tuple[PlannedStep, ...]:
        """Classify planned calls before the first: class, readers, undo, undo cost, order. Raises `CallerError` for
        an unlabelled step or one that needs the output of a queued step (unless that one is a gate).
        """
        return classify(self._parts.kit.catalog, steps)

    def checkpoint(self, name: str) -> None:
        """A point that `recover --to NAME` goes back to (rule 24). Raises `InvalidInput` for a name with a secret."""
        self._check_process()
        if redact_text(name, self._parts.kit.secrets.revealed()) != name:
            raise InvalidInput("the checkpoint's name holds a secret", hint="name it by something that is no secret")
        drafts = [Draft(e.CheckpointReached(name=name))]
        self._parts.book.record(
            self.run_id, lambda _: drafts, epoch=self._session.epoch, allowed=frozenset({RunStatus.OPEN})
        )

    def withdraw(self, result: CallResult) -> CallResult:
        """Take a queued item out of the outbox."""
        self._check_process()
        state = self._parts.approvals.withdraw(self.run_id, result.action_id, by=self.state.run.agent)
        return result_of(state.actions[result.action_id])

    def finish(self, *, wait_seconds: float = 0.0) -> RunOutcome:
        """End the run well: ask its check, release the outbox; or recover, if the check does not pass."""
        self._check_process()
        self.outcome = self._lifecycle.finish(self._session, wait_seconds=wait_seconds)
        return self.outcome

    def fail(self, reason: str, *, wait_seconds: float = 0.0) -> RunOutcome:
        """End the run badly: freeze it and recover."""
        self._check_process()
        self.outcome = self._lifecycle.fail(self._session, reason, wait_seconds=wait_seconds)
        return self.outcome

    def detach(self) -> None:
        """Leave the run open for another session to resume; it is recovered if nobody does within its grace."""
        self._check_process()
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


def _always() -> bool:
    return True


def _ids(depends_on: Sequence[CallResult | str] | None) -> tuple[str, ...] | None:
    if depends_on is None:
        return None
    return tuple(item if isinstance(item, str) else item.action_id for item in depends_on)
