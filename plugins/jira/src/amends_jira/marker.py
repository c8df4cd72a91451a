"""Our mark: an entity property on issues and comments, extra data in an issue's history. Invisible to readers."""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap

PROPERTY = "amends.action"
_TEXT = "[amends:{marker}]"


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


def in_text(marker: str) -> str:
    """The marker as a line of text, for comments whose properties cannot be set."""
    return _TEXT.format(marker=marker)


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
