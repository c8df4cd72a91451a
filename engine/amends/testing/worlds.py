"""A whole world for tests of the runtime: a scripted system, a journal, a clock that moves when told, people, and as
many engines over them as a test needs.

    world = World(keyed("shop.reserve"), queued("shop.notify"))
    engine = world.engine()
    with world.run() as run:
        run.call("shop.reserve", {"name": "o-1"})
    assert world.system.count("shop.reserve") == 1
    assert ledger_faults(world.journal) == []
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeAlias

from amends.backends.threads import DaemonThreads
from amends.config import EngineSettings, PersonSettings
from amends.core.contract import (
    Alternative,
    Contract,
    Effect,
    Identity,
    Keying,
    ProbeRule,
    Readers,
    ReleaseMode,
    Signal,
)
from amends.core.rows import ActionRow
from amends.ports.journal import Journal
from amends.ports.services import Progress
from amends.runtime.engine import Engine
from amends.runtime.kit import Catalog, Kit, Offer
from amends.runtime.runs import Run
from amends.runtime.verifying import differences
from amends.spi.capability import Capability
from amends.spi.hookspecs import AdapterContext, Check
from amends.testing import contracts
from amends.testing.fakes import (
    FakeAuthorizer,
    FakeOwners,
    RecordingNotifier,
    RecordingProgress,
    SequentialIds,
    SimClock,
    StaticSecrets,
)
from amends.testing.memory_journal import MemoryJournal
from amends.testing.scripted import (
    PreparedCapability,
    ScriptedCapability,
    ScriptedCorrector,
    ScriptedSystem,
    SettingCapability,
)

__all__ = ["ScriptedSystem", "World", "engine_over", "examined_worlds", "ledger_faults"]

Make: TypeAlias = Callable[[ScriptedSystem], Capability]
CANARY = "canary-4711-token"  # what `env:SHOP_TOKEN` stands for; it must never be in a ledger

PEOPLE = {
    "maya": PersonSettings(roles=("owner", "finance"), tier=3),
    "noor": PersonSettings(roles=("owner",), tier=2),
    "user-7": PersonSettings(roles=("owner",), tier=3),
}
QUICK = ProbeRule(
    strength="list", schedule_seconds=(0.0, 1.0, 4.0), deadline_seconds=15.0, absent_final_after_seconds=10.0
)


# --- capabilities -------------------------------------------------------------------------------------------


def keyed(capability: str = "shop.reserve", **changes: Any) -> Make:
    """A call the provider keys by Idempotency-Key; taken back by `cancel`."""
    return _scripted(contracts.reversible, capability, {"probe": QUICK, "effect": _effect(capability)} | changes)


def probeable(capability: str = "shop.list", **changes: Any) -> Make:
    """A call without a key: only a look keeps a second one from being a second effect."""
    return keyed(capability, **({"keying": Keying(kind="probeable")} | changes))


def blind(capability: str = "shop.shout", **changes: Any) -> Make:
    """A call that a look cannot find for sure: unknown goes to a person."""
    search = QUICK.model_copy(update={"strength": "search", "absent_final_after_seconds": None})
    return keyed(capability, **({"keying": Keying(kind="blind"), "probe": search} | changes))


def visible(capability: str = "shop.announce", place: str = "note:{name}", **changes: Any) -> Make:
    """A reversible call that the team sees at `place`."""
    signal = Signal(
        visible_to="the team", place=place, seen="{name} is reserved", reader_must="nothing", comes_back="tomorrow"
    )
    return keyed(capability, **({"signal": signal, "readers": Readers(audience="team", where="the board")} | changes))


def queued(capability: str = "shop.notify", mode: ReleaseMode = "on_success", **changes: Any) -> Make:
    """An irreversible call that leaves through the outbox, or a `gate`."""
    fields = {"probe": QUICK, "effect": _effect(capability)} | changes
    return lambda system: ScriptedCapability(system, contracts.irreversible(capability, mode, **fields))


def gate(capability: str = "shop.buy", **changes: Any) -> Make:
    """An irreversible call that a person approves in mid-run."""
    return queued(capability, "gate", **changes)


def prepared(capability: str = "shop.publish", mode: ReleaseMode = "on_approval", **changes: Any) -> Make:
    """An irreversible call whose content is read before it is queued, and again before it is sent."""
    fields = {"probe": QUICK, "effect": _effect(capability)} | changes
    return lambda system: PreparedCapability(system, contracts.irreversible(capability, mode, **fields))


def setting(capability: str = "flags.set", **changes: Any) -> Make:
    """Sets a value: one live action per name and value; the undo restores the before-image."""
    fields: dict[str, Any] = {
        "effect": Effect(kind="value", system="flags", resource="value:{name}", changes="sets"),
        "identity": Identity(fields=("name",), value_fields=("value",), cardinality="many"),
        "restores_before_image": True,
        "probe": QUICK,
        "compensation": (Alternative(name="restore"),),
    }
    return lambda system: SettingCapability(system, contracts.reversible(capability, **(fields | changes)))


def removing(capability: str = "shop.release", like: str = "shop.reserve", **changes: Any) -> Make:
    """Takes away what `like` makes: as a forward call, a proposed inverse (rule 11)."""
    effect = Effect(kind="release", system="shop", resource=_resource(like), changes="removes")
    return keyed(capability, **({"effect": effect} | changes))


def corrector(capability: str = "note.correct", **changes: Any) -> Make:
    """Posts corrections at `note:` places."""
    fields: dict[str, Any] = {
        "probe": QUICK,
        "effect": Effect(kind="note", system="note", resource="note:{place}"),
        "identity": Identity(fields=("place", "text")),
    }
    return lambda system: ScriptedCorrector(system, contracts.corrector(capability, **(fields | changes)))


def _scripted(build: Callable[..., Contract], capability: str, fields: dict[str, Any]) -> Make:
    return lambda system: ScriptedCapability(system, build(capability, **fields))


def _effect(capability: str) -> Effect:
    return Effect(kind="thing", system=capability.split(".", 1)[0], resource=_resource(capability))


def _resource(capability: str) -> str:
    return f"{capability.replace('.', '_')}:{{name}}"


# --- the world ----------------------------------------------------------------------------------------------


class World:
    """What engines share: the system, journal, clock, policy, people's pager, and who is dead."""

    def __init__(self, *makes: Make, journal: Journal | None = None) -> None:
        self.system = ScriptedSystem()
        self.capabilities = [make(self.system) for make in makes]
        self.journal = journal or MemoryJournal()
        self.clock = SimClock()
        self.ids = SequentialIds()
        self.authorizer = FakeAuthorizer()
        self.notifier = RecordingNotifier()
        self.secrets = StaticSecrets({"env:SHOP_TOKEN": CANARY})
        self.checks: dict[str, Check] = {}
        self.dead: set[str] = set()
        self.engines: list[Engine] = []

    def engine(self, owner: str = "owner-1", **overrides: Any) -> Engine:
        """One process's engine. `overrides` replace fields of its `Kit`; `settings` may be a mapping."""
        engine = engine_over(self, owner=owner, **overrides)
        self.engines.append(engine)
        return engine

    def run(self, key: str = "1", *, engine: Engine | None = None, **request: Any) -> Run:
        """A run of workflow `order` by agent `coder`, on the first engine unless another one is given."""
        by = engine or (self.engines[0] if self.engines else self.engine())
        usual: dict[str, Any] = {"workflow": "order", "run_key": key, "agent": "coder", "initiator": "user-7"}
        return by.run(**(usual | request))

    def die(self, owner: str = "owner-1") -> None:
        """The process is provably gone."""
        self.dead.add(owner)

    def close(self) -> None:
        """Close every engine; the journal is closed with them."""
        for engine in self.engines:
            engine.close()


