"""Small complete contracts for tests: each passes registration; change what a test is about with keywords."""

from __future__ import annotations

from typing import Any

from amends.core.contract import (
    Alternative,
    Contract,
    Effect,
    Identity,
    Keying,
    ProbeRule,
    Readers,
    Release,
    ReleaseMode,
    Signal,
)

MACHINE = Readers(audience="machine", where="the partner's API")
TEAM = Readers(audience="team", where="the channel")


def reversible(capability: str = "partner.reserve", **changes: Any) -> Contract:
    """A keyed call that an own undo takes back; found again by id, absence is final after ten seconds."""
    fields: dict[str, Any] = {
        "capability": capability,
        "summary": "reserves one item",
        "effect": Effect(kind="reservation", system="partner", resource="reservation:{name}"),
        "readers": MACHINE,
        "undo_cost": "none",
        "reversibility": "reversible",
        "identity": Identity(fields=("name",)),
        "keying": Keying(kind="keyed", parameter="Idempotency-Key"),
        "probe": ProbeRule(
            strength="id", schedule_seconds=(0.0, 1.0, 4.0), deadline_seconds=15.0, absent_final_after_seconds=10.0
        ),
        "compensation": (Alternative(name="cancel"),),
    }
    return Contract(**(fields | changes))


def visible(capability: str = "jira.transition", place: str = "jira:{name}", **changes: Any) -> Contract:
    """A reversible call that the team sees at `place`."""
    fields: dict[str, Any] = {
        "readers": TEAM,
        "signal": Signal(
            visible_to="the team",
            place=place,
            seen="{name} moved to Done",
            reader_must="nothing",
            comes_back="with the next release",
        ),
    }
    return reversible(capability, **(fields | changes))


def irreversible(capability: str = "partner.notify", mode: ReleaseMode = "on_success", **changes: Any) -> Contract:
    """A call that only leaves through the outbox (`on_success`, `on_approval`) or is a `gate`."""
    fields: dict[str, Any] = {
        "effect": Effect(kind="notice", system="partner", resource="notice:{name}"),
        "reversibility": "irreversible",
        "release": Release(mode=mode),
        "compensation": (),
    }
    return reversible(capability, **(fields | changes))


def corrector(capability: str = "jira.correct", **changes: Any) -> Contract:
    """The posting of a correction: never undone, found again by its marker."""
    fields: dict[str, Any] = {
        "effect": Effect(kind="note", system="jira", resource="note:{name}"),
        "readers": TEAM,
        "reversibility": "irreversible",
        "compensation": (),
        "corrects": True,
    }
    return reversible(capability, **(fields | changes))
