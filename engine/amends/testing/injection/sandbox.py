"""The engine of a world: the project's sandbox, with a boundary around its adapters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from amends.bootstrap import Engine, sandboxed, sandboxes, settings_of
from amends.bootstrap.sandboxing import remedy, some_sandbox
from amends.bootstrap.wiring import Quiet, wired
from amends.config import Settings
from amends.core.contract import Contract
from amends.core.errors import ConfigError
from amends.ports.services import Progress
from amends.testing.injection.boundary import Boundary
from amends.testing.injection.workflow import Workflow


def open_sandbox(
    config: Path | None,
    *,
    boundary: Boundary | None = None,
    bundle: Path | None = None,
    progress: Progress | None = None,
) -> Engine:
    """The project's engine on its sandbox, with fresh adapters: behind `boundary`, deciding by `bundle` (None: the
    site's). Nobody is paged. Raises `ConfigError`, also if no adapter has a sandbox.
    """
    settings = settings_of(config)
    names = some_sandbox(settings)
    there = sandboxed(settings)
    if bundle is not None:
        there = _deciding_by(there, bundle)
    settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wiring = wired(there, progress or Quiet(), whole=True, mirror=False, offering=names)
    catalog = wiring.kit.catalog if boundary is None else boundary.around(wiring.kit.catalog)
    return Engine(replace(wiring, kit=replace(wiring.kit, catalog=catalog, notifiers=())))


def _deciding_by(settings: Settings, bundle: Path) -> Settings:
    if not bundle.is_dir():
        raise ConfigError(f"--candidate-bundle `{bundle}` is no folder", hint="name the folder of the other bundle")
    policies = settings.policies.model_copy(update={"bundle": str(bundle.resolve())})
    return settings.model_copy(update={"policies": policies})


def contracts_of(engine: Engine, config: Path | None, workflow: Workflow) -> dict[str, Contract]:
    """The contract of each capability that the workflow calls. Raises `ConfigError` for one whose adapter has no
    sandbox, `UnknownName` for one that no adapter offers.
    """
    settings = settings_of(config)
    found: dict[str, Contract] = {}
    for step in workflow.steps:
        adapter = step.call.split(".", 1)[0]
        if adapter in settings.adapters and adapter not in sandboxes(settings):
            raise ConfigError(
                f"`{step.call}`: adapter `{adapter}` has no sandbox; nothing was sent", hint=remedy(adapter)
            )
        found[step.call] = engine.kit.catalog.get(step.call).contract
    return found
