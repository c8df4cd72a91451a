"""The authorizer over what was loaded: an adapter whose contracts or policies do not load is taken out, alone.

One bad plugin never takes the engine down; a wrong site bundle does, because nothing may be sent under half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from amends.backends.cedar import CedarAuthorizer
from amends.backends.plugin_host import Loaded, PluginProblem
from amends.core.errors import AmendsError, ConfigError


@dataclass(frozen=True, slots=True)
class PolicySources:
    """Everything policies are made of. `known_labels`: label -> version of every bundle the ledger has seen."""

    loaded: Loaded
    site_bundle: Path | None
    known_labels: Mapping[str, str]


def load_authorizer(sources: PolicySources) -> tuple[CedarAuthorizer, Loaded]:
    """The authorizer, and the adapters left, with a problem for each that was taken out.

    Raises `ConfigError` if the site bundle or the baseline does not load; it names adapters that are missing, since a
    site's policies may speak of their actions.
    """
    loaded = sources.loaded
    try:
        return _load(sources), loaded
    except ConfigError as error:
        culprits = _culprits(loaded)
        if culprits:
            return load_authorizer(replace(sources, loaded=loaded.without(culprits)))
        if not loaded.problems:
            raise
        missing = "; ".join(str(problem) for problem in loaded.problems)
        raise ConfigError(
            f"{error.message} (not loaded: {missing})",
            hint="repair the adapter first: the site's policies may name its actions",
            **error.data,
        ) from error


def _load(sources: PolicySources) -> CedarAuthorizer:
    return CedarAuthorizer.load(
        contracts=[offer.contract for offer in sources.loaded.offers],
        contributions=sources.loaded.contributions,
        owned_prefixes=sources.loaded.owned_prefixes,
        site_bundle=sources.site_bundle,
        known_labels=sources.known_labels,
    )


def _culprits(loaded: Loaded) -> dict[str, PluginProblem]:
    """Adapters that do not load beside the baseline and those before them, in name order."""
    sound = Loaded()
    culprits: dict[str, PluginProblem] = {}
    for adapter in loaded.adapters:
        trial = Loaded((*sound.adapters, adapter))
        try:
            _load(PolicySources(trial, None, {}))
        except AmendsError as error:
            distribution = f"{adapter.distribution} {adapter.version}"
            remedy = error.hint or "report it to the plugin's authors"
            culprits[adapter.name] = PluginProblem(adapter.name, distribution, "policies", error.message, remedy)
        else:
            sound = trial
    return culprits
