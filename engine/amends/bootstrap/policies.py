"""Policies of a wired engine: loaded once, examined and swapped while it runs, and kept in the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from amends.config import Settings
from amends.core.rows import BundleRow
from amends.ports.journal import Journal
from amends.runtime import policing
from amends.runtime.book import Book

if TYPE_CHECKING:
    from amends.backends.cedar import CedarAuthorizer
    from amends.backends.plugin_host import Loaded
    from amends.backends.policies import Candidate, PolicySources


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of the site's bundle. `version` decides now; `problems` say why `candidate` does not."""

    outcome: Literal["unchanged", "activated", "rejected"]
    version: str
    candidate: str = ""
    problems: tuple[str, ...] = ()


@dataclass
class Policies:
    """Which policies decide in this process, and where others come from. `authorizer` is None in a desk."""

    journal: Journal
    sources: Callable[[], PolicySources]
    authorizer: CedarAuthorizer | None
    seen: str = ""  # digest of the bundle that was examined last
    seen_shadow: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, book: Book) -> None:
        """Keep what decides from now on, before the first decision under it, and take up the shadow."""
        if self.authorizer is not None:
            bundle = self.authorizer.bundle()
            policing.keep_sources(book, self.journal, [bundle])
            policing.activated(book, self.journal, bundle)
            self._shadow(book, self.sources(), self.authorizer)

    def reload(self, book: Book) -> Reloaded:
        """Take up a changed bundle that is sound; record a changed one that is not."""
        from amends.backends.policies import examine, fingerprint

        with self.lock:
            sources = self.sources()
            if self.authorizer is not None:
                self._shadow(book, sources, self.authorizer)
                if fingerprint(sources.site_bundle)[1] == self.seen:
                    return Reloaded("unchanged", self._version())
            candidate = examine(sources)
            outcome = self._take(book, candidate)
            self.seen = candidate.digest
            return outcome

    def _take(self, book: Book, candidate: Candidate) -> Reloaded:
        if candidate.authorizer is None:
            policing.refused(
                book,
                self.journal,
                "active",
                version=candidate.version,
                digest=candidate.digest,
                reasons=candidate.problems,
                kept=self._version(),
            )
            return Reloaded("rejected", self._version(), candidate.version, candidate.problems)
        bundle = candidate.authorizer.bundle()
        same = bundle.effective_digest == self._effective_digest()
        policing.keep_sources(book, self.journal, [bundle])
        policing.activated(book, self.journal, bundle)
        if self.authorizer is not None:
            self.authorizer.adopt(candidate.authorizer)
        return Reloaded("unchanged" if same else "activated", bundle.version, candidate.version)

    def _shadow(self, book: Book, sources: PolicySources, authorizer: CedarAuthorizer) -> None:
        """The shadow's bundle, if it has changed; a bad one is recorded, and the one before goes on being asked."""
        from amends.backends.policies import examine_shadow, fingerprint

        found = fingerprint(sources.shadow_bundle)[1]
        if found == self.seen_shadow:
            return
        candidate = examine_shadow(sources)
        if candidate is not None and candidate.authorizer is not None:
            policing.keep_sources(book, self.journal, [candidate.authorizer.bundle()])
            authorizer.shadow_with(candidate.authorizer)
        elif candidate is not None:
            kept = authorizer.shadow_bundle()
            policing.refused(
                book,
                self.journal,
                "shadow",
                version=candidate.version,
                digest=candidate.digest,
                reasons=candidate.problems,
                kept=kept.version if kept else "",
            )
        self.seen_shadow = found

    def _version(self) -> str:
        if self.authorizer is not None:
            return self.authorizer.bundle().version
        active = policing.last_active(self.journal)
        return active.policy_version if active else ""

    def _effective_digest(self) -> str:
        if self.authorizer is not None:
            return self.authorizer.bundle().effective_digest
        active = policing.last_active(self.journal)
        return active.digest if active else ""


def policy_sources(settings: Settings, journal: Journal, loaded: Loaded) -> PolicySources:
    """What the active policies are made of, for `amends policy` and for the authorizer."""
    from amends.backends.policies import PolicySources

    bundle, shadow = settings.policies.bundle, settings.policies.shadow
    return PolicySources(
        loaded,
        settings.path(bundle) if bundle else None,
        known_labels(journal),
        settings.path(shadow) if shadow else None,
    )


def known_labels(journal: Journal) -> dict[str, str]:
    """Label -> version of every bundle the ledger has seen: a label never means two things."""
    rows = [BundleRow.model_validate_json(row.body) for row in journal.rows("bundle")]
    return {row.policy_version.split("@", 1)[0]: row.policy_version for row in rows}


# --- wiring ---------------------------------------------------------------------------------------------------
