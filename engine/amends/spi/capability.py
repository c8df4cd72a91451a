"""A capability: one operation of an adapter, with the calls the engine makes on it.

The engine calls, in this order: `prepare` (read-only), then, after the intent is durable, `do`; `probe` whenever it
must know; `undo` for a compensation; `verify_undone` after it. An adapter never retries by itself, opens a fresh
connection for each mutating call, and sends exactly one mutating request per `do` or `undo`.

What an adapter may raise from `do` and `undo`:

* `NotSent`: provably nothing left this machine (name not resolved, connection refused, TLS handshake failed).
* `Refused`: the provider authoritatively said no, and nothing changed.
* anything else means *unknown*: the engine will probe. Do not translate a time-out or a 5xx into one of the above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict

from amends.core.canonical import Json
from amends.core.contract import Contract
from amends.core.evidence import Observation


class NotSent(Exception):
    """Provably nothing was sent. `code` is a short word such as `connect_refused`."""

    def __init__(self, detail: str, *, code: str = "not_sent") -> None:
        super().__init__(detail)
        self.code = code


class Refused(Exception):
    """The provider said no and nothing changed.

    `again`: the very same request may be sent later (429, 503 declared as refusal), after `retry_after_seconds`;
    otherwise the refusal is stored by the provider and a new try needs a new key (rule 5).
    """

    def __init__(
        self, detail: str, *, code: str = "refused", again: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.again = again
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `prepare` read. `before` is the before-image; `allocated` every identifier that can be chosen up front;
    `input` overrides or adds declared policy input; `content_digest` binds referenced content (file hash, SHA).
    """

    before: Mapping[str, Json] = field(default_factory=dict[str, Json])  # the before-image
    allocated: Mapping[str, Json] = field(default_factory=dict[str, Json])  # identifiers chosen up front
    input: Mapping[str, Json] = field(default_factory=dict[str, Json])  # policy input that only a read can tell
    content_digest: str = ""  # digest of referenced content: an approval is bound to it
    subject_digest: str = ""  # what a drill certificate is about, such as the migration file


@dataclass(frozen=True, slots=True)
class Question:
    """What the engine knows when it asks an adapter to read: before a call (`prepare`) or about one (`probe`)."""

    run_id: str  # the run
    action_id: str  # the action
    marker: str  # put it first in every body that can carry one
    idempotency_key: str  # the key of this generation
    args: Mapping[str, Json]  # the arguments, validated
    before: Mapping[str, Json]  # the before-image
    allocated: Mapping[str, Json]  # identifiers chosen up front
    effect: Mapping[str, Json]  # as recorded so far
    after: Mapping[str, Json]  # the after-image recorded at success
    reference: str  # validated against the contract's pattern
    attempt: int  # which send
    sent_at_us: int | None  # when its intent was written, in microseconds
    timeout_seconds: float  # how long this read or call may take
    secret: Callable[[str], str]  # resolves an argument or option that is a secret reference


@dataclass(frozen=True, slots=True)
class Call(Question):
    """One mutating call. For an undo, `args`, `before`, `effect` and `reference` are the forward action's, and
    `undo_key`/`undo_marker` are the undo action's own; `rung` names the compensation alternative and `observed` is
    what the probe before it saw.
    """

    deadline_us: int  # ledger time after which the answer no longer counts
    still_wanted: Callable[[], bool]  # ask immediately before the first byte; False: raise `NotSent`
    rung: str = ""  # the `Alternative` of an undo
    undo_key: str = ""  # the undo's own idempotency key
    undo_marker: str = ""  # the undo's own marker
    observed: Observation | None = None  # what the look before the undo saw


@dataclass(frozen=True, slots=True)
class Done:
    """The provider's answer to a call. `effect` is recorded; `output` is what the agent is told."""

    effect: Mapping[str, Json] = field(default_factory=dict[str, Json])  # recorded
    reference: str = ""  # the provider's id
    output: Mapping[str, Json] = field(default_factory=dict[str, Json])  # what the agent is told
    after: Mapping[str, Json] = field(default_factory=dict[str, Json])  # the after-image
    parts: tuple[str, ...] = ()  # which of the contract's `parts` exist


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider works on it (202): unknown until a probe of `operation` is final."""

    operation: str  # where to ask
    effect: Mapping[str, Json] = field(default_factory=dict[str, Json])  # recorded
    reference: str = ""  # the provider's id, if it is known


Receipt: TypeAlias = Done | Accepted


class Capability(ABC):
    """One operation. Stateless between calls: everything it needs later is in the `Question` or `Call`."""

    contract: Contract  # what it declares
    arguments: type[BaseModel]  # strict model of the arguments; unknown fields are refused

    def prepare(self, question: Question) -> Prepared:
        """Read what must be known before: before-image, allocated identifiers. Sends nothing that changes anything."""
        del question
        return Prepared()

    @abstractmethod
    def do(self, call: Call) -> Receipt:
        """Make the one mutating request. May block up to `call.timeout_seconds`."""

    @abstractmethod
    def probe(self, question: Question) -> Observation:
        """Ask the real system whether the effect of this action exists. `inconclusive` if it cannot tell."""

    def undo(self, call: Call) -> Receipt:
        """Make the one mutating request that takes the effect back, for the rung `call.rung`."""
        raise NotSent(f"`{self.contract.capability}` has no undo", code="no_undo")

    def verify_undone(self, question: Question) -> Observation:
        """A separate read after the undo: `absent` means undone. By default the probe."""
        return self.probe(question)

    def drill(self, question: Question) -> tuple[str, str]:
        """Do, verify, undo, verify on a sandbox copy: the subject's digest and what was seen, in words. Raises
        `Refused` with what did not hold. Only capabilities whose contract says `needs_drill` have one.
        """
        raise NotSent(f"`{self.contract.capability}` has no drill", code="no_drill")

    def place(self, question: Question) -> str:
        """The signal's place, if it needs more than the contract's template. Empty: use the template."""
        del question
        return ""


class CorrectionArgs(BaseModel):
    """Arguments of every corrector: where, and the finished text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    place: str  # where
    text: str  # the finished note


class Corrector(Capability):
    """Posts a correction at places of one URI scheme, and finds its own posting again by marker."""

    scheme: ClassVar[str]  # `slack` serves `slack:C012/1718.55`
    arguments = CorrectionArgs
