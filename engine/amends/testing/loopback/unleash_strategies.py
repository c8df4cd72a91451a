"""Strategies of a feature in one environment: added, replaced, patched, ordered, deleted.

Adding twice makes two; deleting the last enabled one switches the environment off.
"""

from __future__ import annotations

from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.unleash_state import (
    CONTENT,
    FEATURES,
    SEGMENTS,
    STRATEGIES,
    environment_names,
    find_feature,
    invalid,
    patched,
    record_event,
    set_enabled,
    strategies_of,
    strategy_view,
)
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, as_list, new_uuid

_TYPES = ("default", "flexibleRollout")
_WHOLE_WEIGHT = 1000


def routes(path: str) -> list[Route]:
    """The strategy endpoints below one environment."""
    return [
        Route("GET", path, _list, reads=True),
        Route("POST", path, _add),
        Route("POST", path + "/set-sort-order", _sort),
        Route("GET", path + "/{id}", _get, reads=True),
        Route("PUT", path + "/{id}", _replace),
        Route("PATCH", path + "/{id}", _patch),
        Route("DELETE", path + "/{id}", _delete),
    ]


def default_strategy(feature: str) -> Doc:
    """What the product adds by itself when an environment without an enabled strategy is switched on."""
    parameters = {"rollout": "100", "stickiness": "default", "groupId": feature}
    return {"name": "flexibleRollout", "parameters": parameters}


def add(unit: Unit, feature: Doc, environment: str, given: Doc) -> Doc:
    """Add a strategy. It always gets a new id, even when one is sent."""
    content = _content(unit, feature["name"], given)
    if given.get("sortOrder") is None:
        others = strategies_of(unit, feature["name"], environment, truth=True)
        content["sortOrder"] = max((int(other["sortOrder"]) for other in others), default=-1) + 1
    doc: Doc = {
        "id": new_uuid(),
        "featureName": feature["name"],
        "projectId": feature["project"],
        "environment": environment,
        **content,
    }
    unit.objects.put(STRATEGIES, doc["id"], doc)
    _record_added(unit, doc)
    record_event(unit, "feature-strategy-add", feature, environment=environment, data=strategy_view(doc))
    return doc


def write(unit: Unit, feature: Doc, before: Doc, after: Doc) -> Doc:
    """Replace a strategy's content."""
    unit.objects.put(STRATEGIES, before["id"], after)
    resource = f"strategy:{before['id']}"
    unit.effects.changed("strategy_content", resource, _bare(before), _bare(after), marker=after["title"] or "")
    environment = before["environment"]
    views = {"data": strategy_view(after), "before": strategy_view(before)}
    record_event(unit, "feature-strategy-update", feature, environment=environment, **views)
    _switch_off_without_strategies(unit, feature, environment)
    return after


def _list(unit: Unit, request: Request) -> Response:
    name, environment = request.params["feature"], request.params["environment"]
    if unit.objects.get(FEATURES, name) is None or environment not in environment_names(unit):
        raise ApiError(404, "NotFoundError", f"Feature {name} does not have environment {environment}")
    found = strategies_of(unit, name, environment)
    return Response(200, [{**strategy_view(doc), "milestoneId": None} for doc in found])


def _get(unit: Unit, request: Request) -> Response:
    find_feature(unit, request, archived=True)
    return Response(200, strategy_view(_checked(unit.objects.get(STRATEGIES, request.params["id"]), request)))


def _add(unit: Unit, request: Request) -> Response:
    feature, environment = find_feature(unit, request, archived=True), request.params["environment"]
    if environment not in environment_names(unit):
        raise invalid("You have not added the current environment to the project")
    return Response(200, strategy_view(add(unit, feature, environment, request.body)))


def _replace(unit: Unit, request: Request) -> Response:
    """A full update: what is left out goes back to its default; only segments and the order stay."""
    feature, before = find_feature(unit, request, archived=True), _found(unit, request)
    kept = {name: before[name] for name in ("name", "sortOrder", "segments")}
    after = {**before, **_content(unit, feature["name"], {**kept, **request.body})}
    return Response(200, strategy_view(write(unit, feature, before, after)))


def _patch(unit: Unit, request: Request) -> Response:
    feature, before = find_feature(unit, request, archived=True), _found(unit, request)
    after = {**before, **_content(unit, feature["name"], patched(before, request.payload))}
    return Response(200, strategy_view(write(unit, feature, before, after)))


