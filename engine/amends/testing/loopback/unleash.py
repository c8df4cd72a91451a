"""Unleash 8 admin API: features, their switches and strategies per environment, archive, events, segments.

Its traps are kept: switching on adds a strategy where no enabled one is; a strategy that is deleted and added again
gets a new id; a full update forgets what it leaves out; archive and revive lose every switch; nothing honours If-Match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from amends.testing.loopback import unleash_strategies
from amends.testing.loopback.system import Action, Route, System, Unit
from amends.testing.loopback.unleash_state import (
    FEATURES,
    SEGMENTS,
    actor_name,
    environment_names,
    environment_view,
    feature_view,
    find_feature,
    patched,
    record_event,
    set_enabled,
    strategies_of,
)
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, iso, new_uuid

_FEATURE = "/api/admin/projects/{project}/features/{feature}"
_ENVIRONMENT = _FEATURE + "/environments/{environment}"
_ARCHIVE = "/api/admin/archive"
_NAMES = {
    "unauthorized": "AuthenticationRequired",
    "forbidden": "NoAccessError",
    "not_found": "NotFoundError",
    "conflict": "NameExistsError",
    "bad_request": "BadDataError",
    "malformed_body": "BadDataError",
    "unprocessable": "BadDataError",
    "rate_limited": "RateLimitError",
    "internal_error": "InternalError",
}


class Unleash(System):
    """The flag server. Tokens stand for named users; client tokens name the environment that they may read."""

    name = "unleash"
    settings: ClassVar[Doc] = {
        "tokens": {"*:*.unleash-admin": "amends-agent"},
        "projects": ["default"],
        "environments": [
            {"name": "development", "type": "development"},
            {"name": "staging", "type": "test"},
            {"name": "production", "type": "production"},
        ],
    }

    def routes(self) -> Sequence[Route]:
        """The used subset of the admin API, and the client API's read."""
        project = "/api/admin/projects/{project}"
        return [
            Route("GET", f"{project}/features", _list_features, reads=True),
            Route("POST", f"{project}/features", _create_feature),
            Route("POST", f"{project}/revive", _revive_many),
            Route("GET", _FEATURE, _get_feature, reads=True),
            Route("PUT", _FEATURE, _replace_feature),
            Route("PATCH", _FEATURE, _patch_feature),
            Route("DELETE", _FEATURE, _archive_feature),
            Route("GET", _ENVIRONMENT, _get_environment, reads=True),
            Route("POST", _ENVIRONMENT + "/on", _switch_on),
            Route("POST", _ENVIRONMENT + "/off", _switch_off),
            Route("GET", _ENVIRONMENT + "/variants", _get_variants, reads=True),
            Route("PUT", _ENVIRONMENT + "/variants", _put_variants),
            *unleash_strategies.routes(_ENVIRONMENT + "/strategies"),
            Route("POST", _ARCHIVE + "/revive/{feature}", _revive_feature),
            Route("DELETE", _ARCHIVE + "/{feature}", _delete_feature),
            Route("GET", "/api/admin/search/events", _search_events, reads=True),
            Route("GET", "/api/admin/segments", _list_segments, reads=True),
            Route("POST", "/api/admin/segments", _create_segment),
            Route("GET", "/api/client/features", _client_features, reads=True),
        ]

    def actions(self) -> Mapping[str, Action]:
        """`seed_flag`."""
        return {"seed_flag": _seed_flag}

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Tokens stand bare in the header."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.path.startswith("/api/client/") and token.split(":")[-1].split(".")[0] in environment_names(unit):
            return "client"
        user = unit.setting("tokens").get(token)
        if user is None:
            raise ApiError(401, "AuthenticationRequired", "You must log in to use Unleash.")
        return str(user)

    def render_error(self, error: ApiError) -> Response:
        """`{"id", "name", "message", "details"}`."""
        body: Doc = {
            "id": new_uuid(),
            "name": _NAMES.get(error.code, error.code),
            "message": error.message,
            "details": [{"message": error.message}],
        }
        return Response(error.status, body, error.headers)


