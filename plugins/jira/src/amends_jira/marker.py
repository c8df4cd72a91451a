"""Our mark. No reader sees a property of an issue or a comment, nor the extra data of a change in the history; where
those cannot be had, it is a label, a comment's first line, or a remote link's global id.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap

PROPERTY = "amends.action"


def properties(marker: str) -> list[Json]:
    """The `properties` of a new issue or comment that belongs to the action `marker`."""
    return [{"key": PROPERTY, "value": {"amends_action": marker}}]


def of_value(value: Json) -> str:
    """The action that a property's value names; empty if none."""
    found = value.get("amends_action") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def of_properties(entity: Mapping[str, Json]) -> str | None:
    """The action that an entity's own `properties` name; None if it shows none, so that they have to be asked for."""
    shown = entity.get("properties")
    if isinstance(shown, dict):
        return of_value(shown.get(PROPERTY)) if PROPERTY in shown else ""
    if isinstance(shown, list):
        return next((of_value(p.get("value")) for p in shown if isinstance(p, dict) and p.get("key") == PROPERTY), "")
    return None


def line(marker: str) -> str:
    """The first line of a comment, for comments whose properties cannot be set."""
    return f"amends:{marker}"


def label(marker: str) -> str:
    """The label of a new issue, for issues whose properties cannot be set."""
    return f"amends-{marker}"


def global_id(marker: str) -> str:
    """The global id of a remote link."""
    return f"amends:{marker}"


def history(marker: str, *, undo_of: str = "") -> JsonMap:
    """The `historyMetadata` of a change; Jira shows it in the change's changelog entry."""
    extra: JsonMap = {"amends_action": marker}
    if undo_of:
        extra["amends_undo_of"] = undo_of
    return {"type": "amends:action", "description": "changed by an agent run", "extraData": extra}


def of_history(entry: Mapping[str, Json]) -> tuple[str, str]:
    """The action that a changelog entry names, and the action it undoes; empty where it names none."""
    meta = entry.get("historyMetadata")
    extra = meta.get("extraData") if isinstance(meta, dict) else None
    if not isinstance(extra, dict):
        return "", ""
    undone = extra.get("amends_undo_of")
    return of_value(extra), undone if isinstance(undone, str) else ""
