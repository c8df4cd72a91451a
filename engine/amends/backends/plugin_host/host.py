"""Adapters, each tried alone in a scratch manager and adopted only when whole (DESIGN section 7).

Whatever a plugin raises or exits with, the engine goes on without it: its problem is a value that `amends doctor`
and `amends plugins check` show. Adoption goes in name order, so the outcome never depends on the installation.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import cast

import pluggy

from amends.backends.plugin_host import ranges
from amends.backends.plugin_host.discovery import Installed, installed
from amends.backends.plugin_host.registry import AdapterRegistry
from amends.backends.plugin_host.values import (
    Adapter,
    Examination,
    Loaded,
    Offered,
    PluginProblem,
    Registered,
    Stage,
)
from amends.config import AdapterSettings, ProjectSettings
from amends.core import registration
from amends.core.errors import AmendsError
from amends.core.redaction import redact_text
from amends.ports.services import Secrets
from amends.spi import SPI_VERSION, AdapterContext, DoctorFinding, PolicyContribution, hookspecs

_HOOK_PREFIX = "amends_"
_MARKER = f"{hookspecs.PROJECT}_impl"  # the attribute that `hookimpl` leaves on a function


def load(
    adapters: Mapping[str, AdapterSettings],
    *,
    project: ProjectSettings,
    base: Path,
    secrets: Secrets,
    plugins: Mapping[str, Sequence[Installed]] | None = None,
) -> Loaded:
    """The adapters of `[adapters.<name>]`, and nothing else that is installed. Never raises for a plugin's fault.

    `plugins`: what is installed, by plugin name (default: this environment). Messages are redacted.
    """
    available = installed() if plugins is None else plugins
    adopted: list[Adapter] = []
    problems: list[PluginProblem] = []
    for name, settings in sorted(adapters.items()):
        context = AdapterContext(
            name=name,
            instance=settings.instance or name,
            tenant=settings.tenant or project.tenant,
            environment=settings.environment or project.environment,
            options=settings.options,
            secret=secrets.resolve,
            base_path=str(base),
        )
        trial = _Trial(context, settings.plugin or name, secrets)
        try:
            adopted.append(trial.adapter(available, adopted))
        except _FailedError as failed:
            problems.append(failed.problem)
    return Loaded(tuple(adopted), tuple(problems))


def examine(examination: Examination) -> list[DoctorFinding]:
    """An adapter's own findings; one that raises or exits is itself a finding."""
    subject = f"adapter {examination.adapter}"
    try:
        with redirect_stdout(sys.stderr):
            return list(examination.ask())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may fail in any way it likes
        return [DoctorFinding("problem", subject, f"its examination failed: {_told(error)}", "update the plugin")]


