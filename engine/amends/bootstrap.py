"""The composition root: `amends.toml` in, a wired engine out. Nothing else constructs backends.

Two engines come out of one file. `Engine.open` is whole: adapters, policies, recovery. `Engine.desk` is for people:
it reads the journal and records their decisions, loads neither adapter nor policy, sends nothing, and so works while
those are broken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from amends import config
from amends.backends import digest_key, safekeeping
from amends.backends.clock import SystemClock
from amends.backends.command_check import command_check
from amends.backends.ids import UuidV7
from amends.backends.mirroring import Mirroring
from amends.backends.no_policies import NoPolicies
from amends.backends.notifiers import CommandNotifier, WebhookNotifier
from amends.backends.owners import OwnerFiles
from amends.backends.secrets import ReferencedSecrets
from amends.backends.sqlite_journal import SqliteJournal
from amends.config import NotifierSettings, Settings
from amends.core.errors import ConfigError, JournalUnavailable
from amends.core.rows import BundleRow
from amends.core.schedule import microseconds
from amends.ports.archive import Archive
from amends.ports.journal import Journal, JournalInfo, Seal, StoredEvent
from amends.ports.ledger import Ledger, SqlValue, Table
from amends.ports.services import Milestone, Notifier, Progress, Secrets
from amends.runtime import engine as runtime
from amends.runtime import policing, sealing
from amends.runtime.book import Book
from amends.runtime.exporting import exported
from amends.runtime.kit import Catalog, Kit, Offer
from amends.runtime.sealing import Sealed
from amends.runtime.verifying import differences
from amends.spi import Check

if TYPE_CHECKING:
    from amends.backends.cedar import CedarAuthorizer
    from amends.backends.plugin_host import Loaded
    from amends.backends.policies import Candidate, PolicySources

_T = TypeVar("_T")
BUILT_IN_CHECKS = frozenset({"all_actions_succeeded"})


class Engine(runtime.Engine):
    """A wired engine. Use it as a context manager, or `close` it. Not usable in a forked child (rule 9)."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring.kit)
        self.settings = wiring.settings
        self.plugins = wiring.loaded
        self._wiring = wiring
        self._ledger: Ledger | None = None
        self._mirroring = Mirroring(wiring.kit.journal, lambda: self.ledger)
        if wiring.mirror:
            self._mirroring.start()

    @classmethod
    def open(
        cls, path: Path | str | None = None, *, progress: Progress | None = None, mirror: bool | None = None
    ) -> Engine:
        """The whole engine of the project at `path`: an `amends.toml`, or a folder at or below it (default: the
        current one). An adapter that cannot be loaded is left out; `plugins.problems` says why.

        Raises `ConfigError` (file, key and remedy), `JournalBusy`, `JournalUnavailable`. `mirror` overrides
        `[storage] mirror`.
        """
        return cls(_wired(settings_of(path), progress or _Quiet(), whole=True, mirror=mirror))

    @classmethod
    def desk(cls, path: Path | str | None = None) -> Engine:
        """An engine for people's decisions and questions: no adapter, no policy, no mirror thread; sends nothing."""
        return cls(_wired(settings_of(path), _Quiet(), whole=False, mirror=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ledger(self) -> Ledger:
        """The DuckDB ledger, built when first asked for."""
        if self._ledger is None:
            self._ledger = ledger_of(self.settings, self.kit.journal)
        return self._ledger

    def sql(self, query: str, parameters: tuple[SqlValue, ...] = (), *, max_rows: int = 10_000) -> Table:
        """One read-only question to the ledger, brought up to date first. Raises `InvalidInput` for bad SQL."""
        self.ledger.refresh()
        return self.ledger.query(query, parameters, max_rows=max_rows)

    def seal(self, *, keep_days: float | None = None, on_file: Callable[[Seal], None] | None = None) -> Sealed:
        """Seal every run that was terminal, and past its horizons, for `keep_days` (default: `[storage] keep_days`),
        once the ledger has it. Raises `SystemUnavailable` if another process seals or the disk fails.
        """
        keep = self.settings.storage.keep_days if keep_days is None else keep_days
        self.ledger.refresh()
        return sealing.seal(
            self.kit.journal,
            archive_of(self.settings.folder),
            now_us=self.kit.clock.now_us(),
            keep_us=microseconds(keep * 86_400),
            on_file=on_file,
        )

    def export(self, run_id: str = "") -> Iterator[StoredEvent]:
        """Every event there ever was, or those of one run, in order; raises as `runtime.exporting.exported`."""
        return exported(self.kit.journal, archive_of(self.settings.folder), run_id)

    def verify(self) -> tuple[str, ...]:
        """Everything wrong with journal, rows, sealed files and ledger, in words; every byte is read."""
        journal = self.kit.journal
        return (
            *journal.verify(),
            *differences(journal),
            *archive_of(self.settings.folder).problems(journal.seals()),
            *self.ledger.refresh().problems,
        )

    def permits(self, namespace: str, action: str) -> tuple[str, ...]:
        """The ids of the active permits whose scope can match a policy action; empty: nobody is ever allowed it."""
        return self._wiring.permits(namespace, action)

    def reload_policies(self) -> Reloaded:
        """Look at the site's bundle again, and decide by it from now on if it has changed and is sound: guards, lint,
        strict validation, its label, its tests. A bad one changes nothing; the ledger and `amends doctor` say so.

        A desk decides nothing: it says and records what engines that decide will do. Raises `JournalBusy`,
        `JournalUnavailable`; nothing has changed then.
        """
        return self._wiring.policies.reload(self.book)

    def close(self) -> None:
        """Let go of runs, files and threads. Idempotent."""
        self._mirroring.stop()
        super().close()
        if self._ledger is not None:
            self._ledger.close()
        self._wiring.close()


@dataclass(frozen=True)
class Wiring:
    """What was built, and what only the composition root has to close."""

    kit: Kit
    settings: Settings
    loaded: Loaded
    owners: OwnerFiles
    policies: Policies
    permits: Callable[[str, str], tuple[str, ...]]
    mirror: bool

    def close(self) -> None:
        """Release journal and owner file, in this order: what is written last is still ours."""
        self.kit.journal.close()
        self.owners.close()


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of the site's bundle. `version` decides now; `problems` say why `candidate` does not."""

    outcome: Literal["unchanged", "activated", "rejected"]
    version: str
    candidate: str = ""
    problems: tuple[str, ...] = ()


@dataclass
class Policies:
    """Which policies decide in this process, and where others come from. `authorizer` is None in a desk."""

    journal: Journal
    sources: Callable[[], PolicySources]
    authorizer: CedarAuthorizer | None
    seen: str = ""  # digest of the bundle that was examined last
    seen_shadow: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, book: Book) -> None:
        """Keep what decides from now on, before the first decision under it, and take up the shadow."""
        if self.authorizer is not None:
            bundle = self.authorizer.bundle()
            policing.keep_sources(book, self.journal, [bundle])
            policing.activated(book, self.journal, bundle)
            self._shadow(book, self.sources(), self.authorizer)

    def reload(self, book: Book) -> Reloaded:
        """Take up a changed bundle that is sound; record a changed one that is not."""
        from amends.backends.policies import examine, fingerprint

        with self.lock:
            sources = self.sources()
            if self.authorizer is not None:
                self._shadow(book, sources, self.authorizer)
                if fingerprint(sources.site_bundle)[1] == self.seen:
                    return Reloaded("unchanged", self._version())
            candidate = examine(sources)
            outcome = self._take(book, candidate)
            self.seen = candidate.digest
            return outcome

    def _take(self, book: Book, candidate: Candidate) -> Reloaded:
        if candidate.authorizer is None:
            policing.refused(
                book,
                self.journal,
                "active",
                version=candidate.version,
                digest=candidate.digest,
                reasons=candidate.problems,
                kept=self._version(),
            )
            return Reloaded("rejected", self._version(), candidate.version, candidate.problems)
        bundle = candidate.authorizer.bundle()
        same = bundle.effective_digest == self._effective_digest()
        policing.keep_sources(book, self.journal, [bundle])
        policing.activated(book, self.journal, bundle)
        if self.authorizer is not None:
            self.authorizer.adopt(candidate.authorizer)
        return Reloaded("unchanged" if same else "activated", bundle.version, candidate.version)

    def _shadow(self, book: Book, sources: PolicySources, authorizer: CedarAuthorizer) -> None:
        """The shadow's bundle, if it has changed; a bad one is recorded, and the one before goes on being asked."""
        from amends.backends.policies import examine_shadow, fingerprint

        found = fingerprint(sources.shadow_bundle)[1]
        if found == self.seen_shadow:
            return
        candidate = examine_shadow(sources)
        if candidate is not None and candidate.authorizer is not None:
            policing.keep_sources(book, self.journal, [candidate.authorizer.bundle()])
            authorizer.shadow_with(candidate.authorizer)
        elif candidate is not None:
            kept = authorizer.shadow_bundle()
            policing.refused(
                book,
                self.journal,
                "shadow",
                version=candidate.version,
                digest=candidate.digest,
                reasons=candidate.problems,
                kept=kept.version if kept else "",
            )
        self.seen_shadow = found

    def _version(self) -> str:
        if self.authorizer is not None:
            return self.authorizer.bundle().version
        active = policing.last_active(self.journal)
        return active.policy_version if active else ""

    def _effective_digest(self) -> str:
        if self.authorizer is not None:
            return self.authorizer.bundle().effective_digest
        active = policing.last_active(self.journal)
        return active.digest if active else ""


def settings_of(path: Path | str | None = None) -> Settings:
    """The settings of the project at `path` (a file, or a folder at or below its own). Raises `ConfigError`."""
    start = Path.cwd() if path is None else Path(path)
    return config.load(start if start.is_file() or start.suffix == ".toml" else config.find(start))


def secrets_of(settings: Settings) -> Secrets:
    """Where secret references are resolved."""
    return ReferencedSecrets(settings.base)


def adapters_of(settings: Settings, secrets: Secrets) -> Loaded:
    """The adapters of `amends.toml`, whole, and the problems of the others."""
    from amends.backends import plugin_host

    return plugin_host.load(settings.adapters, project=settings.project, base=settings.base, secrets=secrets)


def journal_of(settings: Settings) -> Journal:
    """The journal, made if there is none. Raises what `SqliteJournal.open` raises."""
    clock = SystemClock()
    return SqliteJournal.open(
        settings.folder, clock=clock, ids=UuidV7(clock), busy_timeout_seconds=settings.storage.lock_wait_seconds
    )


def ledger_of(settings: Settings, journal: Journal) -> Ledger:
    """The DuckDB ledger over a journal."""
    from amends.backends.duckdb_ledger import DuckdbLedger

    return DuckdbLedger(journal, settings.folder, SystemClock())


def archive_of(storage: Path) -> Archive:
    """The sealed files of a storage folder."""
    from amends.backends.duckdb_ledger import ParquetArchive

    return ParquetArchive(storage)


def back_up(engine: Engine, folder: Path) -> JournalInfo:
    """Journal, sealed files and digest key into a new folder; raises as `backends.safekeeping.back_up`."""
    return safekeeping.back_up(engine.kit.journal, engine.settings.folder, folder, archive_of)


def restore(settings: Settings, folder: Path) -> JournalInfo:
    """The project's storage folder from a backup; raises as `backends.safekeeping.restore`."""
    clock = SystemClock()
    return safekeeping.restore(folder, settings.folder, archive_of, differences, clock=clock, ids=UuidV7(clock))


def migrate(settings: Settings) -> tuple[int, int]:
    """The project's journal into the present ledger format; the formats it had and has."""
    return SqliteJournal.migrate(
        settings.folder, clock=SystemClock(), busy_timeout_seconds=settings.storage.lock_wait_seconds
    )


def policy_sources(settings: Settings, journal: Journal, loaded: Loaded) -> PolicySources:
    """What the active policies are made of, for `amends policy` and for the authorizer."""
    from amends.backends.policies import PolicySources

    bundle, shadow = settings.policies.bundle, settings.policies.shadow
    return PolicySources(
        loaded,
        settings.path(bundle) if bundle else None,
        known_labels(journal),
        settings.path(shadow) if shadow else None,
    )


def known_labels(journal: Journal) -> dict[str, str]:
    """Label -> version of every bundle the ledger has seen: a label never means two things."""
    rows = [BundleRow.model_validate_json(row.body) for row in journal.rows("bundle")]
    return {row.policy_version.split("@", 1)[0]: row.policy_version for row in rows}


# --- wiring ---------------------------------------------------------------------------------------------------


def _wired(settings: Settings, progress: Progress, *, whole: bool, mirror: bool | None) -> Wiring:
    from amends.backends.plugin_host import Loaded

    clock = SystemClock()
    ids = UuidV7(clock)
    secrets = secrets_of(settings)
    checks = _configured_checks(settings)
    notifiers = [_notifier(name, section, settings, secrets) for name, section in settings.notifiers.items()]
    loaded = adapters_of(settings, secrets) if whole else Loaded()
    closing: list[Callable[[], None]] = []
    try:
        _make_private(settings.folder)
        owners = OwnerFiles(settings.folder / "owners", clock, ids)
        closing.append(owners.close)
        journal = journal_of(settings)
        closing.append(journal.close)
        policies, loaded = _policies(settings, journal, secrets, loaded if whole else None)
        authorizer = policies.authorizer or NoPolicies()
        kit = Kit(
            journal=journal,
            authorizer=authorizer,
            clock=clock,
            ids=ids,
            secrets=secrets,
            owners=owners,
            progress=progress,
            catalog=Catalog(Offer(offered.capability, offered.context) for offered in loaded.offers),
            archive=lambda: archive_of(settings.folder),
            digest_key=digest_key.load_or_create(settings.folder),
            tenant=settings.project.tenant,
            default_owner=settings.project.owner,
            settings=settings.engine,
            checks=_merged(checks, loaded.checks, "check"),
            people=settings.people,
            agent_roles={name: agent.roles for name, agent in settings.agents.items()},
            notifiers=tuple(
                _merged({n.name: n for n in notifiers}, {n.name: n for n in loaded.notifiers}, "notifier").values()
            ),
        )
        policies.opened(Book(kit))
    except BaseException:
        for close in reversed(closing):
            close()
        raise
    mirror = settings.storage.mirror if mirror is None else mirror
    return Wiring(kit, settings, loaded, owners, policies, authorizer.permits, mirror)


def _policies(settings: Settings, journal: Journal, secrets: Secrets, loaded: Loaded | None) -> tuple[Policies, Loaded]:
    """What decides over the adapters `loaded`, and those of them that are left; None: a desk, where nothing does."""
    from amends.backends.plugin_host import Loaded

    if loaded is None:
        return Policies(journal, lambda: _sources_of_others(settings, journal, secrets), None), Loaded()
    from amends.backends.policies import fingerprint, load_authorizer

    sources = policy_sources(settings, journal, loaded)
    seen = fingerprint(sources.site_bundle)[1]
    authorizer, left = load_authorizer(sources)
    return Policies(journal, lambda: policy_sources(settings, journal, left), authorizer, seen), left


def _sources_of_others(settings: Settings, journal: Journal, secrets: Secrets) -> PolicySources:
    """What an engine that decides would load its policies from."""
    from amends.backends.policies import load_authorizer

    sources = policy_sources(settings, journal, adapters_of(settings, secrets))
    _, left = load_authorizer(replace(sources, site_bundle=None))
    return replace(sources, loaded=left)


def _make_private(folder: Path) -> None:
    """The storage folder, for the engine's account alone from the start."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise JournalUnavailable(
            f"the storage folder `{folder}` cannot be made: {error.strerror}",
            hint="make its parent writable, or name another one in [storage] folder",
        ) from error


def _configured_checks(settings: Settings) -> dict[str, Check]:
    for name in settings.checks:
        if name in BUILT_IN_CHECKS:
            raise ConfigError(f"[checks.{name}] takes the name of a built-in check", hint="choose another name")
    return {
        name: command_check(
            name, check.command, folder=settings.path(check.folder), timeout_seconds=check.timeout_seconds
        )
        for name, check in settings.checks.items()
    }


def _notifier(name: str, section: NotifierSettings, settings: Settings, secrets: Secrets) -> Notifier:
    if section.kind == "command":
        return CommandNotifier(name, section.command, timeout_seconds=section.timeout_seconds, folder=settings.base)
    return WebhookNotifier(name, section.url, timeout_seconds=section.timeout_seconds, secrets=secrets)


def _merged(mine: Mapping[str, _T], theirs: Mapping[str, _T], kind: str) -> dict[str, _T]:
    for name in mine:
        if name in theirs:
            raise ConfigError(
                f"{kind} `{name}` is configured in amends.toml and registered by an adapter",
                hint=f"rename [{kind}s.{name}]",
            )
    return {**mine, **theirs}


class _Quiet:
    """Nobody listens."""

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Say nothing."""
