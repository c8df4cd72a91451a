"""What `amends inject` prints: a table for people, one document for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amends.testing.injection.looking import Seen
from amends.testing.injection.trying import Report
from amends.testing.injection.world import Tried


def document(report: Report) -> dict[str, Any]:
    """The report as one JSON document."""
    return {
        "workflow": report.workflow,
        "verdict": report.verdict,
        "worlds": [_world(tried) for tried in report.worlds],
        "not_tried": [
            {"fault": one.fault.kind, "step": one.fault.step, "reason": one.reason} for one in report.not_tried
        ],
        "left_on_the_sandbox": [{"world": tried.world, **_effect(seen)} for tried, seen in report.left_behind],
    }


def lines(report: Report) -> Iterator[str]:
    """The report as a table, and beneath it whatever a person has to know."""
    rows = [("fault", "verdict", "run", "left", "duplicates"), *(_row(tried) for tried in report.worlds)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for tried in report.worlds:
        yield from _details(tried)
    reasons: dict[str, list[str]] = {}
    for one in report.not_tried:
        reasons.setdefault(one.reason, []).append(str(one.fault))
    for reason, faults in reasons.items():
        yield f"not tried: {', '.join(faults)}: {reason}"
    for tried, seen in report.left_behind:
        yield f"left on the sandbox by {tried.world} ({name_of(tried)}): {seen.action.resource}, seen `{seen.seen}`"
    if any(seen.standing == "waits" for _, seen in report.left_behind):
        yield "`amends --sandbox inbox list` shows what waits for a person there"


def name_of(tried: Tried) -> str:
    """The world's fault, in a word."""
    return str(tried.fault) if tried.fault else "no fault"


def _row(tried: Tried) -> tuple[str, ...]:
    open_ones = [seen for seen in tried.seen if seen.standing != "held"]
    left = ", ".join(f"{seen.action.resource} {seen.action.status}" for seen in open_ones) or "-"
    return name_of(tried), tried.verdict, tried.run_status or "-", left, str(tried.duplicates)


def _details(tried: Tried) -> Iterator[str]:
    open_ones = [seen for seen in tried.seen if seen.standing != "held"]
    if tried.verdict == "held":
        return
    yield f"{name_of(tried)}:"
    if tried.verdict == "did_not_fire":
        yield "  the fault was armed, and never happened"
    if tried.detail:
        yield f"  {tried.detail}"
    for seen in open_ones:
        yield f"  {seen.action.resource}: the ledger says `{seen.action.status}`, the sandbox shows `{seen.seen}`"
        if seen.detail:
            yield f"    {seen.detail}"
        yield f"    who must act: {seen.who}; how: {seen.how}"


def _world(tried: Tried) -> dict[str, Any]:
    return {
        "world": tried.world,
        "fault": tried.fault.kind if tried.fault else "none",
        "step": tried.fault.step if tried.fault else "",
        "point": (tried.fault.point or "") if tried.fault else "",
        "verdict": tried.verdict,
        "run_id": tried.run_id,
        "run_status": tried.run_status,
        "detail": tried.detail,
        "duplicates": tried.duplicates,
        "effects": [_effect(seen) for seen in tried.seen],
    }


def _effect(seen: Seen) -> dict[str, Any]:
    return {
        "capability": seen.action.capability,
        "kind": seen.action.kind.value,
        "resource": seen.action.resource,
        "status": seen.action.status.value,
        "outcome": seen.action.outcome.value,
        "seen": seen.seen,
        "standing": seen.standing,
        "detail": seen.detail,
        "who": seen.who,
        "how": seen.how,
    }
