"""The system's own account of what happened to it, independent of what any client believes.

A created thing is one effect, present until it is removed. A changed setting is one effect per kind, resource and
actor, present while the value differs from the one that the actor found. Every step is also an event, in order.
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

    def removed(self, kind: str, reference: str, resource: str = "") -> None:
        """The thing with this reference is gone. Taking away what was not ours is an effect of its own."""
        row = self._latest(kind, reference, "present")
        if row is not None:
            self._turn(row, "removed", "removed")
        if row is None or row["actor"] != self._origin.actor:
            self.created(f"{kind}_removed", row["resource"] if row else resource, reference)

    def restored(self, kind: str, reference: str) -> None:
        """A removed thing is there again, under the same reference."""
        row = self._latest(kind, reference, "removed")
        if row is not None:
            self._turn(row, "present", "restored")
        taking = self._latest(f"{kind}_removed", reference, "present")
        if taking is not None:
            self._turn(taking, "removed", "removed")

    def changed(
        self, kind: str, resource: str, before: Any, after: Any, *, marker: str = "", reference: str = ""
    ) -> None:
        """A setting went from `before` to `after`. Back at the value that an actor found, its effect is removed."""
        if before == after:
            return
        mine = False
        for row in self._rows.all(
            "SELECT * FROM effects WHERE kind = ? AND resource = ? AND state = 'present'", (kind, resource)
        ):
            first = json.loads(row["detail"])["before"]
            own = row["actor"] == self._origin.actor
            mine = mine or own
            if first == after:
                self._turn(row, "removed", "removed", {"before": first, "after": after})
            elif own:
                self._turn(row, "present", "changed", {"before": first, "after": after})
        if not mine:
            self.created(kind, resource, reference or resource, marker, {"before": before, "after": after})

    def find(self, kind: str, resource: str) -> list[Doc]:
        """The effects of a kind that are present on a resource."""
        rows = self._rows.all(
            "SELECT * FROM effects WHERE kind = ? AND resource = ? AND state = 'present' ORDER BY seq",
            (kind, resource),
        )
        return [{**row, "detail": json.loads(row["detail"])} for row in rows]

    def _latest(self, kind: str, reference: str, state: str) -> Doc | None:
        return self._rows.first(
            "SELECT * FROM effects WHERE kind = ? AND reference = ? AND state = ? ORDER BY seq DESC LIMIT 1",
            (kind, reference, state),
        )

    def _turn(self, row: Doc, state: str, event: str, detail: Doc | None = None) -> None:
        text = row["detail"] if detail is None else json.dumps(detail)
        self._rows.run("UPDATE effects SET state = ?, detail = ? WHERE seq = ?", (state, text, row["seq"]))
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
