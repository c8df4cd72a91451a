"""The outside world of a simulation: things, values and notes with a history, and weather that spoils what it may.

Reads may lag: they then show the world as it was a while ago, never longer ago than the contracts allow for, and never
from before what was seen of the same action already. Nothing else about the world is ever untrue, so what the ledger
claims can be held against it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ConfigDict

from amends.core.canonical import Json
from amends.core.contract import Contract
from amends.core.evidence import Observation
from amends.core.schedule import microseconds
from amends.spi import Accepted, Call, Capability, Corrector, Done, NotSent, Prepared, Question, Receipt, Refused
from amends.testing.fakes import SimClock
from amends.testing.simulation.choosing import Choices
from amends.testing.simulation.scheduling import Process

LAG_SECONDS = 3.0  # how far a read may lie behind; below every `absent_final_after` and `settle` of the contracts
LATE_SECONDS = (0.5, 4.0)  # how late a request may land whose answer was lost, and how long a 202 is worked on

_DO = ("ok", "lost", "nothing", "late", "refused", "busy", "not_sent", "twice")
_DO_WEIGHTS = (0.62, 0.10, 0.07, 0.06, 0.05, 0.03, 0.03, 0.04)
_UNDO = ("ok", "lost", "nothing", "late", "busy", "not_sent", "lie")
_UNDO_WEIGHTS = (0.66, 0.10, 0.07, 0.05, 0.04, 0.03, 0.05)
_LOOK = ("ok", "lags", "inconclusive", "broken")
_LOOK_WEIGHTS = (0.75, 0.15, 0.05, 0.05)


class SimArguments(BaseModel):
    """One name, and a value where a capability sets one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    value: str = ""


@dataclass(slots=True)
class Thing:
    """One effect, with its time."""

    reference: str
    capability: str
    name: str
    marker: str
    made_us: int
    gone_us: int | None = None

    def there(self, at_us: int) -> bool:
        """Whether it existed at a time."""
        return self.made_us <= at_us and (self.gone_us is None or at_us < self.gone_us)


@dataclass
class Weather:
    """What goes wrong, until it clears."""

    choices: Choices
    foul: bool = True
    strength: float = 1.0  # how much of the chances below
    faults_left: int | None = None  # None: any number
    happened: dict[str, int] = field(default_factory=dict[str, int])

    def pick(self, what: str, options: tuple[str, ...], weights: tuple[float, ...]) -> str:
        """What happens to one request."""
        if not self.foul or self.faults_left == 0:
            return options[0]
        spoilt = [weight * self.strength for weight in weights[1:]]
        chosen = self.choices.pick(what, options, (1.0 - sum(spoilt), *spoilt))
        if chosen != options[0]:
            self.happened[f"{what} {chosen}"] = self.happened.get(f"{what} {chosen}", 0) + 1
            if self.faults_left is not None:
                self.faults_left -= 1
        return chosen