def _create_feature(unit: Unit, request: Request) -> Response:
    project, name = request.params["project"], request.body.get("name")
    if not isinstance(name, str) or not name:
        raise ApiError(400, "BadDataError", "Request validation failed: name is required")
    if project not in unit.setting("projects"):
        raise ApiError(404, "NotFoundError", f"Could not find project with id {project}")
    if unit.objects.peek(FEATURES, name) is not None:
        raise ApiError(409, "NameExistsError", "A feature with this name already exists")
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
        feature_view(unit, doc)
        for doc in unit.objects.all(FEATURES)
        if doc["project"] == project and not doc["archived"]
    ]
    return Response(200, {"version": 2, "features": found})


def _get_feature(unit: Unit, request: Request) -> Response:
    view = feature_view(unit, find_feature(unit, request))
    newest = max((event["id"] for event in unit.objects.truth("events")), default=0)
    return Response(200, view, {"ETag": f'W/"{newest}"'})


def _replace_feature(unit: Unit, request: Request) -> Response:
    """A full update: what the body leaves out goes back to its default."""
    given = {name: request.body.get(name) for name in ("description", "type", "stale", "impressionData")}
    defaults: Doc = {"description": None, "type": "release", "stale": False, "impressionData": False}
    return _update(unit, request, {name: defaults[name] if value is None else value for name, value in given.items()})


def _patch_feature(unit: Unit, request: Request) -> Response:
    """JSON Patch (RFC 6902) on the feature's own fields."""
    return _update(unit, request, patched(find_feature(unit, request), request.payload))


def _update(unit: Unit, request: Request, fields: Doc) -> Response:
    before = find_feature(unit, request)
    after = {**before, **fields, "name": before["name"], "project": before["project"]}
    unit.objects.put(FEATURES, before["name"], after)
    unit.effects.changed("feature_metadata", f"feature:{before['project']}/{before['name']}", before, after)
    record_event(unit, "feature-metadata-updated", after, data=after, before=before)
    return Response(200, after)


def _archive_feature(unit: Unit, request: Request) -> Response:
    doc = find_feature(unit, request)
    unit.objects.put(FEATURES, doc["name"], {**doc, "archived": True, "archivedAt": iso(unit.now())}, undo=True)
    unit.effects.removed("feature", doc["name"], f"feature:{doc['project']}/{doc['name']}")
    record_event(unit, "feature-archived", doc)
    return Response(202)


def _revive_feature(unit: Unit, request: Request) -> Response:
    """Strategies stay as they were; every environment comes back off."""
    name = request.params["feature"]
    doc = unit.objects.peek(FEATURES, name)
    if doc is None or not doc["archived"]:
        raise ApiError(404, "NotFoundError", f"No archived feature flag found with name {name}")
    revived = {key: value for key, value in doc.items() if key != "archivedAt"} | {"archived": False}
    unit.objects.put(FEATURES, name, revived)
    unit.effects.restored("feature", name)
    record_event(unit, "feature-revived", revived)
    for environment in environment_names(unit):
        set_enabled(unit, revived, environment, enabled=False, silent=True)
    return Response(200)


def _revive_many(unit: Unit, request: Request) -> Response:
    for name in request.body.get("features", []):
        _revive_feature(unit, Request("POST", request.path, params={"feature": str(name)}))
    return Response(200)


def _delete_feature(unit: Unit, request: Request) -> Response:
    """Deletes for good; only an archived feature, as in the product."""
    name = request.params["feature"]
    doc = unit.objects.peek(FEATURES, name)
    if doc is not None and doc["archived"]:
        unit.objects.remove(FEATURES, name)
        record_event(unit, "feature-deleted", doc, before=doc)
    return Response(200)


def _get_environment(unit: Unit, request: Request) -> Response:
    doc = find_feature(unit, request)
    return Response(200, environment_view(unit, doc, _environment(unit, request)))