class _FailedError(Exception):
    def __init__(self, problem: PluginProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Trial:
    """One adapter on its way in."""

    def __init__(self, context: AdapterContext, plugin: str, secrets: Secrets) -> None:
        self._context = context
        self._plugin = plugin
        self._secrets = secrets
        self._distribution = ""

    def adapter(self, available: Mapping[str, Sequence[Installed]], adopted: Sequence[Adapter]) -> Adapter:
        """The adapter, whole. Raises `_FailedError` at the first stage that does not hold."""
        found = self._found(available)
        self._distribution = str(found)
        with self._stage("import", "repair or uninstall the plugin, or remove its section from amends.toml"):
            plugin = found.entry_point.load()
        self._check_version(plugin)
        with self._stage("hooks", "compare the plugin's hooks with amends.spi.hookspecs"):
            manager = self._manager(plugin)
        registry = AdapterRegistry(self._context.name)
        with self._stage("register", "correct the section in amends.toml, or report it to the plugin's authors"):
            _call_hooks(manager, self._context, registry)
        with self._stage("contracts", "report it to the plugin's authors"):
            contracts = [capability.contract for capability in registry.registered.capabilities]
            registration.check(contracts)
        adapter = self._made(found, registry.registered)
        self._check_clashes(adapter, adopted)
        return adapter

    def _found(self, available: Mapping[str, Sequence[Installed]]) -> Installed:
        candidates = available.get(self._plugin, ())
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            names = ", ".join(str(one) for one in candidates)
            raise self._failed(
                "find",
                f"plugin `{self._plugin}` is offered by more than one distribution: {names}; none of them is used",
                "uninstall all but one",
                distribution=names,
            )
        known = ", ".join(f"`{name}`" for name in available) or "none"
        raise self._failed(
            "find",
            f"no plugin `{self._plugin}` is installed (installed: {known})",
            f"install it (`pip install amends-{self._plugin}`?), or set `plugin` in [adapters.{self._context.name}]",
        )

    def _check_version(self, plugin: object) -> None:
        wanted = getattr(plugin, "SPI", "")
        try:
            fits = isinstance(wanted, str) and ranges.supports(wanted, SPI_VERSION)
        except ValueError as error:
            raise self._failed("version", f"`SPI` cannot be read: {error}", 'write it as SPI = ">=1.0,<2"') from None
        if not fits:
            raise self._failed(
                "version",
                f"it supports the plugin interface `{wanted}`, this engine has {SPI_VERSION}",
                "install versions of amends and the plugin that fit together",
            )

    def _manager(self, plugin: object) -> pluggy.PluginManager:
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(plugin, self._context.name)
        manager.check_pending()  # a misspelt hook is an error
        unmarked = [name for name in _hook_like(plugin) if not hasattr(getattr(plugin, name), _MARKER)]
        if unmarked:
            raise self._failed("hooks", f"`{unmarked[0]}` lacks `@hookimpl`", "mark it with amends.spi.hookimpl")
        if not manager.get_hookcallers(plugin):
            raise self._failed("hooks", "it implements no hook", "name its module of hooks in the entry point")
        return manager

    def _made(self, found: Installed, registered: Registered) -> Adapter:
        context = self._context
        prefixes = {capability.contract.capability.split(".", 1)[0] for capability in registered.capabilities}
        contribution = PolicyContribution(dict(registered.policies), dict(registered.tests))
        return Adapter(
            name=context.name,
            plugin=found.plugin,
            distribution=found.distribution,
            version=found.version,
            context=context,
            prefix=_prefix(prefixes, context.name, found.plugin),
            offers=tuple(Offered(capability, context) for capability in registered.capabilities),
            checks=tuple(registered.checks),
            contribution=contribution if registered.policies or registered.tests else None,
            notifiers=tuple(registered.notifiers),
            examinations=tuple(Examination(context.name, ask) for ask in registered.examinations),
        )

    def _check_clashes(self, adapter: Adapter, adopted: Sequence[Adapter]) -> None:
        """Names are adopted once; the earlier adapter in name order keeps them."""
        for other in adopted:
            for kind, mine, theirs in (
                ("capability", _capabilities(adapter), _capabilities(other)),
                ("check", {c.name for c in adapter.checks}, {c.name for c in other.checks}),
                ("notifier", {n.name for n in adapter.notifiers}, {n.name for n in other.notifiers}),
                ("policy prefix", {adapter.prefix}, {other.prefix}),
            ):
                if taken := sorted(mine & theirs):
                    raise self._failed(
                        "adopt",
                        f"{kind} `{taken[0]}` is offered by adapter `{other.name}` already",
                        "remove one of the two sections from amends.toml",
                    )
        contracts = [offer.contract for one in (*adopted, adapter) for offer in one.offers]
        with self._stage("adopt", "remove one of the adapters from amends.toml"):
            registration.check(contracts)

    @contextmanager
    def _stage(self, stage: Stage, remedy: str) -> Generator[None]:
        """Turn whatever happens inside into this adapter's problem; what it prints is talk, not data."""
        try:
            with redirect_stdout(sys.stderr):
                yield
        except _FailedError:
            raise
        except AmendsError as error:
            raise self._failed(stage, error.message, error.hint or remedy) from error
        except (Exception, SystemExit) as error:
            raise self._failed(stage, _told(error), remedy) from error

    def _failed(self, stage: Stage, message: str, remedy: str, *, distribution: str = "") -> _FailedError:
        secrets = self._secrets.revealed()
        return _FailedError(
            PluginProblem(
                name=self._context.name,
                distribution=distribution or self._distribution,
                stage=stage,
                message=redact_text(message, secrets),
                remedy=redact_text(remedy, secrets),
            )
        )


def _call_hooks(manager: pluggy.PluginManager, context: AdapterContext, registry: AdapterRegistry) -> None:
    hook = manager.hook
    for call in (
        hook.amends_register_capabilities,
        hook.amends_register_checks,
        hook.amends_register_policies,
        hook.amends_register_notifiers,
        hook.amends_register_doctor,
    ):
        call(context=context, registry=registry)


def _hook_like(plugin: object) -> list[str]:
    return [name for name in dir(plugin) if name.startswith(_HOOK_PREFIX) and callable(getattr(plugin, name))]


def _prefix(prefixes: set[str], adapter: str, plugin: str) -> str:
    """Where an adapter's policies live. One that serves a single prefix, like most, owns that one."""
    for candidate in (adapter, plugin):
        if candidate in prefixes:
            return candidate
    return next(iter(prefixes)) if len(prefixes) == 1 else adapter


def _capabilities(adapter: Adapter) -> set[str]:
    return {offer.contract.capability for offer in adapter.offers}


def _told(error: BaseException) -> str:
    """An error in one line: what it is and what it says."""
    if isinstance(error, SystemExit):
        return f"it exited with `{cast('object', error.code)}`"
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
