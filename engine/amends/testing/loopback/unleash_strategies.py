"""Strategies of a feature in one environment: added, replaced, patched, ordered, deleted.

Adding twice makes two; deleting the last enabled one switches the environment off.
"""

from __future__ import annotations

from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.unleash_state import (
    SEGMENTS,
    STRATEGIES,
    find_feature,
    patched,
    record_event,
    set_enabled,
    strategies_of,
)
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, as_list, new_uuid

_CONTENT = ("name", "title", "disabled", "sortOrder", "constraints", "variants", "parameters", "segments")


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
    content = _content(unit, given)
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
    record_event(unit, "feature-strategy-add", feature, environment=environment, data=doc)
    return doc


def write(unit: Unit, feature: Doc, before: Doc, after: Doc) -> Doc:
    """Replace a strategy's content."""
    unit.objects.put(STRATEGIES, before["id"], after)
    resource = f"strategy:{before['id']}"
    unit.effects.changed("strategy_content", resource, _bare(before), _bare(after), marker=after["title"] or "")
    environment = before["environment"]
    record_event(unit, "feature-strategy-update", feature, environment=environment, data=after, before=before)
    _switch_off_without_strategies(unit, feature, environment)
    return after


def _list(unit: Unit, request: Request) -> Response:
    feature = find_feature(unit, request)
    return Response(200, strategies_of(unit, feature["name"], request.params["environment"]))


def _get(unit: Unit, request: Request) -> Response:
    find_feature(unit, request)
    doc = unit.objects.get(STRATEGIES, request.params["id"])
    return Response(200, _checked(doc, request))


def _add(unit: Unit, request: Request) -> Response:
    return Response(200, add(unit, find_feature(unit, request), request.params["environment"], request.body))


def _replace(unit: Unit, request: Request) -> Response:
    feature, before = find_feature(unit, request), _found(unit, request)
    given = {"name": before["name"], "sortOrder": before["sortOrder"], **request.body}
    after = {**before, **_content(unit, given)}
    return Response(200, write(unit, feature, before, after))


def _patch(unit: Unit, request: Request) -> Response:
    feature, before = find_feature(unit, request), _found(unit, request)
    after = {**before, **_content(unit, patched(before, request.payload))}
    return Response(200, write(unit, feature, before, after))


def _delete(unit: Unit, request: Request) -> Response:
    feature, doc = find_feature(unit, request), _found(unit, request)
    unit.objects.remove(STRATEGIES, doc["id"])
    unit.effects.removed("strategy", doc["id"], _place(doc))
    record_event(unit, "feature-strategy-remove", feature, environment=doc["environment"], before=doc)
    _switch_off_without_strategies(unit, feature, doc["environment"])
    return Response(200)


def _sort(unit: Unit, request: Request) -> Response:
    feature = find_feature(unit, request)
    for item in map(as_doc, as_list(request.payload)):
        before = unit.objects.peek(STRATEGIES, str(item.get("id")))
        if before is not None:
            write(unit, feature, before, {**before, "sortOrder": item.get("sortOrder")})
    return Response(200)


def _found(unit: Unit, request: Request) -> Doc:
    return _checked(unit.objects.peek(STRATEGIES, request.params["id"]), request)


def _checked(doc: Doc | None, request: Request) -> Doc:
    there = doc is not None and doc["featureName"] == request.params["feature"]
    if doc is None or not there or doc["environment"] != request.params["environment"]:
        raise ApiError(404, "NotFoundError", f"Could not find strategy with id {request.params['id']}")
    return doc


def _content(unit: Unit, given: Doc) -> Doc:
    if not given.get("name"):
        raise ApiError(400, "BadDataError", "Request validation failed: name is required")
    segments = as_list(given.get("segments"))
    for segment in segments:
        if unit.objects.peek(SEGMENTS, str(segment)) is None:
            raise ApiError(400, "BadDataError", f"There is no segment with id {segment}")
    return {
        "name": given["name"],
        "title": given.get("title"),
        "disabled": bool(given.get("disabled")),
        "sortOrder": given.get("sortOrder"),
        "constraints": given.get("constraints") or [],
        "variants": given.get("variants") or [],
        "parameters": given.get("parameters") or {},
        "segments": segments,
    }


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
    return {name: doc[name] for name in _CONTENT}
