"""Which policies a command is about: the project's, another folder's, or a bundle that the ledger keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import ConfigError, InvalidInput, UnknownName
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, settings_of

if TYPE_CHECKING:
    from amends.backends.cedar.authorizer import Collected
    from amends.backends.cedar.compile import Snapshot
    from amends.config import Settings

ACTIVE = "active"
folder_argument = click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources that decide, and the same without the site's: what shipped tests are about."""

    whole: Collected
    shipped: Collected
    label_problem: ConfigError | None  # the ledger knows the site's label with other sources


def sources_of(session: Session, folder: Path | None = None) -> Sources:
    """The project's adapters and baseline with the project's bundle, or with the one in `folder`. Outside a project
    `folder` is taken without adapters; the baseline's own folder is the baseline alone. Raises `ConfigError`.
    """
    from amends import _resources, bootstrap
    from amends.backends.cedar.testing import gathered
    from amends.backends.plugin_host import Loaded

    settings = project_of(session, folder)
    loaded = Loaded() if settings is None else bootstrap.adapters_of(settings, bootstrap.secrets_of(settings))
    for problem in loaded.problems:
        session.output.say(f"left out: {problem}; {problem.remedy}", "yellow")
    site = folder
    if folder is None and settings is not None and settings.policies.bundle:
        site = settings.path(settings.policies.bundle)
    if site is not None and site.exists() and site.samefile(_resources.policies_path()):
        site = None
    contracts = [offer.contract for offer in loaded.offers]

    def collected(bundle: Path | None) -> Collected:
        return gathered(contracts, loaded.contributions, bundle, {}, loaded.owned_prefixes)

    whole = collected(site)
    return Sources(whole, collected(None) if site else whole, _label_problem(settings, site))


def bundle_folder(session: Session, folder: Path | None) -> Path:
    """The folder of the bundle a command is about. Raises `ConfigError` if the project has none."""
    if folder is not None:
        return folder
    settings = settings_of(session)
    if not settings.policies.bundle:
        raise ConfigError("this project has no policy bundle", hint="name a folder, or set [policies] bundle")
    return settings.path(settings.policies.bundle)


def active_snapshot(session: Session, folder: Path | None = None) -> Snapshot:
    """The project's policies, or those with the bundle in `folder`, ready to be asked. Raises `ConfigError`."""
    from amends.backends.cedar.testing import loaded

    return loaded(sources_of(session, folder).whole)


def named_snapshot(session: Session, name: str) -> tuple[str, Snapshot]:
    """What `name` means, and its policies: `active`, a folder with a bundle, or a bundle that the ledger keeps (label,
    version or digest, or the start of one). Raises `UnknownName`, `InvalidInput`, `ConfigError`.
    """
    from amends.backends.cedar.recorded import snapshot_of
    from amends.surfaces.cli.policy_ledger import known_bundles

    if name == ACTIVE:
        snapshot = active_snapshot(session)
        return snapshot.version, snapshot
    if Path(name).is_dir():
        snapshot = active_snapshot(session, Path(name))
        return snapshot.version, snapshot
    with desk(session) as engine:
        fitting = [bundle for bundle in known_bundles(engine) if bundle.fits(name)]
    if not fitting:
        raise UnknownName(
            f"`{name}` is neither a folder nor a bundle the ledger knows",
            hint="name a folder, `active`, or a version of `amends policy list`",
        )
    if len(fitting) > 1 and len({bundle.effective_digest for bundle in fitting}) > 1:
        raise InvalidInput(
            f"`{name}` fits {len(fitting)} bundles",
            hint=f"give the effective digest: {', '.join(bundle.effective_digest[:19] for bundle in fitting)}",
        )
    return fitting[0].version, snapshot_of(fitting[0].sources())


def project_of(session: Session, folder: Path | None) -> Settings | None:
    """The project's settings; None if there is no project, none was named, and a folder is all that is needed. Raises
    `ConfigError`.
    """
    try:
        return settings_of(session)
    except ConfigError:
        from amends import config

        if folder is None or session.config is not None or _inside_a_project(config.FILE_NAME):
            raise
        return None


def _inside_a_project(file: str) -> bool:
    here = Path.cwd()
    return any((place / file).is_file() for place in (here, *here.parents))


def _label_problem(settings: Settings | None, site: Path | None) -> ConfigError | None:
    """Why the engine would refuse this label; a project that has never run has no storage, and a look makes none."""
    from amends import bootstrap
    from amends.backends.cedar import bundle

    if site is None or settings is None or not settings.folder.exists():
        return None
    journal = bootstrap.journal_of(settings)
    try:
        bundle.check_label(bundle.read(site), bootstrap.known_labels(journal))
    except ConfigError as problem:
        return problem
    finally:
        journal.close()
    return None
