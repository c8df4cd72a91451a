"""An outside system that does what it is told, and capabilities over it: their effects are counted on its own side.

    system = ScriptedSystem()
    system.tell("shop.reserve", "do", "lost")        # the next call commits, then its answer is lost
    held = system.hold("shop.reserve", "do")         # the next call waits inside the system until `held.go()`

Every fault is used once, in the order told; after that the system behaves. `count` is what exists, `requests` is what
arrived, whatever a ledger says about either.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from amends.core.canonical import Json
from amends.core.contract import Contract
from amends.core.evidence import Observation
from amends.spi.capability import (
    Accepted,
    Call,
    Capability,
    Corrector,
    Done,
    NotSent,
    Prepared,
    Question,
    Receipt,
    Refused,
)

Verb: TypeAlias = Literal["prepare", "do", "probe", "undo"]
Fault: TypeAlias = Literal[
    "lost",  # do, undo: takes effect, then the answer is lost
    "nothing",  # do, undo: nothing happens, and the answer is lost
    "refused",  # do, undo, prepare: the provider's stored no
    "busy",  # do, undo: refused, and the same request may come again later
    "not_sent",  # do, undo: provably nothing left
    "accepted",  # do: works on it, 202
    "twice",  # do: takes effect twice, and answers well
    "twice_lost",  # do: takes effect twice, and the answer is lost
    "half",  # do: takes effect in part, and the answer is lost
    "unreadable",  # do: takes effect and answers what no ledger can hold
    "lie",  # undo: answers well and does nothing
    "absent",  # probe: does not see what is there (a read replica that lags)
    "applied",  # probe: sees what is not there
    "diverged",  # probe: sees neither
    "inconclusive",  # probe: cannot tell
    "broken",  # prepare, probe: raises
]

_HOLD_LIMIT_SECONDS = 20.0


class ScriptedArguments(BaseModel):
    """One name, and a value where a capability sets one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    value: str = ""


