"""Wiring: settings in, a kit out, and what only the composition root has to close."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from amends.backends import digest_key
from amends.backends.clock import SystemClock
from amends.backends.command_check import command_check
from amends.backends.ids import UuidV7
from amends.backends.no_policies import NoPolicies
from amends.backends.notifiers import CommandNotifier, WebhookNotifier
from amends.backends.owners import OwnerFiles
from amends.backends.threads import DaemonThreads
from amends.bootstrap.making import adapters_of, archive_of, journal_of, make_private, secrets_of
from amends.bootstrap.policies import Policies, policy_sources
from amends.bootstrap.sandboxing import remedy
from amends.config import NotifierSettings, Settings
from amends.core.errors import ConfigError
from amends.ports.journal import Journal
from amends.ports.services import Milestone, Notifier, Progress, Secrets
from amends.runtime.book import Book
from amends.runtime.kit import Catalog, Kit, Offer
from amends.spi import Check

if TYPE_CHECKING:
    from amends.backends.plugin_host import Loaded
    from amends.backends.policies import PolicySources


_T = TypeVar("_T")
BUILT_IN_CHECKS = frozenset({"all_actions_succeeded"})


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


def wired(
    settings: Settings,
    progress: Progress,
    *,
    whole: bool,
    mirror: bool | None,
    offering: Collection[str] | None = None,
) -> Wiring:
    """Everything an engine needs; `whole`: with adapters and policies. `offering`: the sections whose adapters are
    there for calls; the others are known to the policies alone. What was opened is closed again on an error.
    """
    from amends.backends.plugin_host import Loaded

    clock = SystemClock()
    ids = UuidV7(clock)
    secrets = secrets_of(settings)
    checks = _configured_checks(settings)
    notifiers = [_notifier(name, section, settings, secrets) for name, section in settings.notifiers.items()]
    loaded = adapters_of(settings, secrets) if whole else Loaded()
    closing: list[Callable[[], None]] = []
    try:
        make_private(settings.folder)
        owners = OwnerFiles(settings.folder / "owners", clock, ids)
        closing.append(owners.close)
        journal = journal_of(settings)
        closing.append(journal.close)
        policies, loaded = _policies(settings, journal, secrets, loaded if whole else None)
        loaded = loaded if offering is None else loaded.only(offering)
        authorizer = policies.authorizer or NoPolicies()
        kit = Kit(
            journal=journal,
            authorizer=authorizer,
            clock=clock,
            ids=ids,
            secrets=secrets,
            owners=owners,
            progress=progress,
            threads=DaemonThreads(),
            catalog=_catalog(loaded, on_sandbox=offering is not None),
            archive=lambda: archive_of(settings.folder),
            digest_key=digest_key.load_or_create(settings.folder),
            tenant=settings.project.tenant,
            on_sandbox=offering is not None,
            default_owner=settings.project.owner,
            settings=settings.engine,
            checks=_merged(checks, loaded.checks, "check"),
            check_seconds={name: check.timeout_seconds for name, check in settings.checks.items()},
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


def _catalog(loaded: Loaded, *, on_sandbox: bool) -> Catalog:
    offers = (
        Offer(offered.capability, offered.context, f"{adapter.distribution} {adapter.version}")
        for adapter in loaded.adapters
        for offered in adapter.offers
    )
    if on_sandbox:
        return Catalog(offers, remedy=f"on the sandbox are only adapters that have one: {remedy('NAME')}")
    return Catalog(offers)


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


class Quiet:
    """Nobody listens."""

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Say nothing."""
