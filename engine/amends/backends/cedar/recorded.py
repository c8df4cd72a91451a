"""Bundles as the ledger keeps them: compiled from their sources alone, without any contract or plugin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amends.backends.cedar.compile import BASELINE, PLUGINS, SITE, Snapshot, compile_sources
from amends.backends.cedar.findings import refuse
from amends.backends.cedar.meaning import meaning_of, policy_digest
from amends.backends.cedar.tree import Policy
from amends.backends.cedar.worker import Worker
from amends.ports.authorizer import PolicyBundle

ORIGINS = {BASELINE: "baseline", PLUGINS: "adapter", SITE: "site"}


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """One policy of a bundle, for a list."""

    policy_id: str
    effect: str
    origin: str
    file: str
    line: int
    reason: str
    meaning: str


def snapshot_of(recorded: PolicyBundle) -> Snapshot:
    """The recorded sources, ready to be asked. Raises `ConfigError` if this engine does not load them."""
    snapshot, findings = Worker().run(lambda: compile_sources(recorded.sources, recorded.version))
    refuse(findings)
    if snapshot is None:
        raise RuntimeError("no snapshot and no finding")
    return snapshot


def semantic_digest(snapshot: Snapshot) -> str:
    """The digest of what the sources mean."""
    return meaning_of(snapshot).digest


def policies_of(snapshot: Snapshot) -> Sequence[KnownPolicy]:
    """Every policy, in order of file and line."""
    return [
        _known(policy)
        for policy in sorted((*snapshot.policies, *snapshot.shadow), key=lambda policy: (policy.file, policy.line))
    ]


def _known(policy: Policy) -> KnownPolicy:
    origin = next((word for prefix, word in ORIGINS.items() if policy.file.startswith(prefix)), "")
    return KnownPolicy(policy.id, policy.effect, origin, policy.file, policy.line, policy.reason, policy_digest(policy))