@dataclass(slots=True)
class Thing:
    """One effect that exists."""

    reference: str
    capability: str
    name: str
    marker: str
    key: str
    parts: tuple[str, ...] = ()
    state: dict[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Request:
    """One request that arrived, with what identifies it."""

    capability: str
    verb: Verb
    name: str
    marker: str
    key: str
    rung: str = ""


@dataclass(slots=True)
class Held:
    """A request kept waiting inside the system: `arrived` is set once it is there."""

    arrived: threading.Event = field(default_factory=threading.Event)
    _gate: threading.Event = field(default_factory=threading.Event)

    def go(self) -> None:
        """Let the request go on."""
        self._gate.set()

    def wait(self) -> None:
        """Called by the system."""
        self.arrived.set()
        self._gate.wait(_HOLD_LIMIT_SECONDS)


class ScriptedSystem:
    """The outside world: things that exist, values that are set, notes people read, and every request made."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.values: dict[str, str] = {}
        self.notes: list[Thing] = []
        self.requests: list[Request] = []
        self.tells: dict[tuple[str, Verb], deque[Fault]] = {}
        self.holds: dict[tuple[str, Verb], deque[Held]] = {}
        self._replies: dict[str, Receipt | Refused] = {}
        self._lock = threading.RLock()
        self._made = 0

    # --- telling ------------------------------------------------------------------------------------------

    def tell(self, capability: str, verb: Verb, *faults: Fault) -> None:
        """Misbehave so, once each, in this order."""
        self.tells.setdefault((capability, verb), deque()).extend(faults)

    def hold(self, capability: str, verb: Verb) -> Held:
        """Keep the next such request waiting before it takes effect."""
        held = Held()
        self.holds.setdefault((capability, verb), deque()).append(held)
        return held

    # --- looking ------------------------------------------------------------------------------------------

    def count(self, capability: str = "", name: str = "") -> int:
        """How many effects exist."""
        with self._lock:
            return sum(1 for t in self.things.values() if capability in {"", t.capability} and name in {"", t.name})

    def sent(self, capability: str, verb: Verb) -> list[Request]:
        """The requests of this kind that arrived."""
        with self._lock:
            return [r for r in self.requests if (r.capability, r.verb) == (capability, verb)]

    def sequence(self, *verbs: Verb) -> list[tuple[Verb, str]]:
        """Verb and name of the requests that arrived, in order; all verbs if none is named."""
        with self._lock:
            return [(r.verb, r.name) for r in self.requests if not verbs or r.verb in verbs]

    # --- being called -------------------------------------------------------------------------------------

    def arrive(self, capability: str, verb: Verb, question: Question, rung: str = "") -> Fault | None:
        """A request arrives: it is kept, may have to wait, and meets the next fault told."""
        place = (capability, verb)
        key = question.undo_key if isinstance(question, Call) and rung else question.idempotency_key
        name = str(question.args.get("name", question.args.get("place", "")))
        with self._lock:
            self.requests.append(Request(capability, verb, name, question.marker, key, rung))
            held = self.holds[place].popleft() if self.holds.get(place) else None
        if held is not None:
            held.wait()
        with self._lock:
            return self.tells[place].popleft() if self.tells.get(place) else None

    def make(self, capability: str, question: Question, parts: tuple[str, ...] = ()) -> Thing:
        """One more effect."""
        with self._lock:
            self._made += 1
            reference = f"ref-{self._made:06d}"
            name = str(question.args["name"])
            thing = Thing(reference, capability, name, question.marker, question.idempotency_key, parts)
            thing.state["state"] = "authorized"
            self.things[reference] = thing
            return thing

    def remove(self, reference: str) -> bool:
        """Take one effect away; `False` if it is gone already."""
        with self._lock:
            return self.things.pop(reference, None) is not None

    def found(self, question: Question) -> list[Thing]:
        """What bears the question's marker; a twin is looked for by its reference."""
        with self._lock:
            if question.action_id != question.marker:
                thing = self.things.get(question.reference)
                return [thing] if thing else []
            return [thing for thing in self.things.values() if thing.marker == question.marker]

    def replied(self, key: str) -> Receipt | Refused | None:
        """What a keyed request was answered the first time."""
        with self._lock:
            return self._replies.get(key)

    def reply(self, key: str, answer: Receipt | Refused) -> None:
        """Keep the answer to a keyed request."""
        with self._lock:
            self._replies[key] = answer


class ScriptedCapability(Capability):
    """Makes one thing. A keyed one answers a repeated key with its first answer."""

    arguments = ScriptedArguments

    def __init__(self, system: ScriptedSystem, contract: Contract) -> None:
        self.contract = contract
        self._system = system

    @property
    def name(self) -> str:
        """The capability's name."""
        return self.contract.capability

    def do(self, call: Call) -> Receipt:
        fault = self._system.arrive(self.name, "do", call)
        if not call.still_wanted():
            raise NotSent("it is no longer wanted", code="not_wanted")
        _raise_unsent(fault)
        keyed = self.contract.keying.kind == "keyed"
        earlier = self._system.replied(call.idempotency_key) if keyed else None
        if isinstance(earlier, Refused):
            raise earlier
        if earlier is not None:
            return earlier
        if fault == "refused":
            refusal = Refused("the provider said no", code="invalid")
            self._system.reply(call.idempotency_key, refusal)
            raise refusal
        return self._made(call, fault)

    def _made(self, call: Call, fault: Fault | None) -> Receipt:
        if fault == "nothing":
            raise TimeoutError("no answer")
        parts = self.contract.parts[:1] if fault == "half" else self.contract.parts
        thing = self._system.make(self.name, call, parts)
        if fault in {"twice", "twice_lost"}:
            self._system.make(self.name, call, parts)
        effect: dict[str, Json] = {"id": thing.reference}
        answer = Done(effect=effect, reference=thing.reference, output={**effect, "name": thing.name}, parts=parts)
        self._system.reply(call.idempotency_key, answer)
        match fault:
            case "lost" | "twice_lost" | "half":
                raise TimeoutError("no answer")
            case "accepted":
                return Accepted(operation=f"operation-{thing.reference}", reference=thing.reference)
            case "unreadable":
                return Done(effect={"id": "\ud800"}, reference=thing.reference)
            case _:
                return answer

    def probe(self, question: Question) -> Observation:
        fault = self._system.arrive(self.name, "probe", question)
        if fault is not None:
            return _told(fault)
        found = self._system.found(question)
        if not found:
            return Observation(seen="absent")
        seen = "many" if len(found) > 1 else "applied"
        own = next((t for t in found if t.reference == question.reference), found[0])
        return Observation(
            seen="many" if seen == "many" else "applied",
            state=dict(own.state),
            effect={"id": own.reference},
            reference=own.reference,
            parts=own.parts,
            twins=tuple(t.reference for t in found) if seen == "many" else (),
        )

    def undo(self, call: Call) -> Receipt:
        fault = self._system.arrive(self.name, "undo", call, call.rung)
        if not call.still_wanted():
            raise NotSent("it is no longer wanted", code="not_wanted")
        _raise_unsent(fault)
        if fault == "refused":
            raise Refused("the provider said no", code="invalid")
        if fault == "nothing":
            raise TimeoutError("no answer")
        if fault != "lie":
            self._take_back(call)
        if fault == "lost":
            raise TimeoutError("no answer")
        return Done()

    def _take_back(self, call: Call) -> None:
        for thing in self._system.found(call):
            if call.reference in {"", thing.reference}:
                self._system.remove(thing.reference)


class PreparedCapability(ScriptedCapability):
    """Reads `values[name]` first: its before-image and, as digest, the content an approval is bound to."""

    def prepare(self, question: Question) -> Prepared:
        fault = self._system.arrive(self.name, "prepare", question)
        if fault == "refused":
            raise Refused("it cannot be done", code="invalid")
        if fault is not None:
            raise ConnectionError("it cannot be read")
        value = self._system.values.get(str(question.args["name"]), "")
        return Prepared(before={"value": value}, content_digest=f"content:{value}")


class SettingCapability(PreparedCapability):
    """Sets `values[name]`; the undo restores the before-image, and only over our own value."""

    def _made(self, call: Call, fault: Fault | None) -> Receipt:
        if fault == "nothing":
            raise TimeoutError("no answer")
        name, value = str(call.args["name"]), str(call.args["value"])
        self._system.values[name] = value
        if fault == "lost":
            raise TimeoutError("no answer")
        return Done(effect={"value": value}, reference=f"value-{name}", after={"value": value})

    def probe(self, question: Question) -> Observation:
        fault = self._system.arrive(self.name, "probe", question)
        if fault is not None:
            return _told(fault)
        now = self._system.values.get(str(question.args["name"]), "")
        state: Mapping[str, Json] = {"value": now}
        if now == question.args["value"]:
            return Observation(seen="applied", state=dict(state), effect=dict(state))
        return Observation(seen="absent" if now == question.before.get("value") else "diverged", state=dict(state))

    def _take_back(self, call: Call) -> None:
        self._system.values[str(call.args["name"])] = str(call.before["value"])


class ScriptedCorrector(Corrector):
    """Pins a note at a `note:` place."""

    scheme = "note"

    def __init__(self, system: ScriptedSystem, contract: Contract) -> None:
        self.contract = contract
        self._system = system

    def do(self, call: Call) -> Receipt:
        name = self.contract.capability
        fault = self._system.arrive(name, "do", call)
        _raise_unsent(fault)
        if fault == "refused":
            raise Refused("the place is closed", code="closed")
        if fault == "nothing":
            raise TimeoutError("no answer")
        reference = f"note-{len(self._system.notes) + 1}"
        place, text = str(call.args["place"]), str(call.args["text"])
        note = Thing(reference, name, place, call.marker, call.idempotency_key, state={"text": text})
        self._system.notes.append(note)
        if fault == "lost":
            raise TimeoutError("no answer")
        return Done(effect={"note": reference}, reference=reference)

    def probe(self, question: Question) -> Observation:
        fault = self._system.arrive(self.contract.capability, "probe", question)
        if fault is not None:
            return _told(fault)
        mine = [note for note in self._system.notes if note.marker == question.marker]
        return Observation(seen="applied" if mine else "absent", reference=mine[0].reference if mine else "")


def _raise_unsent(fault: Fault | None) -> None:
    if fault == "not_sent":
        raise NotSent("nobody listens", code="connect_refused")
    if fault == "busy":
        raise Refused("too many requests", code="rate_limited", again=True)


def _told(fault: Fault) -> Observation:
    match fault:
        case "absent" | "applied" | "diverged":
            return Observation(seen=fault)
        case "broken":
            raise ConnectionError("it cannot be read")
        case _:
            return Observation(seen="inconclusive", detail="it cannot be read")
