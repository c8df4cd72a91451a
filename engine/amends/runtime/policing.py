"""Policing: which policies decide, kept in the ledger: sources once, every change, and what was refused.

Nothing is decided under a bundle whose sources the ledger does not hold (DESIGN section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from amends.core import events as e
from amends.core.rows import PolicyRow
from amends.ports.authorizer import PolicyBundle
from amends.ports.journal import Journal, RowKey
from amends.runtime.book import Book

Role = Literal["active", "shadow"]
_SHOWN_REASONS = 20
_SHOWN_CHARACTERS = 500


def keep_sources(book: Book, journal: Journal, bundles: Iterable[PolicyBundle]) -> None:
    """Record the sources of each bundle that the ledger has not seen, before anything is decided under it."""
    news = [
        e.BundleRecorded(
            policy_version=bundle.version,
            effective_digest=bundle.effective_digest,
            semantic_digest=bundle.semantic_digest,
            sources=dict(bundle.sources),
        )
        for bundle in bundles
        if journal.row(RowKey("bundle", bundle.effective_digest)) is None
    ]
    if news:
        book.record_system(news)


def activated(book: Book, journal: Journal, bundle: PolicyBundle) -> None:
    """Record that this bundle decides from now on, unless that is the last thing that was said."""
    before = last_active(journal)
    if before is not None and before.digest == bundle.effective_digest and standing_refusal(journal) is None:
        return
    replaced = before.policy_version if before else ""
    told = e.BundleActivated(policy_version=bundle.version, effective_digest=bundle.effective_digest, replaced=replaced)
    book.record_system([told])


def refused(
    book: Book, journal: Journal, role: Role, *, version: str, digest: str, reasons: Sequence[str], kept: str
) -> None:
    """Record a bundle that cannot be used, and what goes on deciding; the same fault once."""
    last, active = last_refused(journal, role), last_active(journal)
    since = active.at_us if active and role == "active" else 0
    if last is not None and last.digest == digest and last.at_us >= since:
        return
    told = e.BundleRejected(
        role=role,
        policy_version=version,
        digest=digest,
        reasons=tuple(reason[:_SHOWN_CHARACTERS] for reason in reasons[:_SHOWN_REASONS]),
        kept=kept,
    )
    book.record_system([told])


def last_active(journal: Journal) -> PolicyRow | None:
    """What engines were last told to decide by."""
    return _row(journal, "active")


def last_refused(journal: Journal, role: Role) -> PolicyRow | None:
    """The last bundle that was refused for a role."""
    return _row(journal, f"rejected:{role}")


def standing_refusal(journal: Journal) -> PolicyRow | None:
    """The refused bundle that still waits to be repaired: nothing was activated since."""
    last, active = last_refused(journal, "active"), last_active(journal)
    return last if last is not None and (active is None or active.at_us <= last.at_us) else None


def _row(journal: Journal, key: str) -> PolicyRow | None:
    row = journal.row(RowKey("policy", key))
    return None if row is None else PolicyRow.model_validate_json(row.body)
