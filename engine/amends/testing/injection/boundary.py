"""The boundary of a sandbox's adapters: where this world's fault is made, and seen to have been made."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from amends.core.evidence import Observation
from amends.runtime.kit import Catalog
from amends.spi import Call, Capability, Corrector, Prepared, Question, Receipt
from amends.testing.conformance import CallLine
from amends.testing.conformance import Fault as LineFault

REJECTED = LineFault("denied", status=403)


@dataclass
class Boundary:
    """What happens between the engine and the sandbox in one world."""

    line: CallLine = field(default_factory=CallLine)
    rejects_undo_of: str = ""  # an action id: its compensation is refused
    rejected_rung: str = ""  # the first rung that was tried, and each time it is; the next one passes
    made: set[str] = field(default_factory=set[str])  # action ids whose call came back with a receipt
    seen_before_call: dict[str, Observation] = field(default_factory=dict[str, Observation])
    seen_before_undo: dict[str, Observation] = field(default_factory=dict[str, Observation])

    @property
    def fired(self) -> bool:
        """Whether a fault was made on the line."""
        return any(exchange.fault for exchange in self.line.exchanges())

    def around(self, catalog: Catalog) -> Catalog:
        """The same capabilities, behind this boundary. Correctors only tell people, and stay as they are."""
        return Catalog(
            offer
            if isinstance(offer.capability, Corrector)
            else replace(offer, capability=_Bounded(offer.capability, self))
            for offer in catalog.all()
        )

    def sent(self, call: Call, send: Callable[[Call], Receipt], ask: Callable[[Question], Observation]) -> Receipt:
        """A call, or one that takes an effect back (with a rung), by whichever capability."""
        if call.rung:
            self._before_undo(call)
        else:
            with suppress(Exception):  # a read that fails tells nothing
                self.seen_before_call[call.action_id] = ask(call)
        return self.line.around_send(call, self._noted(send), ask)

    def _noted(self, send: Callable[[Call], Receipt]) -> Callable[[Call], Receipt]:
        def noting(call: Call) -> Receipt:
            receipt = send(call)
            if not call.rung:
                self.made.add(call.action_id)
            return receipt

        return noting

    def _before_undo(self, call: Call) -> None:
        if call.observed is not None:
            self.seen_before_undo[call.action_id] = call.observed
        if call.action_id == self.rejects_undo_of and self.rejected_rung in {"", call.rung}:
            self.rejected_rung = call.rung
            self.line.arm(REJECTED)


class _Bounded(Capability):
    """Delegates to `inner`, behind the boundary."""

    def __init__(self, inner: Capability, boundary: Boundary) -> None:
        self.contract = inner.contract
        self.arguments = inner.arguments
        self._inner = inner
        self._boundary = boundary

    def prepare(self, question: Question) -> Prepared:
        return self._inner.prepare(question)

    def do(self, call: Call) -> Receipt:
        return self._boundary.sent(call, _made(self._inner.do), self._inner.probe)

    def probe(self, question: Question) -> Observation:
        return self._boundary.line.around_ask(question, self._inner.probe)

    def undo(self, call: Call) -> Receipt:
        return self._boundary.sent(call, _made(self._inner.undo), self._inner.verify_undone)

    def verify_undone(self, question: Question) -> Observation:
        return self._boundary.line.around_ask(question, self._inner.verify_undone)

    def place(self, question: Question) -> str:
        return self._inner.place(question)


def _made(send: Callable[[Call], Receipt]) -> Callable[[Call], Receipt]:
    """`send`, finished when it returns even if the adapter wrote `async def`: a lost answer is that of a made call."""

    def sent(call: Call) -> Receipt:
        receipt: object = send(call)
        return cast("Receipt", asyncio.run(_awaited(receipt)) if inspect.isawaitable(receipt) else receipt)

    return sent


async def _awaited(receipt: Awaitable[object]) -> object:
    return await receipt