def _switch_on(unit: Unit, request: Request) -> Response:
    """Without an enabled strategy there, the product adds one (or enables those there, when asked to)."""
    doc, environment = find_feature(unit, request), _environment(unit, request)
    there = strategies_of(unit, doc["name"], environment, truth=True)
    if all(strategy["disabled"] for strategy in there):
        if request.query.get("shouldActivateDisabledStrategies") == "true" and there:
            for strategy in there:
                unleash_strategies.write(unit, doc, strategy, {**strategy, "disabled": False})
        else:
            unleash_strategies.add(unit, doc, environment, unleash_strategies.default_strategy(doc["name"]))
    set_enabled(unit, doc, environment, enabled=True)
    return Response(200)


def _switch_off(unit: Unit, request: Request) -> Response:
    set_enabled(unit, find_feature(unit, request), _environment(unit, request), enabled=False)
    return Response(200)


def _get_variants(unit: Unit, request: Request) -> Response:
    find_feature(unit, request)
    return Response(200, {"version": 1, "variants": []})


def _put_variants(_unit: Unit, _request: Request) -> Response:
    raise ApiError(403, "NoAccessError", "You need permission to change variants of this environment")


def _search_events(unit: Unit, request: Request) -> Response:
    """Newest first; `feature=IS:x`, `project=IS:p`, `type=IS:t`, `limit`, `offset`."""
    fields = {"feature": "featureName", "project": "project", "type": "type", "environment": "environment"}
    wanted = {field: request.query[name].removeprefix("IS:") for name, field in fields.items() if name in request.query}
    found = [
        event
        for event in unit.objects.all("events")[::-1]
        if all(event[field] == value for field, value in wanted.items())
    ]
    offset, limit = int(request.query.get("offset", "0")), int(request.query.get("limit", "50"))
    return Response(200, {"events": found[offset : offset + limit], "total": len(found)})


def _list_segments(unit: Unit, _request: Request) -> Response:
    return Response(200, {"segments": unit.objects.all(SEGMENTS)})


def _create_segment(unit: Unit, request: Request) -> Response:
    name = request.body.get("name")
    if any(segment["name"] == name for segment in unit.objects.truth(SEGMENTS)):
        raise ApiError(409, "NameExistsError", "A segment with this name already exists")
    number = unit.rows.next_number("segment")
    segment: Doc = {
        "id": number,
        "name": name,
        "description": request.body.get("description"),
        "constraints": request.body.get("constraints") or [],
        "project": request.body.get("project"),
        "createdBy": actor_name(unit),
        "createdAt": iso(unit.now()),
    }
    unit.objects.put(SEGMENTS, str(number), segment)
    unit.effects.created("segment", f"segment:{name}", str(number))
    return Response(201, segment)


def _client_features(unit: Unit, request: Request) -> Response:
    """What an SDK with a client token sees: archived flags left out, disabled strategies left out."""
    token = request.headers.get("authorization", "")
    environment = token.split(":")[-1].split(".")[0]
    if environment not in environment_names(unit):
        environment = environment_names(unit)[0]
    features: list[Doc] = []
    for doc in unit.objects.all(FEATURES):
        if not doc["archived"]:
            view = environment_view(unit, doc, environment)
            active = [strategy for strategy in view["strategies"] if not strategy["disabled"]]
            features.append({"name": doc["name"], "enabled": view["enabled"], "strategies": active})
    return Response(200, {"version": 2, "features": features})


def _environment(unit: Unit, request: Request) -> str:
    name = request.params["environment"]
    if name not in environment_names(unit):
        raise ApiError(404, "NotFoundError", f"Could not find environment with name {name}")
    return name


def _seed_flag(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"name", "project"?, "description"?, "environments": {env: {"enabled", "strategies": [...]}}}`."""
    project, name = parameters.get("project", "default"), parameters["name"]
    request = Request(
        "POST",
        "",
        payload={"name": name, "description": parameters.get("description")},
        params={"project": project},
    )
    doc = as_doc(_create_feature(unit, request).body)
    environments: dict[str, Any] = parameters.get("environments") or {}
    for environment, wanted in environments.items():
        for strategy in wanted.get("strategies", []):
            unleash_strategies.add(unit, doc, environment, strategy)
        set_enabled(unit, doc, environment, enabled=bool(wanted.get("enabled")))
    return feature_view(unit, doc)
