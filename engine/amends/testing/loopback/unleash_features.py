"""Features of the flag server: made, shown, updated, archived, revived, deleted.

Revived by its project, a live feature stays as it is; revived by the archive, it is switched off everywhere.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.unleash_state import (
    EVENTS,
    FEATURES,
    STRATEGIES,
    environment_names,
    feature_view,
    find_feature,
    invalid,
    is_enabled,
    patched,
    record_event,
    set_enabled,
    strategies_of,
)
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_list, iso

_PROJECT = "/api/admin/projects/{project}"
_FEATURE = _PROJECT + "/features/{feature}"
_ARCHIVE = "/api/admin/archive"
_TYPES = ("experiment", "kill-switch", "release", "operational", "permission", "sunset")
_NAME = re.compile(r"[A-Za-z0-9_.!~*'()-]{1,100}")


def routes() -> list[Route]:
    """The endpoints of features and of the archive."""
    return [
        Route("GET", f"{_PROJECT}/features", _list_features, reads=True),
        Route("POST", f"{_PROJECT}/features", create_feature),
        Route("POST", f"{_PROJECT}/revive", _revive_many),
        Route("GET", _FEATURE, _get_feature, reads=True),
        Route("PUT", _FEATURE, _replace_feature),
        Route("PATCH", _FEATURE, _patch_feature),
        Route("DELETE", _FEATURE, _archive_feature),
        Route("POST", _ARCHIVE + "/revive/{feature}", _revive_feature),
        Route("DELETE", _ARCHIVE + "/{feature}", _delete_feature),
    ]


def create_feature(unit: Unit, request: Request) -> Response:
    """A name is taken once and for all projects, archived ones included."""
    project, name = request.params["project"], request.body.get("name")
    if not isinstance(name, str):
        raise invalid("The `/body/name` property is required. It was not present on the data you sent.")
    if not _NAME.fullmatch(name):
        raise invalid(f'"name" must be URL friendly. You provided "{name}".')
    if request.body.get("type", "release") not in _TYPES:
        raise invalid(f"The `type` property must be equal to one of the allowed values: {', '.join(_TYPES)}")
    if project not in unit.setting("projects"):
        raise ApiError(404, "NotFoundError", f"Active project with id {project} does not exist")
    taken = unit.objects.peek(FEATURES, name)
    if taken is not None:
        which = "An archived flag" if taken["archived"] else "A flag"
        raise ApiError(409, "NameExistsError", f"{which} with that name already exists")
    doc: Doc = {
        "name": name,
        "project": project,
        "type": request.body.get("type", "release"),
        "description": request.body.get("description") or None,
        "stale": False,
        "impressionData": bool(request.body.get("impressionData")),
        "createdAt": iso(unit.now()),
        "archived": False,
    }
    unit.objects.put(FEATURES, name, doc)
    unit.effects.created("feature", f"feature:{project}/{name}", name)
    record_event(unit, "feature-created", doc, data=doc)
    return Response(201, doc)


def _list_features(unit: Unit, request: Request) -> Response:
    project = request.params["project"]
    found = [
        _listed(unit, doc) for doc in unit.objects.all(FEATURES) if doc["project"] == project and not doc["archived"]
    ]
    return Response(200, {"version": 2, "features": found})


def _get_feature(unit: Unit, request: Request) -> Response:
    view = feature_view(unit, find_feature(unit, request))
    newest = max((event["id"] for event in unit.objects.truth(EVENTS)), default=0)
    return Response(200, view, {"ETag": f'W/"{newest}"'})


def _replace_feature(unit: Unit, request: Request) -> Response:
    """A full update: what the body leaves out goes back to its default."""
    given = {name: request.body.get(name) for name in ("description", "type", "stale", "impressionData")}
    defaults: Doc = {"description": None, "type": "release", "stale": False, "impressionData": False}
    return _update(unit, request, {name: defaults[name] if value is None else value for name, value in given.items()})


def _patch_feature(unit: Unit, request: Request) -> Response:
    """JSON Patch (RFC 6902) on the feature's own fields."""
    return _update(unit, request, patched(find_feature(unit, request, archived=True), request.payload))


def _update(unit: Unit, request: Request, fields: Doc) -> Response:
    before = find_feature(unit, request, archived=True)
    after = {**before, **fields, "name": before["name"], "project": before["project"]}
    unit.objects.put(FEATURES, before["name"], after)
    unit.effects.changed("feature_metadata", f"feature:{before['project']}/{before['name']}", before, after)
    record_event(unit, "feature-metadata-updated", after, data=after, before=before)
    return Response(200, after)


def _listed(unit: Unit, doc: Doc) -> Doc:
    """A feature in the list: its environments without their strategies."""
    environments: list[Doc] = []
    for name in environment_names(unit):
        strategies = strategies_of(unit, doc["name"], name)
        environments.append(
            {
                "name": name,
                "enabled": is_enabled(unit, doc["name"], name),
                "hasStrategies": bool(strategies),
                "hasEnabledStrategies": any(not strategy["disabled"] for strategy in strategies),
            }
        )
    return {**doc, "environments": environments}


def _archive_feature(unit: Unit, request: Request) -> Response:
    """Archiving twice is accepted twice, with an event each."""
    doc = unit.objects.peek(FEATURES, request.params["feature"])
    if doc is None or doc["project"] != request.params["project"]:
        raise ApiError(404, "NotFoundError", "No feature flag found")
    archived = {**doc, "archived": True, "archivedAt": iso(unit.now())}
    unit.objects.put(FEATURES, doc["name"], archived, undo=True)
    if not doc["archived"]:
        unit.effects.removed("feature", doc["name"], f"feature:{doc['project']}/{doc['name']}")
    record_event(unit, "feature-archived", doc)
    return Response(HTTPStatus.ACCEPTED)


def _revive_feature(unit: Unit, request: Request) -> Response:
    """By the archive's own address: also of a live one, which loses its switches by it."""
    doc = unit.objects.peek(FEATURES, request.params["feature"])
    if doc is None:
        raise ApiError(404, "NotFoundError", "No feature flag found")
    _revive(unit, doc)
    return Response(200)


def _revive_many(unit: Unit, request: Request) -> Response:
    """Of a project: names that are not archived there are passed over in silence."""
    for name in map(str, as_list(request.body.get("features"))):
        doc = unit.objects.peek(FEATURES, name)
        if doc is not None and doc["archived"] and doc["project"] == request.params["project"]:
            _revive(unit, doc)
    return Response(200)


def _revive(unit: Unit, doc: Doc) -> None:
    """Strategies stay as they were; every environment comes back off."""
    revived = {key: value for key, value in doc.items() if key != "archivedAt"} | {"archived": False}
    unit.objects.put(FEATURES, doc["name"], revived)
    if doc["archived"]:
        unit.effects.restored("feature", doc["name"])
    record_event(unit, "feature-revived", revived)
    for environment in environment_names(unit):
        set_enabled(unit, revived, environment, enabled=False, silent=True)


def _delete_feature(unit: Unit, request: Request) -> Response:
    """Deletes for good; only an archived feature, as in the product."""
    name = request.params["feature"]
    doc = unit.objects.peek(FEATURES, name)
    if doc is not None and doc["archived"]:
        unit.objects.remove(FEATURES, name)
        for environment in environment_names(unit):
            for strategy in strategies_of(unit, name, environment, truth=True):
                unit.objects.remove(STRATEGIES, strategy["id"])
        record_event(unit, "feature-deleted", doc, before=doc)
    return Response(200)
