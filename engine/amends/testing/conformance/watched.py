"""A capability with its line around it: it behaves as it is, and the kit sees what the engine asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from amends.core.evidence import Observation
from amends.spi import Call, Capability, Prepared, Question, Receipt
from amends.testing.conformance.line import Line

Drilled: TypeAlias = dict[str, tuple[str, str]]  # capability -> what its drill certified


class Watched(Capability):
    """Delegates to `inner`; mutating calls and reads pass along the line. `timeout_seconds` shortens its limit; what is
    to happen between a call and the first look at it is `after_do`.
    """

    def __init__(self, inner: Capability, line: Line, timeout_seconds: float, drilled: Drilled) -> None:
        limits = inner.contract.limits.model_copy(
            update={"timeout_seconds": min(timeout_seconds, inner.contract.limits.timeout_seconds)}
        )
        self.contract = inner.contract.model_copy(update={"limits": limits})
        self.arguments = inner.arguments
        self.calls: list[Call] = []
        self.after_do: Callable[[], None] = lambda: None
        self._inner = inner
        self._line = line
        self._drilled = drilled

    def prepare(self, question: Question) -> Prepared:
        return self._inner.prepare(question)

    def do(self, call: Call) -> Receipt:
        self.calls.append(call)
        try:
            return self._line.around_send(call, self._inner.do, self._inner.probe)
        finally:
            self.after_do()

    def probe(self, question: Question) -> Observation:
        return self._line.around_ask(question, self._inner.probe)

    def undo(self, call: Call) -> Receipt:
        self.calls.append(call)
        return self._line.around_send(call, self._inner.undo, self._inner.verify_undone)

    def verify_undone(self, question: Question) -> Observation:
        return self._line.around_ask(question, self._inner.verify_undone)

    def place(self, question: Question) -> str:
        return self._inner.place(question)


class WatchedCopy(Watched):
    """One whose adapter drills on a copy that it makes itself."""

    def drill(self, question: Question) -> tuple[str, str]:
        """Once for all tests of a system: a certificate of other content than the call's is worth nothing to it."""
        name = self.contract.capability
        if name not in self._drilled:
            self._drilled[name] = self._inner.drill(question)
        return self._drilled[name]
