"""The system's own account of what happened to it, independent of what any client believes.

A created thing is one effect, present until it is removed. A changed setting is one effect per (kind, resource),
present while the value differs from what it was before the first change. Every step is also an event, in order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from amends.testing.loopback.store import Rows
from amends.testing.loopback.wire import Doc, now


@dataclass(frozen=True, slots=True)
class Origin:
    """Who caused an effect: `agent` for API clients, another name for a person or seed; and by which request."""

    actor: str = "agent"
    account: str = ""
    request_seq: int | None = None


class Effects:
    """The effects table, inside one transaction and for one origin."""

    def __init__(self, rows: Rows, origin: Origin) -> None:
        self._rows = rows
        self._origin = origin

    def created(self, kind: str, resource: str, reference: str, marker: str = "", detail: Any = None) -> None:
        """A new effect is there."""
        seq = self._rows.run(
            "INSERT INTO effects (ts, kind, resource, reference, marker, state, actor, account, request_seq, detail)"
            " VALUES (?, ?, ?, ?, ?, 'present', ?, ?, ?, ?)",
            (
                now(),
                kind,
                resource,
                reference,
                marker,
                self._origin.actor,
                self._origin.account,
                self._origin.request_seq,
                json.dumps(detail),
            ),
        )
        self._event(seq, "created")

    def removed(self, kind: str, reference: str) -> None:
        """The effect with this reference is gone. One that was never recorded (a seeded thing) is left out."""
        self._turn(kind, reference, was="present", becomes="removed", event="removed")

    def restored(self, kind: str, reference: str) -> None:
        """A removed effect is there again."""
        self._turn(kind, reference, was="removed", becomes="present", event="restored")

    def changed(
        self, kind: str, resource: str, before: Any, after: Any, *, marker: str = "", reference: str = ""
    ) -> None:
        """A setting went from `before` to `after`; back at its first value, the effect counts as removed."""
        if before == after:
            return
        effect = self._rows.first(
            "SELECT seq, detail FROM effects WHERE kind = ? AND resource = ? AND state = 'present'", (kind, resource)
        )
        if effect is None:
            self.created(kind, resource, reference or resource, marker, {"before": before, "after": after})
            return
        first = json.loads(effect["detail"])["before"]
        back = first == after
        self._rows.run(
            "UPDATE effects SET state = ?, detail = ? WHERE seq = ?",
            (
                "removed" if back else "present",
                json.dumps({"before": first, "after": after}),
                effect["seq"],
            ),
        )
        self._event(effect["seq"], "removed" if back else "changed")

    def _turn(self, kind: str, reference: str, *, was: str, becomes: str, event: str) -> None:
        row = self._rows.first(
            "SELECT seq FROM effects WHERE kind = ? AND reference = ? AND state = ? ORDER BY seq DESC LIMIT 1",
            (kind, reference, was),
        )
        if row is not None:
            self._rows.run("UPDATE effects SET state = ? WHERE seq = ?", (becomes, row["seq"]))
            self._event(row["seq"], event)

    def _event(self, seq: int, event: str) -> None:
        self._rows.run(
            "INSERT INTO effect_events (ts, effect_seq, event, kind, resource, reference, actor, request_seq)"
            " SELECT ?, seq, ?, kind, resource, reference, ?, ? FROM effects WHERE seq = ?",
            (now(), event, self._origin.actor, self._origin.request_seq, seq),
        )


def list_effects(rows: Rows, kind: str | None, state: str | None, actor: str | None) -> list[Doc]:
    """Effect rows in the order in which they appeared; None means any."""
    found = rows.all(
        "SELECT * FROM effects WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR state = ?2)"
        " AND (?3 IS NULL OR actor = ?3) ORDER BY seq",
        (kind, state, actor),
    )
    return [{**row, "detail": json.loads(row["detail"])} for row in found]


def list_events(rows: Rows) -> list[Doc]:
    """Every creation, change and removal, in order."""
    return rows.all("SELECT * FROM effect_events ORDER BY seq")


def count_effects(rows: Rows, actor: str | None) -> dict[str, dict[str, int]]:
    """How many effects there are: kind -> state -> number."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows.all(
        "SELECT kind, state, count(*) AS n FROM effects WHERE (?1 IS NULL OR actor = ?1) GROUP BY kind, state",
        (actor,),
    ):
        counts.setdefault(row["kind"], {})[row["state"]] = row["n"]
    return counts