def engine_over(
    world: World,
    *,
    owner: str = "owner-1",
    capabilities: list[Capability] | None = None,
    settings: EngineSettings | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **overrides: Any,
) -> Engine:
    """An engine of process `owner` over a world; what is not given is the world's."""
    owners = FakeOwners(owner)
    owners.dead = world.dead
    bounds = settings if isinstance(settings, EngineSettings) else EngineSettings(**(settings or {}))
    fields: dict[str, Any] = {
        "journal": world.journal,
        "authorizer": world.authorizer,
        "clock": world.clock,
        "ids": world.ids,
        "secrets": world.secrets,
        "owners": owners,
        "progress": progress or RecordingProgress(),
        "threads": DaemonThreads(),
        "catalog": catalog_of(world.capabilities if capabilities is None else capabilities, world.secrets.resolve),
        "digest_key": b"worlds",
        "tenant": "acme",
        "default_owner": "maya",
        "settings": bounds,
        "checks": world.checks,
        "people": PEOPLE,
        "notifiers": (world.notifier,),
    }
    return Engine(Kit(**(fields | overrides)))


def catalog_of(capabilities: list[Capability], secret: Callable[[str], str]) -> Catalog:
    """Every capability, offered by the adapter its prefix names."""
    return Catalog(
        Offer(capability, AdapterContext(prefix, prefix, "acme", "staging", {}, secret, "."))
        for capability in capabilities
        for prefix in [capability.contract.capability.split(".", 1)[0]]
    )


# --- the ledger of any world --------------------------------------------------------------------------------


@contextmanager
def examined_worlds() -> Generator[Callable[..., World]]:
    """Make worlds; at the end each is closed. Raises `AssertionError` if a ledger is not sound or holds `CANARY`."""
    worlds: list[World] = []

    def make(*makes: Make, **options: Any) -> World:
        worlds.append(World(*makes, **options))
        return worlds[-1]

    yield make
    for world in worlds:
        faults = ledger_faults(world.journal, canaries=(CANARY,))
        world.close()
        if faults:
            raise AssertionError("; ".join(faults))


def ledger_faults(journal: Journal, *, canaries: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with a journal: broken chains, rows that are not the fold of the events, time running backwards,
    effects sent before they were registered, and payloads that hold one of `canaries`. Empty if it is sound.
    """
    faults = [*journal.verify(), *differences(journal)]
    for stored in journal.rows("run", limit=10_000):
        events = [stored.event for stored in journal.events(stored.key.key)]
        faults += [f"time runs backwards before event {b.run_seq}" for a, b in pairwise(events) if b.ts_us < a.ts_us]
    faults += [
        f"action `{action.action_id}` was sent before it was registered"
        for stored in journal.rows("action", limit=10_000)
        for action in [ActionRow.model_validate_json(stored.body)]
        if action.sent_seq is not None and action.sent_seq <= action.seq
    ]
    faults += [
        f"event {stored.seq} holds a canary"
        for stored in journal.events_after(0)
        if any(canary in stored.event.payload for canary in canaries)
    ]
    return faults
