"""`CallLine`: the same faults at the adapter's own boundary, for systems that have no wire to stand on.

The adapter's call is made, or not, or two times; what the engine gets back is what a broken line would have left it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amends.core.evidence import Observation
from amends.spi import Call, NotSent, Question, Receipt, Refused
from amends.testing.conformance.armed import Armed
from amends.testing.conformance.line import Cut, Exchange, Fault, FaultKind


class CallLine:
    """A line to a system in this process or on this disk. `address` is handed to the adapter as it is."""

    kinds: frozenset[FaultKind] = frozenset(
        {"unsent", "dropped", "lost", "replayed", "denied", "late", "twice", "stale"}
    )
    cuts: frozenset[Cut] = frozenset({"fin", "silence"})  # an error, and an answer that was not waited for

    def __init__(self, address: str = "") -> None:
        self.address = address
        self._armed = Armed(self.kinds, self.cuts)
        self._before: Observation | None = None
        self._landing: tuple[Callable[[], object], int] | None = None
        self._last: Receipt | None = None

    def arm(self, fault: Fault) -> None:
        self._armed.add(fault)

    def unfired(self) -> tuple[Fault, ...]:
        landing = (Fault("late"),) if self._landing is not None else ()
        return (*self._armed.unfired(), *landing)

    def exchanges(self) -> tuple[Exchange, ...]:
        return self._armed.exchanges()

    def around_send(
        self, call: Call, send: Callable[[Call], Receipt], ask: Callable[[Question], Observation]
    ) -> Receipt:
        if self._armed.stale:
            self._before = ask(call)
        fault = self._armed.write()
        if fault is None:
            self._last = self._sent(call, send, "")
            return self._last
        if fault.kind == "unsent":
            raise NotSent("the kit refused the connection", code="connect_refused")
        return self._faulty(call, send, fault)

    def _faulty(self, call: Call, send: Callable[[Call], Receipt], fault: Fault) -> Receipt:
        match fault.kind:
            case "denied":
                self._note("denied", _marker(call))
                raise Refused(f"the system answered {fault.status}", code=f"http_{fault.status}")
            case "replayed":
                self._note("replayed", _marker(call))
                if self._last is None:
                    raise ConnectionError("there is no earlier answer to replay")
                return self._last
            case "dropped":
                self._note(str(fault), _marker(call))
                raise _cut(fault)
            case "late":
                self._note("late", _marker(call))
                left = replace(call, still_wanted=lambda: True)  # it is on its way: nobody can want it back
                self._landing = (lambda: send(left), fault.after_reads)
                raise _cut(fault)
            case "twice":
                self._sent(call, send, str(fault))
                return send(call)
            case _:
                self._sent(call, send, str(fault))
                raise _cut(fault)

    def around_ask(self, question: Question, ask: Callable[[Question], Observation]) -> Observation:
        if self._before is not None and self._armed.read_is_stale():
            self._note("stale", question.marker, writes=False)
            return self._before
        seen = ask(question)
        self._note("", question.marker, writes=False)
        if self._landing is not None:
            land, left = self._landing
            self._landing = (land, left - 1)
            if left <= 1:
                self._landing = None
                land()
        return seen

    def disarm(self) -> None:
        """What has not happened will not happen any more."""
        self._armed.clear()

    def land(self) -> None:
        """Let a call that is under way arrive, however few reads there were."""
        landing, self._landing = self._landing, None
        if landing is not None:
            landing[0]()

    def stop(self) -> None:
        """There is nothing to let go of."""

    def _sent(self, call: Call, send: Callable[[Call], Receipt], fault: str) -> Receipt:
        self._note(fault, _marker(call))
        return send(call)

    def _note(self, fault: str, marker: str, *, writes: bool = True) -> None:
        self._armed.note(Exchange("CALL" if writes else "LOOK", marker, {}, b"", writes=writes, fault=fault))


def _marker(call: Call) -> str:
    return call.undo_marker or call.marker


def _cut(fault: Fault) -> OSError:
    """What the engine sees of a line that broke, or of one on which nothing was heard in time."""
    if fault.how == "silence":
        return TimeoutError("the kit let nothing be heard")
    return ConnectionResetError("the kit cut the line")
