"""Making one backend at a time from settings: for the whole engine, and for commands that need no more than one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amends import config
from amends.backends import safekeeping
from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.secrets import ReferencedSecrets
from amends.backends.sqlite_journal import SqliteJournal
from amends.bootstrap.references import references_of, sandbox_references_of
from amends.config import Settings
from amends.core.errors import JournalUnavailable
from amends.ports.archive import Archive
from amends.ports.journal import Journal, JournalInfo
from amends.ports.ledger import Ledger
from amends.ports.services import Secrets
from amends.runtime.verifying import differences

if TYPE_CHECKING:
    from amends.backends.plugin_host import Loaded
    from amends.bootstrap.engine import Engine


def settings_of(path: Path | str | None = None) -> Settings:
    """The settings of the project at `path` (a file, or a folder at or below its own). Raises `ConfigError`."""
    start = Path.cwd() if path is None else Path(path)
    return config.load(start if start.is_file() or start.suffix == ".toml" else config.find(start))


def secrets_of(settings: Settings) -> Secrets:
    """Where secret references are resolved, and what must not be written from the first event on."""
    known = (*references_of(settings), *sandbox_references_of(settings))
    return ReferencedSecrets(settings.base, known=[reference for reference, _ in known])


def adapters_of(settings: Settings, secrets: Secrets) -> Loaded:
    """The adapters of `amends.toml`, whole, and the problems of the others."""
    from amends.backends import plugin_host

    return plugin_host.load(settings.adapters, project=settings.project, base=settings.base, secrets=secrets)


def make_private(folder: Path) -> None:
    """A storage folder, for the engine's account alone from the start. Raises `JournalUnavailable`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise JournalUnavailable(
            f"the storage folder `{folder}` cannot be made: {error.strerror}",
            hint="make its parent writable, or name another one in [storage] folder",
        ) from error


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