class SimSystem:
    """What exists, what is set, and every request that arrived."""

    def __init__(self, clock: SimClock, weather: Weather) -> None:
        self.clock = clock
        self.weather = weather
        self.things: list[Thing] = []
        self.values: dict[str, list[tuple[int, str, str]]] = {}  # name -> (since, value, by whom)
        self.sends: list[tuple[str, str, str]] = []  # (verb, marker, process)
        self._replies: dict[str, Receipt | Refused] = {}
        self._landing: list[tuple[int, Callable[[int], None]]] = []
        self._seen_us: dict[str, int] = {}

    # --- looking from outside -----------------------------------------------------------------------------

    def there(self, marker: str) -> list[Thing]:
        """What exists now of one action."""
        self.land()
        return [t for t in self.things if t.marker == marker and t.gone_us is None]

    def value(self, name: str, at_us: int | None = None) -> str:
        """What is set."""
        self.land()
        now = self.clock.now_us() if at_us is None else at_us
        known = [value for since, value, _ in self.values.get(name, []) if since <= now]
        return known[-1] if known else "first"

    def set(self, name: str, value: str, by: str, at_us: int | None = None) -> None:
        """Set a value, now or at the time at which it landed."""
        known = self.values.setdefault(name, [])
        known.append((self.clock.now_us() if at_us is None else at_us, value, by))
        known.sort(key=lambda entry: entry[0])

    # --- time ---------------------------------------------------------------------------------------------

    def later(self, work: Callable[[int], None], *, since_us: int) -> None:
        """Something that began at `since_us` lands a while after; `work` is told when."""
        seconds = self.weather.choices.pick("lands after", LATE_SECONDS)
        self._landing.append((since_us + microseconds(seconds), work))

    def land(self) -> None:
        """What was to land by now has landed, and what that began, at their times: nobody need have looked then."""
        now = self.clock.now_us()
        while due := [landing for landing in self._landing if landing[0] <= now]:
            self._landing = [landing for landing in self._landing if landing[0] > now]
            for at_us, work in due:
                work(at_us)

    @property
    def calm(self) -> bool:
        """Nothing is on its way any more."""
        return not self._landing

    @property
    def footprint(self) -> object:
        """Another one after anything that was sent, that landed or was seen."""
        gone = sum(thing.gone_us is not None for thing in self.things)
        return (
            len(self.sends),
            len(self.things),
            gone,
            len(self._landing),
            len(self._replies),
            sum(self._seen_us.values()),
        )

    # --- being called -------------------------------------------------------------------------------------

    def as_seen(self, marker: str, at_us: int) -> int:
        """The time that a look at an action sees, which never goes back."""
        self._seen_us[marker] = max(at_us, self._seen_us.get(marker, 0))
        return self._seen_us[marker]

    def make(self, capability: str, call: Call, at_us: int) -> Thing:
        """One more effect, since a time."""
        reference = f"ref-{len(self.things) + 1:06d}"
        thing = Thing(reference, capability, str(call.args["name"]), call.marker, at_us)
        self.things.append(thing)
        return thing

    def replied(self, key: str) -> Receipt | Refused | None:
        """What a keyed request was answered the first time."""
        return self._replies.get(key)

    def reply(self, key: str, answer: Receipt | Refused) -> None:
        """Keep the answer to a keyed request."""
        self._replies[key] = answer


class SimCapability(Capability):
    """Makes one thing, for one process. A keyed one answers a repeated key with its first answer."""

    arguments = SimArguments

    def __init__(self, contract: Contract, system: SimSystem, process: Process) -> None:
        self.contract = contract
        self._system = system
        self._process = process

    def do(self, call: Call) -> Receipt:
        fault = self._sent("do", call, call.marker, _DO, _DO_WEIGHTS)
        keyed = self.contract.keying.kind == "keyed"
        earlier = self._system.replied(call.idempotency_key) if keyed else None
        if isinstance(earlier, Refused):
            raise earlier
        if earlier is not None:
            return earlier
        match fault:
            case "nothing":
                raise TimeoutError("no answer")
            case "refused":
                refusal = Refused("the provider said no", code="invalid")
                self._system.reply(call.idempotency_key, refusal)
                raise refusal
            case "late":
                self._system.later(
                    lambda at_us: self._made_late(call, at_us, keyed=keyed), since_us=self._system.clock.now_us()
                )
                raise TimeoutError("no answer")
            case _:
                answer = self._made(call, self._system.clock.now_us())
        if fault == "twice" and not keyed:
            self._made(call, self._system.clock.now_us())
        self._process.at("answering")
        if fault == "lost":
            raise ConnectionResetError("the answer was lost")
        return answer

    def _made_late(self, call: Call, at_us: int, *, keyed: bool) -> None:
        if not (keyed and self._system.replied(call.idempotency_key)):
            self._made(call, at_us)

    def _made(self, call: Call, at_us: int) -> Receipt:
        thing = self._system.make(self.contract.capability, call, at_us)
        answer = Done(effect={"id": thing.reference}, reference=thing.reference)
        self._system.reply(call.idempotency_key, answer)
        return answer

    def undo(self, call: Call) -> Receipt:
        fault = self._sent("undo", call, call.marker, _UNDO, _UNDO_WEIGHTS)
        match fault:
            case "nothing":
                raise TimeoutError("no answer")
            case "late":
                self._system.later(lambda at_us: self._take_back(call, at_us), since_us=self._system.clock.now_us())
                raise TimeoutError("no answer")
            case "lie":
                return Done()
            case _:
                self._take_back(call, self._system.clock.now_us())
        self._process.at("answering")
        if fault == "lost":
            raise ConnectionResetError("the answer was lost")
        return Done()

    def _take_back(self, call: Call, at_us: int) -> None:
        for thing in self._found(call, at_us):
            if call.reference in {"", thing.reference}:
                thing.gone_us = at_us

    def probe(self, question: Question) -> Observation:
        at_us = self._look_us(question.marker)
        if at_us is None:
            return Observation(seen="inconclusive", detail="it cannot tell")
        found = self._found(question, at_us)
        if not found:
            return Observation(seen="absent")
        own = next((t for t in found if t.reference == question.reference), found[0])
        many = len(found) > 1
        return Observation(
            seen="many" if many else "applied",
            effect={"id": own.reference},
            reference=own.reference,
            twins=tuple(t.reference for t in found) if many else (),
        )

    def _found(self, question: Question, at_us: int) -> list[Thing]:
        """What bears the question's marker; a twin is looked for by its reference."""
        twin = question.action_id != question.marker
        return [
            thing
            for thing in self._system.things
            if thing.there(at_us)
            and (thing.reference == question.reference if twin else thing.marker == question.marker)
        ]

    def _look_us(self, marker: str) -> int | None:
        """The time that a look sees; None if it sees nothing. Raises if it fails."""
        self._process.at("looking")
        system = self._system
        system.land()
        match system.weather.pick("look", _LOOK, _LOOK_WEIGHTS):
            case "lags":
                return system.as_seen(marker, system.clock.now_us() - microseconds(LAG_SECONDS))
            case "inconclusive":
                return None
            case "broken":
                raise ConnectionError("it cannot be read")
            case _:
                return system.as_seen(marker, system.clock.now_us())

    def _sent(self, verb: str, call: Call, marker: str, faults: tuple[str, ...], weights: tuple[float, ...]) -> str:
        """Everything up to the arrival of a request; answers what goes wrong with it from there."""
        self._process.at("sending")
        if not call.still_wanted():
            raise NotSent("it is no longer wanted", code="not_wanted")
        system = self._system
        system.land()
        fault = system.weather.pick(verb, faults, weights)
        if fault == "not_sent":
            raise NotSent("nobody listens", code="connect_refused")
        system.sends.append((verb, marker, self._process.name))
        if fault == "busy":
            raise Refused("too many requests", code="rate_limited", again=True)
        return fault


