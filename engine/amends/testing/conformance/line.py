"""The line between an adapter and its system: where the kit makes faults, counts requests, and sees each fault fire.

Three lines behave alike: `HttpLine` stands on the wire, in front of any HTTP system; `TcpLine` in front of one that
speaks something else; `CallLine` at the adapter's own boundary, for systems without a wire (a file, a database in this
process). A fault is armed for the next mutating request, or for the reads after it. Who arms a fault must see it fire:
`unfired` is empty at the end of every test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from amends.core.canonical import Json
from amends.core.evidence import Observation
from amends.spi import Call, Question, Receipt

FaultKind: TypeAlias = Literal[
    "unsent",  # the connection is refused: nothing leaves
    "dropped",  # not done, and nothing answers (`how`)
    "lost",  # done, and the answer is lost (`how`)
    "status",  # done, and answered with `status` by somebody on the way
    "html",  # done, and answered 200 with a page
    "empty",  # done, and answered 200 with nothing
    "replayed",  # not done, and answered with the success of the request before it
    "denied",  # not done, and refused with `status` and `body`
    "late",  # the answer is lost first (`how`), and it is done when `after_reads` reads have gone by
    "twice",  # done two times; the second answer is given
    "stale",  # the next `reads` reads are answered as they were before the request
]
Cut: TypeAlias = Literal["fin", "rst", "cut_body", "silence"]
CUTS: tuple[Cut, ...] = ("fin", "rst", "cut_body", "silence")


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault: what goes wrong with the next mutating request."""

    kind: FaultKind
    how: Cut = "fin"
    status: int = 500
    body: Json = field(default=None, compare=False)
    after_reads: int = 1
    reads: int = 1
    lasting: bool = False  # every request from now on meets it

    def __str__(self) -> str:
        detail = {"lost": self.how, "dropped": self.how, "status": self.status, "denied": self.status}.get(self.kind)
        return self.kind if detail is None else f"{self.kind}({detail})"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that came along the line. `writes`: it changes something, or would."""

    method: str
    target: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    writes: bool = False
    fault: str = ""

    def carries(self, text: str) -> bool:
        """Whether the text stands in the request: address, headers or body."""
        wanted = text.encode()
        return wanted in self.body or wanted in f"{self.target} {self.headers}".encode()


class Line(Protocol):
    """What a test needs of a line."""

    @property
    def address(self) -> str:
        """Where the adapter is told to find its system; empty if the system has no address."""
        ...

    @property
    def kinds(self) -> frozenset[FaultKind]:
        """The faults that this line can make."""
        ...

    @property
    def cuts(self) -> frozenset[Cut]:
        """The ways in which this line can lose an answer that differ for the adapter."""
        ...

    def arm(self, fault: Fault) -> None:
        """Make this fault at the next chance. Raises `ValueError` for a kind or a cut that the line cannot make."""
        ...

    def unfired(self) -> tuple[Fault, ...]:
        """The armed faults that have not happened yet."""
        ...

    def exchanges(self) -> tuple[Exchange, ...]:
        """Every request so far, in order."""
        ...

    def around_send(
        self, call: Call, send: Callable[[Call], Receipt], ask: Callable[[Question], Observation]
    ) -> Receipt:
        """The adapter makes its mutating call (`send`) behind this line; `ask` is its probe."""
        ...

    def around_ask(self, question: Question, ask: Callable[[Question], Observation]) -> Observation:
        """The adapter reads behind this line."""
        ...

    def stop(self) -> None:
        """Let go of everything."""
        ...
