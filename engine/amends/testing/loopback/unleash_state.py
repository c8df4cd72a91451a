"""What the flag server keeps and how it shows it: features, switches, strategies, and the event log beside them."""

from __future__ import annotations

from typing import Any

from amends.testing.loopback.system import Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, as_doc, as_list, iso

FEATURES = "features"
SWITCHES = "switches"
STRATEGIES = "strategies"
SEGMENTS = "segments"
EVENTS = "events"


def actor_name(unit: Unit) -> str:
    """Who the event log says it was: the token's user, or the other actor's name."""
    return unit.origin.account or unit.origin.actor


def environment_names(unit: Unit) -> list[str]:
    """The environments in their order."""
    return [str(environment["name"]) for environment in unit.setting("environments")]


def find_feature(unit: Unit, request: Request) -> Doc:
    """The feature that the path names. Archived ones are not found, as in the product."""
    name = request.params["feature"]
    reading = request.method == "GET"
    doc = unit.objects.get(FEATURES, name) if reading else unit.objects.peek(FEATURES, name)
    if doc is None or doc["archived"] or doc["project"] != request.params["project"]:
        raise ApiError(404, "NotFoundError", f"Could not find feature toggle with name {name}")
    return doc


def strategies_of(unit: Unit, feature: str, environment: str, *, truth: bool = False) -> list[Doc]:
    """The strategies of a feature in one environment, in their sort order."""
    everything = unit.objects.truth(STRATEGIES) if truth else unit.objects.all(STRATEGIES)
    found = [
        strategy
        for strategy in everything
        if strategy["featureName"] == feature and strategy["environment"] == environment
    ]
    return sorted(found, key=lambda strategy: int(strategy["sortOrder"]))


def environment_view(unit: Unit, feature: Doc, environment: str) -> Doc:
    """One environment as the API shows it; without strategies it is shown as off, whatever its switch says."""
    described = next(item for item in unit.setting("environments") if item["name"] == environment)
    strategies = strategies_of(unit, feature["name"], environment)
    switch = unit.objects.get(SWITCHES, _switch(feature["name"], environment)) or {"enabled": False}
    return {
        "name": environment,
        "type": described["type"],
        "sortOrder": environment_names(unit).index(environment) + 1,
        "enabled": bool(switch["enabled"] and strategies),
        "variantCount": 0,
        "lastSeenAt": None,
        "strategies": strategies,
    }


def feature_view(unit: Unit, feature: Doc) -> Doc:
    """A feature with all its environments."""
    environments = [environment_view(unit, feature, name) for name in environment_names(unit)]
    extra: Doc = {
        "environments": environments,
        "variants": [],
        "lastSeenAt": None,
        "dependencies": [],
        "children": [],
    }
    return {**feature, **extra}


def set_enabled(unit: Unit, feature: Doc, environment: str, *, enabled: bool, silent: bool = False) -> None:
    """Turn the switch. Where it already stands so, nothing happens and no event is written."""
    key = _switch(feature["name"], environment)
    before = bool((unit.objects.peek(SWITCHES, key) or {"enabled": False})["enabled"])
    if before == enabled:
        return
    unit.objects.put(SWITCHES, key, {"enabled": enabled}, undo=not enabled)
    resource = f"feature:{feature['project']}/{feature['name']}@{environment}"
    unit.effects.changed("feature_enabled", resource, before, enabled)
    if not silent:
        kind = "feature-environment-enabled" if enabled else "feature-environment-disabled"
        record_event(unit, kind, feature, environment=environment)


def record_event(
    unit: Unit,
    kind: str,
    feature: Doc,
    *,
    environment: str | None = None,
    data: Any = None,
    before: Any = None,
) -> None:
    """Append to the event log."""
    number = unit.rows.next_number("event")
    event: Doc = {
        "id": number,
        "type": kind,
        "createdBy": actor_name(unit),
        "createdAt": iso(unit.now()),
        "project": feature["project"],
        "featureName": feature["name"],
        "environment": environment,
        "data": data,
        "preData": before,
        "tags": [],
    }
    unit.objects.put(EVENTS, str(number), event)


def patched(doc: Doc, operations: Any) -> Doc:
    """Apply JSON Patch operations to a document's top-level fields.

    Raises:
        ApiError: not a list of operations, or an operation that is not add, replace or remove.
    """
    if not isinstance(operations, list):
        raise ApiError(400, "BadDataError", "Request validation failed: a patch is a list of operations")
    result = dict(doc)
    for step in map(as_doc, as_list(operations)):
        field = str(step.get("path", "")).removeprefix("/")
        if step.get("op") in ("add", "replace"):
            result[field] = step.get("value")
        elif step.get("op") == "remove":
            result[field] = None
        else:
            raise ApiError(400, "BadDataError", f"Request validation failed: unknown operation {step.get('op')}")
    return result


def _switch(feature: str, environment: str) -> str:
    return f"{feature}@{environment}"
