"""What the contracts have in common."""

from __future__ import annotations

from amends.spi import Alternative, ProbeRule, Readers, Release
from amends_jira.options import JiraOptions

KEY = r"[A-Z][A-Z0-9_]*-[1-9][0-9]*"
PERSON = Alternative(name="person", undo="escalate")


def readers(options: JiraOptions, where: str) -> Readers:
    """Who reads an issue, as the site says."""
    if options.customer_facing:
        return Readers(audience="customer", where=f"{where}; the client portal")
    return Readers(audience="team", where=where)


def release(options: JiraOptions) -> Release:
    """How an irreversible call leaves the outbox."""
    return Release(mode="on_approval" if options.customer_facing else "on_success")


def by_id(options: JiraOptions) -> ProbeRule:
    """The issue itself, by key."""
    return ProbeRule(
        strength="id",
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
    )


def listing(options: JiraOptions) -> ProbeRule:
    """Every comment of the issue, filtered by our marker on our side."""
    return ProbeRule(
        strength="list",
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
        counts=True,
    )
