"""The sandbox of a project: the same plugins and policies, over the systems that `[adapters.<name>.sandbox]` names.

It has a storage folder of its own, so that nothing that is tried there counts in the project's ledger, holds one of its
slots or pages anybody.
"""

from __future__ import annotations

from pathlib import PurePath

from amends.config import AdapterSettings, Settings
from amends.core.errors import ConfigError

FOLDER = "sandbox"
ENVIRONMENT = "sandbox"


def sandboxed(settings: Settings) -> Settings:
    """The settings of the sandbox. An adapter that has none keeps its section, for the policies about it: who wires an
    engine over this offers only the adapters of `sandboxes`.
    """
    storage = settings.storage.model_copy(update={"folder": str(PurePath(settings.storage.folder) / FOLDER)})
    return settings.model_copy(
        update={
            "project": settings.project.model_copy(update={"environment": ENVIRONMENT}),
            "storage": storage,
            "adapters": {name: _there(section) for name, section in settings.adapters.items()},
            "notifiers": {},
        }
    )


def sandboxes(settings: Settings) -> frozenset[str]:
    """The adapters that have a sandbox."""
    return frozenset(name for name, section in settings.adapters.items() if section.sandbox is not None)


def some_sandbox(settings: Settings) -> frozenset[str]:
    """The adapters that have a sandbox. Raises `ConfigError` if there is none."""
    if names := sandboxes(settings):
        return names
    raise ConfigError("no adapter of amends.toml has a sandbox", hint=remedy("NAME"))


def remedy(adapter: str) -> str:
    """How an adapter gets a sandbox."""
    return (
        f"add [adapters.{adapter}.sandbox] to amends.toml with the options that differ there "
        "(none, if what the section names is a sandbox already)"
    )


def _there(section: AdapterSettings) -> AdapterSettings:
    """The section with its sandbox's options in place of its own; as it is if it has none."""
    if section.sandbox is None:
        return section
    return AdapterSettings.model_validate(
        {
            **section.options,
            **section.sandbox.options,
            "plugin": section.plugin,
            "instance": section.sandbox.instance or section.instance,
            "tenant": section.tenant,
            "environment": section.sandbox.environment,
        }
    )
