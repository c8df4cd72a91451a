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
CONTENT = ("name", "title", "disabled", "sortOrder", "constraints", "variants", "parameters", "segments")


def actor_name(unit: Unit) -> str:
    """Who the event log says it was: the token's user, or the other actor's name."""
    return unit.origin.account or unit.origin.actor


def environment_names(unit: Unit) -> list[str]:
    """The environments in their order."""
    return [str(environment["name"]) for environment in unit.setting("environments")]


def find_feature(unit: Unit, request: Request, *, archived: bool = False) -> Doc:
    """The feature that the path names. Only asked for the whole of it, the product hides an archived one."""
    name, project = request.params["feature"], request.params["project"]
    reading = request.method == "GET"
    doc = unit.objects.get(FEATURES, name) if reading else unit.objects.peek(FEATURES, name)
    if doc is None or doc["project"] != project:
        elsewhere = f', but there\'s a feature with that name in project "{doc["project"]}"' if doc else "."
        raise ApiError(404, "NotFoundError", f'There\'s no feature named "{name}" in project "{project}"{elsewhere}')
    if doc["archived"] and not archived:
        raise ApiError(404, "NotFoundError", f"Could not find feature flag with name {name}")
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


def strategy_view(doc: Doc) -> Doc:
    """A strategy as the API shows it."""
    return {name: doc[name] for name in ("id", *CONTENT)}


def environment_view(unit: Unit, feature: Doc, environment: str) -> Doc:
    """One environment by its own address. The product leaves segments out here, and shows archived features too."""
    hidden = {"segments", "projectId", "environment"}
    strategies = [
        {name: value for name, value in strategy.items() if name not in hidden}
        for strategy in strategies_of(unit, feature["name"], environment)
    ]
    return {
        "name": feature["name"],
        "environment": environment,
        "enabled": is_enabled(unit, feature["name"], environment),
        "strategies": strategies,
    }


def feature_view(unit: Unit, feature: Doc) -> Doc:
    """A feature with all its environments."""
    environments = [_within_feature(unit, feature, described) for described in unit.setting("environments")]
    extra: Doc = {
        "environments": environments,
        "dependencies": [],
        "children": [],
        "links": [],
    }
    return {**feature, **extra}


def is_enabled(unit: Unit, feature: str, environment: str) -> bool:
    """Whether a feature is shown as on; without strategies it is off, whatever its switch says."""
    switch = unit.objects.get(SWITCHES, _switch(feature, environment)) or {"enabled": False}
    return bool(switch["enabled"] and strategies_of(unit, feature, environment))


def _within_feature(unit: Unit, feature: Doc, described: Doc) -> Doc:
    strategies = strategies_of(unit, feature["name"], described["name"])
    return {
        "name": described["name"],
        "lastSeenAt": None,
        "enabled": is_enabled(unit, feature["name"], described["name"]),
        "yes": 0,
        "no": 0,
        "type": described["type"],
        "sortOrder": environment_names(unit).index(described["name"]) + 1,
        "strategies": [strategy_view(strategy) for strategy in strategies],
    }


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
        "groupType": "transaction",
    }
    unit.objects.put(EVENTS, str(number), event)


def invalid(message: str) -> ApiError:
    """The product's refusal of a body or parameter."""
    about = "Request validation failed: your request body or params contain invalid data: "
    return ApiError(400, "BadDataError", about + message)


def patched(doc: Doc, operations: Any) -> Doc:
    """Apply JSON Patch operations to a document's top-level fields.

    Raises:
        ApiError: not a list of operations, or an operation that is not add, replace or remove.
    """
    if not isinstance(operations, list):
        raise invalid("The `/body` property must be array.")
    result = dict(doc)
    for step in map(as_doc, as_list(operations)):
        field = str(step.get("path", "")).removeprefix("/")
        if step.get("op") in ("add", "replace"):
            result[field] = step.get("value")
        elif step.get("op") == "remove":
            result[field] = None
        else:
            raise invalid(f"unknown operation {step.get('op')}")
    return result


def _switch(feature: str, environment: str) -> str:
    return f"{feature}@{environment}"