class SimAccepted(SimCapability):
    """Works on it first (202), and is done a while later."""

    def _made(self, call: Call, at_us: int) -> Receipt:
        self._system.later(lambda done_us: self._finish(call, done_us), since_us=at_us)
        answer = Accepted(operation=f"operation-{call.marker}")
        self._system.reply(call.idempotency_key, answer)
        return answer

    def _finish(self, call: Call, at_us: int) -> None:
        self._system.make(self.contract.capability, call, at_us)


class SimSetting(SimCapability):
    """Sets a value; the undo restores the before-image, and only over our own value."""

    def prepare(self, question: Question) -> Prepared:
        value = self._system.value(str(question.args["name"]))
        before: Mapping[str, Json] = {"value": value}
        return Prepared(before=before, content_digest=f"content:{value}")

    def _made(self, call: Call, at_us: int) -> Receipt:
        name, value = str(call.args["name"]), str(call.args["value"])
        self._system.set(name, value, call.marker, at_us)
        return Done(effect={"value": value}, reference=f"value-{name}", after={"value": value})

    def probe(self, question: Question) -> Observation:
        at_us = self._look_us(question.marker)
        if at_us is None:
            return Observation(seen="inconclusive", detail="it cannot tell")
        now = self._system.value(str(question.args["name"]), at_us)
        state: dict[str, Json] = {"value": now}
        if now == question.args["value"]:
            return Observation(seen="applied", state=state, effect=state)
        return Observation(seen="absent" if now == question.before.get("value") else "diverged", state=state)

    def _take_back(self, call: Call, at_us: int) -> None:
        name = str(call.args["name"])
        if self._system.value(name, at_us) == call.args["value"]:
            self._system.set(name, str(call.before["value"]), call.undo_marker, at_us)


class SimCorrector(Corrector):
    """Pins notes at `note:` places, for one process."""

    scheme = "note"

    def __init__(self, contract: Contract, system: SimSystem, process: Process) -> None:
        self.contract = contract
        self._pin = SimCapability(contract, system, process)

    def do(self, call: Call) -> Receipt:
        return self._pin.do(_named(call))

    def probe(self, question: Question) -> Observation:
        return self._pin.probe(question)


def _named(call: Call) -> Call:

    return replace(call, args={**call.args, "name": str(call.args["place"])})
