"""The engine that users open: the runtime's, over everything a project's settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from amends.backends.mirroring import Mirroring
from amends.bootstrap.making import archive_of, ledger_of, make_private, settings_of
from amends.bootstrap.policies import Reloaded
from amends.bootstrap.sandboxing import remedy, sandboxed, sandboxes, some_sandbox
from amends.bootstrap.wiring import Quiet, Wiring, wired
from amends.config import Settings
from amends.core.errors import ConfigError, CorruptLedger
from amends.core.schedule import microseconds
from amends.ports.journal import Seal, StoredEvent
from amends.ports.ledger import Ledger, SqlValue, Table
from amends.ports.services import Progress
from amends.runtime import engine as runtime
from amends.runtime import sealing
from amends.runtime.drilling import SandboxOf
from amends.runtime.exporting import exported
from amends.runtime.parts import Parts
from amends.runtime.sealing import Sealed
from amends.runtime.verifying import differences


class Engine(runtime.Engine):
    """A wired engine. Use it as a context manager, or `close` it. Not usable in a forked child (rule 9)."""

    def __init__(self, wiring: Wiring, sandbox_of: SandboxOf | None = None) -> None:
        super().__init__(wiring.kit, sandbox_of or self._sandbox_of)
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
        return cls(wired(settings_of(path), progress or Quiet(), whole=True, mirror=mirror))

    @classmethod
    def sandbox(
        cls, path: Path | str | None = None, *, progress: Progress | None = None, mirror: bool | None = None
    ) -> Engine:
        """The same project on its sandbox: its plugins and policies, and those of its adapters that have a table
        `[adapters.<name>.sandbox]`, with the options of that table. Its runs are in a storage folder of its own, inside
        the project's; nobody is paged.

        Raises as `open`, and `ConfigError` if no adapter has a sandbox.
        """
        return cls._on_sandbox(settings_of(path), progress or Quiet(), mirror=mirror)

    @classmethod
    def _on_sandbox(cls, settings: Settings, progress: Progress, *, mirror: bool | None) -> Engine:
        names = some_sandbox(settings)
        make_private(settings.folder)  # the sandbox's own is inside
        there = sandboxed(settings)
        return cls(wired(there, progress, whole=True, mirror=mirror, offering=names))

    def _sandbox_of(self, adapter: str) -> AbstractContextManager[Parts]:
        """The sandbox in which a drill of this adapter is held. Raises `ConfigError` if it has none that loads."""
        if self.kit.on_sandbox:
            raise ConfigError("this engine is a sandbox itself", hint="drill with the project's own engine")
        if adapter not in sandboxes(self.settings):
            raise ConfigError(f"adapter `{adapter}` has no sandbox", hint=remedy(adapter))
        sandbox = Engine._on_sandbox(self.settings, Quiet(), mirror=False)
        for problem in sandbox.plugins.problems:
            if problem.name == adapter:
                sandbox.close()
                raise ConfigError(f"the sandbox of {problem}", hint=problem.remedy)
        return runtime.parts_of(sandbox)

    @classmethod
    def desk(cls, path: Path | str | None = None, *, sandbox: bool = False) -> Engine:
        """An engine for people's decisions and questions: no adapter, no policy, no mirror thread; sends nothing.
        `sandbox`: over the runs of the project's sandbox.
        """
        settings = settings_of(path)
        if sandbox:
            make_private(settings.folder)
            settings = sandboxed(settings)
        return cls(wired(settings, Quiet(), whole=False, mirror=False))

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
        """Everything wrong with journal, rows, sealed files and ledger, in words; every byte is read. Damage that ends
        one of these looks is itself among the answers, and the others go on.
        """
        journal = self.kit.journal
        looks: tuple[Callable[[], Iterable[str]], ...] = (
            journal.verify,
            lambda: differences(journal),
            lambda: archive_of(self.settings.folder).problems(journal.seals()),
            lambda: self.ledger.refresh().problems,
        )
        found: list[str] = []
        for look in looks:
            try:
                for problem in look():
                    found.append(problem)  # noqa: PERF402 — what was found before the damage is kept
            except CorruptLedger as error:
                found.append(error.message)
        return tuple(dict.fromkeys(found))

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