def _delete(unit: Unit, request: Request) -> Response:
    feature, doc = find_feature(unit, request, archived=True), _found(unit, request)
    unit.objects.remove(STRATEGIES, doc["id"])
    unit.effects.removed("strategy", doc["id"], _place(doc))
    environment = doc["environment"]
    _switch_off_without_strategies(unit, feature, environment)
    record_event(unit, "feature-strategy-remove", feature, environment=environment, before=strategy_view(doc))
    return Response(200)


def _sort(unit: Unit, request: Request) -> Response:
    """One event of its own for the whole order."""
    feature, environment = find_feature(unit, request, archived=True), request.params["environment"]
    former = [doc["id"] for doc in strategies_of(unit, feature["name"], environment, truth=True)]
    for item in map(as_doc, as_list(request.payload)):
        before = unit.objects.peek(STRATEGIES, str(item.get("id")))
        if before is not None:
            after = {**before, "sortOrder": item.get("sortOrder")}
            unit.objects.put(STRATEGIES, before["id"], after)
            unit.effects.changed("strategy_content", f"strategy:{before['id']}", _bare(before), _bare(after))
    now = [doc["id"] for doc in strategies_of(unit, feature["name"], environment, truth=True)]
    views = {"data": {"strategyIds": now}, "before": {"strategyIds": former}}
    record_event(unit, "strategy-order-changed", feature, environment=environment, **views)
    return Response(200)


def _found(unit: Unit, request: Request) -> Doc:
    return _checked(unit.objects.peek(STRATEGIES, request.params["id"]), request)


def _checked(doc: Doc | None, request: Request) -> Doc:
    there = doc is not None and doc["featureName"] == request.params["feature"]
    if doc is None or not there or doc["environment"] != request.params["environment"]:
        raise ApiError(404, "NotFoundError", f"Could not find strategy with id: {request.params['id']}")
    return doc


def _content(unit: Unit, feature: str, given: Doc) -> Doc:
    if not given.get("name"):
        raise invalid("The `/body/name` property is required. It was not present on the data you sent.")
    if given["name"] not in _TYPES:
        raise invalid(f"Could not find strategy type with name {given['name']}")
    segments = as_list(given.get("segments"))
    for segment in segments:
        if unit.objects.peek(SEGMENTS, str(segment)) is None:
            raise ApiError(404, "NotFoundError", f'No segment exists with ID "{segment}"')
    rollout: Doc = default_strategy(feature)["parameters"] if given["name"] == "flexibleRollout" else {}
    return {
        "name": given["name"],
        "title": given.get("title"),
        "disabled": bool(given.get("disabled")),
        "sortOrder": given.get("sortOrder"),
        "constraints": given.get("constraints") or [],
        "variants": _weighed(as_list(given.get("variants"))),
        "parameters": {**rollout, **as_doc(given.get("parameters"))},
        "segments": segments,
    }


def _weighed(variants: list[Doc]) -> list[Doc]:
    """Variants as they are kept, by name: the ones of variable weight share what the fixed ones leave."""
    if not variants:
        return []
    if len({variant.get("name") for variant in variants}) != len(variants):
        raise invalid("a variant contains a duplicate value")
    variable = [variant for variant in variants if variant.get("weightType") != "fix"]
    if not variable:
        raise invalid('There must be at least one "variable" variant')
    left = _WHOLE_WEIGHT - sum(int(variant["weight"]) for variant in variants if variant not in variable)
    share, rest = divmod(max(left, 0), len(variable))
    shares = {str(variant.get("name")): share + (place < rest) for place, variant in enumerate(variable)}
    kept = [{**variant, "weight": shares.get(str(variant.get("name")), variant.get("weight"))} for variant in variants]
    return sorted(kept, key=lambda variant: str(variant.get("name")).casefold())


def _record_added(unit: Unit, doc: Doc) -> None:
    """A strategy put back with the same content undoes the taking away of somebody else's, under its new id."""
    for taken in unit.effects.find("strategy_removed", _place(doc)):
        former = unit.objects.last(STRATEGIES, taken["reference"])
        if former is not None and _bare(former) == _bare(doc):
            unit.effects.restored("strategy", taken["reference"])
            return
    unit.effects.created("strategy", _place(doc), doc["id"], doc["title"] or "", _bare(doc))


def _switch_off_without_strategies(unit: Unit, feature: Doc, environment: str) -> None:
    left = strategies_of(unit, feature["name"], environment, truth=True)
    if all(strategy["disabled"] for strategy in left):
        set_enabled(unit, feature, environment, enabled=False)


def _place(doc: Doc) -> str:
    return f"feature:{doc['projectId']}/{doc['featureName']}@{doc['environment']}"


def _bare(doc: Doc) -> Doc:
    """The content that can be restored exactly: everything but the id."""
    return {name: doc[name] for name in CONTENT}
