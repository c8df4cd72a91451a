"""The authorizer over what was loaded: an adapter whose contracts or policies do not load is taken out, alone.

One bad plugin never takes the engine down; a wrong site bundle does, because nothing may be sent under half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from amends.backends.cedar import CedarAuthorizer, bundle
from amends.backends.cedar.testing import PolicyTestResult, run_policy_tests
from amends.backends.plugin_host import Loaded, PluginProblem
from amends.core.canonical import JsonMap
from amends.core.errors import AmendsError, ConfigError
from amends.core.evidence import as_map


@dataclass(frozen=True, slots=True)
class PolicySources:
    """Everything policies are made of. `known_labels`: label -> version of every bundle the ledger has seen."""

    loaded: Loaded
    site_bundle: Path | None
    known_labels: Mapping[str, str]
    shadow_bundle: Path | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bundle that was examined. `authorizer` is there if it may decide, `problems` if it may not."""

    version: str  # empty: it could not even be read
    digest: str  # of what was found, or of why it could not be read
    authorizer: CedarAuthorizer | None = None
    problems: tuple[str, ...] = ()


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


def fingerprint(site_bundle: Path | None) -> tuple[str, str]:
    """Version and digest of what stands in a folder now, tests included; the version is empty if it cannot be read."""
    if site_bundle is None:
        return "", ""
    try:
        read = bundle.read(site_bundle)
    except ConfigError as error:
        return "", bundle.digest({"unreadable": error.message})
    return read.version, bundle.digest({**read.sources, **read.tests})


def examine(sources: PolicySources) -> Candidate:
    """Check, lint and test what stands in the site's folder now, as nothing that decides yet."""
    version, digest = fingerprint(sources.site_bundle)
    try:
        candidate = _load(sources)
        failed = [result for result in _tested(sources) if not result.passed]
    except AmendsError as error:
        return Candidate(version, digest, problems=_in_words(error))
    if failed:
        problems = tuple(f"{result.file}: test `{result.name}`: {result.problem}" for result in failed)
        return Candidate(version, digest, problems=problems)
    return Candidate(candidate.bundle().version, digest, candidate)


def examine_shadow(sources: PolicySources) -> Candidate | None:
    """The bundle that is to be asked beside the active one; None if there is none. Its tests are not run: it is there
    to be tried.
    """
    if sources.shadow_bundle is None:
        return None
    sources = replace(sources, site_bundle=sources.shadow_bundle)
    version, digest = fingerprint(sources.site_bundle)
    try:
        return Candidate(version, digest, _load(sources))
    except AmendsError as error:
        return Candidate(version, digest, problems=_in_words(error))


def _tested(sources: PolicySources) -> list[PolicyTestResult]:
    return run_policy_tests(
        contracts=[offer.contract for offer in sources.loaded.offers],
        contributions=sources.loaded.contributions,
        owned_prefixes=sources.loaded.owned_prefixes,
        site_bundle=sources.site_bundle,
        known_labels=sources.known_labels,
    )


def _in_words(error: AmendsError) -> tuple[str, ...]:
    """Each finding for itself, if the error has findings."""
    findings = error.data.get("findings")
    if not isinstance(findings, list):
        return (f"{error.message}: {error.hint}",)
    return tuple(_line(as_map(finding)) for finding in cast("list[object]", findings))


def _line(finding: JsonMap) -> str:
    where = ":".join(str(finding[key]) for key in ("file", "line") if finding.get(key))
    policy = f" policy `{finding['policy_id']}`:" if finding.get("policy_id") else ""
    return f"{where}:{policy} {finding['message']} ({finding['hint']})"


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
