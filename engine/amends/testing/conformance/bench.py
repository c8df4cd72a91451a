"""The bench of one test: a running system, the line to it, and a whole engine on a fresh project between the two.

The engine is the real one: real policies, journal, plugin host. Only its clock leaps. At the end of every test the
bench holds what the ledger claims against what the system shows, whatever the test was about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from amends.bootstrap import Engine, settings_of
from amends.bootstrap.sandboxing import FOLDER, sandboxed
from amends.bootstrap.wiring import Quiet, Wiring, wired
from amends.core.canonical import Json
from amends.core.contract import Contract
from amends.core.events import DrillCertified
from amends.core.rows import ActionRow, RunState
from amends.core.schedule import next_probe_us
from amends.core.status import ActionStatus, RunStatus
from amends.runtime.drilling import brings_copy
from amends.runtime.engine import parts_of
from amends.runtime.kit import Catalog, Offer
from amends.runtime.parts import Parts
from amends.runtime.results import CallResult
from amends.runtime.runs import Run
from amends.runtime.verifying import differences
from amends.spi import Corrector
from amends.testing.conformance.clock import LeapingClock
from amends.testing.conformance.line import Exchange, Fault, Line
from amends.testing.conformance.performing import AGENT, LONG_SECONDS, PERSON, open_run, perform
from amends.testing.conformance.project import STORAGE, write_project
from amends.testing.conformance.subject import Args, S, Subject
from amends.testing.conformance.watched import Drilled, Watched, WatchedCopy

T = TypeVar("T")
_S = ActionStatus
_CLAIMS_ABSENT = frozenset({_S.FAILED, _S.DENIED, _S.WITHDRAWN, _S.COMPENSATED})
_LOOKS = 60
_TIMEOUT_SECONDS = 20.0

Adapters = Callable[[str], Mapping[str, Mapping[str, Json]]]  # address of the line -> tables of `[adapters]`


class NotTried(Exception):
    """The test says nothing about this capability; the text says why, and stands in the report."""


@dataclass
class Performed:
    """One call of the agent, in a run of its own."""

    args: Args
    run: Run
    result: CallResult | None = None


class Bench(Generic[S]):
    """What a test of the matrix works with. Close it: that is where what was claimed is held against what is."""

    def __init__(
        self,
        subject: Subject[S],
        system: S,
        line: Line,
        adapters: Adapters,
        folder: Path,
        secrets: Mapping[str, str],
        name: str,
        drilled: Drilled | None = None,
    ) -> None:
        self.subject = subject
        self.system = system
        self.line = line
        self.folder = folder
        self.clock = LeapingClock()
        self.performed: dict[str, Performed] = {}
        self._adapters = adapters
        self._secrets = secrets
        self._name = name
        self._drilled: Drilled = {} if drilled is None else drilled
        self.after_drilled: Callable[[], None] = _nothing
        self._args: dict[str, Args] = {}
        self._timeout_seconds = _TIMEOUT_SECONDS
        self._address = line.address
        self._engine: Engine | None = None

    # --- before the first call ------------------------------------------------------------------------------

    def only_for(self, condition: object, reason: str) -> None:
        """Go on if the test says something about this capability. Raises `NotTried`."""
        if not condition:
            raise NotTried(reason)

    def needs(self, value: T | None, reason: str) -> T:
        """What the subject gives for this test. Raises `NotTried` if it gives nothing."""
        if value is None:
            raise NotTried(reason)
        return value

    def time_out_after(self, seconds: float) -> None:
        """Calls give up after this long (before the engine is first used)."""
        self._timeout_seconds = seconds

    def address(self, address: str) -> None:
        """The adapter is told another address (before the engine is first used)."""
        self._address = address

    def arm(self, fault: Fault) -> None:
        """Arm a fault. Raises `NotTried` if this line cannot make it."""
        self.only_for(fault.kind in self.line.kinds, f"this line cannot make `{fault.kind}`")
        self.only_for(fault.how in self.line.cuts, f"on this line `{fault.how}` is like another way to lose an answer")
        self.line.arm(fault)

    @property
    def project(self) -> Path:
        """The project's folder, written when first asked for."""
        if not (self.folder / "amends.toml").exists():
            write_project(self.folder, self._adapters(self._address))
        return self.folder

    # --- the engine -----------------------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine, opened when first asked for."""
        if self._engine is None:
            wiring = wired(settings_of(self.project), Quiet(), whole=True, mirror=False)
            if wiring.loaded.problems:
                raise AssertionError(f"the adapter was not loaded: {'; '.join(map(str, wiring.loaded.problems))}")
            self._engine = Engine(self._at_the_bench(wiring, _nothing), self._sandbox_of)
        return self._engine

    def _sandbox_of(self, adapter: str) -> AbstractContextManager[Parts]:
        settings = settings_of(self.project)
        wiring = wired(sandboxed(settings), Quiet(), whole=True, mirror=False, offering={adapter})
        return parts_of(Engine(self._at_the_bench(wiring, self.after_drilled)))

    def _at_the_bench(self, wiring: Wiring, after_do: Callable[[], None]) -> Wiring:
        """The same with the bench's clock, and its line around every capability."""

        def around(offer: Offer) -> Offer:
            if isinstance(offer.capability, Corrector):
                return offer
            kind = WatchedCopy if brings_copy(offer.capability) else Watched
            watched = kind(offer.capability, self.line, self._timeout_seconds, self._drilled)
            watched.after_do = after_do
            return replace(offer, capability=watched)

        catalog = Catalog(around(offer) for offer in wiring.kit.catalog.all())
        return replace(wiring, kit=replace(wiring.kit, clock=self.clock, catalog=catalog))

    @property
    def contract(self) -> Contract:
        """The contract of the capability under test."""
        return self.engine.kit.catalog.get(self.subject.capability).contract

    @property
    def watched(self) -> Watched:
        """The capability under test, with what the engine asked of it."""
        capability = self.engine.kit.catalog.get(self.subject.capability).capability
        if not isinstance(capability, Watched):
            raise NotTried("a corrector posts for recovery, and is tested by its own capability")
        return capability

    @property
    def undoable(self) -> bool:
        """Whether recovery can take the effect back by itself."""
        return not self.contract.irreversible and any(
            rung.undo not in {"escalate", "correct"} for rung in self.contract.compensation
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that a process of its own needs."""
        return self._secrets

    @property
    def findable(self) -> bool:
        """Whether the contract promises that a lost effect is found again."""
        probe = self.contract.probe
        return self.contract.keying.kind != "blind" and probe is not None and probe.strength != "search"

    # --- calls ----------------------------------------------------------------------------------------------

    def do(self, word: str = "one", **changes: Json) -> ActionRow:
        """The agent's call, in a run of its own called `word`, made, released, and looked at until it is known."""
        args = {**self.args(word), **changes}
        done = self.performed[word] = Performed(args, open_run(self.engine, word))
        done.result = perform(self.engine, done.run, self.subject.capability, args)
        self._look(done)
        return self.action(word)

    def drill(self, word: str = "one", *, after_do: Callable[[], None] | None = None) -> DrillCertified:
        """A drill of the capability; `after_do` happens between its call and the first look at it."""
        self.after_drilled = after_do or _nothing
        capability, args = self.subject.capability, self.args(word)
        return self.engine.drill(capability, args, agent=AGENT, by=PERSON, wait_seconds=LONG_SECONDS)

    def args(self, word: str = "one") -> Args:
        """The arguments called `word`, the same ones within a test and others in every other test."""
        if word not in self._args:
            self._args[word] = self.subject.args(self.system, f"{word}{self._name}")
        return self._args[word]

    def again(self, word: str = "one", args: Args | None = None) -> CallResult:
        """The same call once more, in the same run (`args`: in other words)."""
        done = self.performed[word]
        return done.run.call(self.subject.capability, done.args if args is None else args)

    def _look(self, done: Performed) -> None:
        """Look again whenever a look is due, as an agent that asks again does, until the outcome is known."""
        if done.result is None:
            return
        for _ in range(_LOOKS):
            state = done.run.state
            action = state.actions[done.result.action_id]
            due = next_probe_us(action, state.run.dead_since_us)
            if state.run.status is not RunStatus.OPEN or action.status is not _S.UNKNOWN or due is None:
                return
            self.clock.sleep(max(0.0, (due - self.clock.now_us()) / 1_000_000) + 0.001)
            done.run.call(self.subject.capability, done.args)

    def recover(self, word: str = "one") -> RunState:
        """The agent gives up; everything of its run is taken back, as far as it goes."""
        done = self.performed[word]
        if done.run.state.run.status is RunStatus.OPEN:
            done.run.fail("the test takes it back", wait_seconds=LONG_SECONDS)
        return done.run.state

    def action(self, word: str = "one") -> ActionRow:
        """The forward action as recorded."""
        done = self.performed[word]
        if done.result is None:
            raise AssertionError(f"`{word}` was not called")
        return self.engine.state(done.run.run_id).actions[done.result.action_id]

    def effects(self, word: str = "one") -> int:
        """How many effects there are, as the system itself says."""
        return self.subject.effects(self.system, self.performed[word].args)

    def writes(self) -> list[Exchange]:
        """Every request that changes something, or would, so far."""
        return [exchange for exchange in self.line.exchanges() if exchange.writes]

    # --- the end --------------------------------------------------------------------------------------------

    def close(self) -> list[str]:
        """Let go of the engine; answers everything that is not as it must be."""
        try:
            return [*self._unfired(), *self._dishonest(), *self._unsound()]
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the engine, and claim nothing. Idempotent."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _unfired(self) -> list[str]:
        return [f"the fault `{fault}` was armed and never happened" for fault in self.line.unfired()]

    def _dishonest(self) -> list[str]:
        """Claims of the ledger that the system does not bear out (rule 33)."""
        found: list[str] = []
        for word, done in self.performed.items():
            if done.result is None:
                continue
            state = self.engine.state(done.run.run_id)
            status, run, count = state.actions[done.result.action_id].status, state.run.status, self.effects(word)
            if status is _S.SUCCEEDED and count == 0 and run is not RunStatus.RECOVERED:
                found.append(f"`{word}` is recorded as succeeded, and the system has no such effect")
            if status in _CLAIMS_ABSENT and count:
                found.append(f"`{word}` is recorded as {status}, and the system has {count} such effects")
            if run is RunStatus.RECOVERED and count:
                found.append(f"the run of `{word}` is recorded as recovered, and the system has {count} such effects")
        return found

    def _unsound(self) -> list[str]:
        """A broken journal, rows that are not the fold of the events, and secrets in a file (rule 10)."""
        if self._engine is None:
            return []
        journal = self._engine.kit.journal
        found = [*journal.verify(), *differences(journal), *self.canaries()]
        if (self._engine.settings.folder / FOLDER).exists():
            with Engine.desk(self.project, sandbox=True) as desk:
                found += [*desk.kit.journal.verify(), *differences(desk.kit.journal)]
        return found

    def canaries(self) -> list[str]:
        """The files the engine wrote in which a secret stands."""
        return [
            f"`{path.relative_to(self.folder)}` holds the secret `{name}`"
            for path in sorted((self.folder / STORAGE).rglob("*"))
            if path.is_file()
            for content in [path.read_bytes()]
            for name, secret in self._secrets.items()
            if secret.encode() in content
        ]

    @property
    def secret(self) -> str:
        """One of the adapter's secrets, to see where it turns up. Raises `NotTried` if it has none."""
        self.only_for(self._secrets, "the adapter has no secret")
        return next(iter(self._secrets.values()))


def _nothing() -> None:
    """Nothing happens."""
