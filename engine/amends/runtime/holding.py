"""Holding: claims on effects whose identity reaches past a run, as one run's facts change them (rule 6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from amends.core.errors import Conflict
from amends.core.rows import ClaimRow, RunState
from amends.ports.journal import Journal, RowKey, StoredRow


@dataclass(frozen=True, slots=True)
class ClaimChanges:
    """What to store about claims: `versions` to compare-and-set, `rows` to write. A claim that another run holds by
    now is that run's, whatever else becomes known here.
    """

    versions: dict[RowKey, int] = field(default_factory=dict[RowKey, int])
    rows: tuple[ClaimRow, ...] = ()


def claim_changes(journal: Journal, before: RunState, after: RunState, intended: Collection[str]) -> ClaimChanges:
    """The claims that differ. Raises `Conflict` if one of the `intended` actions needs a claim that another run holds;
    facts about an action that lost its claim are recorded all the same.
    """
    versions: dict[RowKey, int] = {}
    rows: list[ClaimRow] = []
    for key, claim in after.claims.items():
        if before.claims.get(key) == claim:
            continue
        stored = journal.row(RowKey("claim", key))
        if stored is not None and stored.active and stored.run_id != claim.run_id:
            if claim.held and claim.action_id in intended:
                raise _held_by(stored)
            continue
        versions[RowKey("claim", key)] = stored.version if stored else 0
        rows.append(claim)
    return ClaimChanges(versions, tuple(rows))


def _held_by(stored: StoredRow) -> Conflict:
    return Conflict(
        f"run `{stored.run_id}` holds this effect already",
        hint="attach to that run, wait for it to settle, or recover it",
        claim=stored.key.key,
        holder_run=stored.run_id,
        holder_action=ClaimRow.model_validate_json(stored.body).action_id,
    )
