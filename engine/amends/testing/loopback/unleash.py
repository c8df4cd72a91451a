"""Unleash 8 admin API: features, their switches and strategies per environment, archive, events, segments.

Its traps are kept: switching on adds a strategy where no enabled one is; a strategy that is deleted and added again
gets a new id; a full update forgets what it leaves out; archive and revive lose every switch; nothing honours If-Match;
an environment's own view leaves segments out and shows archived features; variants belong to strategies only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from amends.testing.loopback import unleash_features, unleash_strategies
from amends.testing.loopback.system import Action, Route, System, Unit
from amends.testing.loopback.unleash_state import (
    FEATURES,
    SEGMENTS,
    actor_name,
    environment_names,
    environment_view,
    feature_view,
    find_feature,
    invalid,
    is_enabled,
    set_enabled,
    strategies_of,
    strategy_view,
)
from amends.testing.loopback.wire import HTML_TYPE, ApiError, Doc, Request, Response, as_doc, iso

_FEATURE = "/api/admin/projects/{project}/features/{feature}"
_ENVIRONMENT = _FEATURE + "/environments/{environment}"
_NO_ENDPOINT = "no such endpoint "  # how every loopback system hears of it
_SYNTAX_PAGE = "<html><head><title>SyntaxError: the body is not valid JSON</title></head></html>"
_NAMES = {
    "unauthorized": "AuthenticationRequired",
    "forbidden": "NoAccessError",
    "not_found": "NotFoundError",
    "conflict": "NameExistsError",
    "bad_request": "BadDataError",
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
        return [
            *unleash_features.routes(),
            Route("GET", "/api/admin/environments", _list_environments, reads=True),
            Route("GET", "/api/admin/projects/{project}/overview", _overview, reads=True),
            Route("GET", _ENVIRONMENT, _get_environment, reads=True),
            Route("POST", _ENVIRONMENT + "/on", _switch_on),
            Route("POST", _ENVIRONMENT + "/off", _switch_off),
            Route("GET", _ENVIRONMENT + "/variants", _get_variants, reads=True),
            Route("PUT", _ENVIRONMENT + "/variants", _refuse_variants),
            Route("PATCH", _ENVIRONMENT + "/variants", _refuse_variants),
            *unleash_strategies.routes(_ENVIRONMENT + "/strategies"),
            Route("GET", "/api/admin/search/events", _search_events, reads=True),
            Route("GET", "/api/admin/segments", _list_segments, reads=True),
            Route("POST", "/api/admin/segments", _create_segment),
            Route("GET", "/api/admin/segments/{segment}", _get_segment, reads=True),
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
            about = "" if token else " Your request had no authorization header, so we could not authorize you."
            name = "UnauthorizedError" if token else "AuthenticationRequired"
            raise ApiError(401, name, f"You must log in to use Unleash.{about}")
        return str(user)

    def render_error(self, error: ApiError) -> Response:
        """`{"name", "message", "details"}`; a body that is no JSON gets a page."""
        if error.code == "malformed_body":
            return Response(400, _SYNTAX_PAGE, error.headers, HTML_TYPE)
        message = error.message
        if message.startswith(_NO_ENDPOINT):
            message = f"The path you were looking for ({message.rpartition(' ')[2]}) is not available."
        body: Doc = {
            "name": _NAMES.get(error.code, error.code),
            "message": message,
            "details": [{"message": message}],
        }
        return Response(error.status, body, error.headers)


def _list_environments(unit: Unit, _request: Request) -> Response:
    return Response(200, {"version": 1, "environments": unit.setting("environments")})


def _overview(unit: Unit, request: Request) -> Response:
    if request.params["project"] not in unit.setting("projects"):
        raise ApiError(404, "NotFoundError", f"Could not find project with id {request.params['project']}")
    environments = [{"environment": name} for name in environment_names(unit)]
    return Response(200, {"version": 1, "name": request.params["project"], "environments": environments})


def _get_environment(unit: Unit, request: Request) -> Response:
    doc, environment = find_feature(unit, request, archived=True), request.params["environment"]
    if environment not in environment_names(unit):
        raise ApiError(404, "NotFoundError", f"Could not find {doc['name']} in {environment}")
    return Response(200, environment_view(unit, doc, environment))


def _switch_on(unit: Unit, request: Request) -> Response:
    """Without an enabled strategy there, the product adds one (or enables those there, when asked to)."""
    doc, environment = _switchable(unit, request)
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
    doc, environment = _switchable(unit, request)
    set_enabled(unit, doc, environment, enabled=False)
    return Response(200)


def _switchable(unit: Unit, request: Request) -> tuple[Doc, str]:
    """The feature and environment of a switch; of all requests only this one looks whether it is archived."""
    doc, environment = find_feature(unit, request, archived=True), request.params["environment"]
    if doc["archived"]:
        raise ApiError(400, "ArchivedFeatureError", "Cannot perform this operation on archived features")
    if environment not in environment_names(unit):
        message = f"Could not find environment {environment} for feature: {doc['name']}"
        raise ApiError(404, "NotFoundError", message)
    return doc, environment


def _get_variants(unit: Unit, request: Request) -> Response:
    find_feature(unit, request)
    return Response(200, {"version": 1, "variants": []})


def _refuse_variants(_unit: Unit, request: Request) -> Response:
    about = f"Environment variants deprecated for feature: {request.params['feature']}. Use strategy variants instead."
    raise ApiError(403, "InvalidOperationError", about)


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
    if not isinstance(name, str):
        raise invalid("The `/body/name` property is required. It was not present on the data you sent.")
    if any(segment["name"] == name for segment in unit.objects.truth(SEGMENTS)):
        raise ApiError(409, "NameExistsError", "Segment name already exists")
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


def _get_segment(unit: Unit, request: Request) -> Response:
    found = unit.objects.get(SEGMENTS, request.params["segment"])
    if found is None:
        raise ApiError(404, "NotFoundError", f'No segment exists with ID "{request.params["segment"]}"')
    return Response(200, found)


def _client_features(unit: Unit, request: Request) -> Response:
    """What an SDK with a client token sees: archived flags left out, disabled strategies left out."""
    token = request.headers.get("authorization", "")
    environment = token.split(":")[-1].split(".")[0]
    if environment not in environment_names(unit):
        environment = environment_names(unit)[0]
    features: list[Doc] = []
    for doc in unit.objects.all(FEATURES):
        if not doc["archived"]:
            strategies = strategies_of(unit, doc["name"], environment)
            active = [strategy_view(strategy) for strategy in strategies if not strategy["disabled"]]
            enabled = is_enabled(unit, doc["name"], environment)
            features.append({"name": doc["name"], "enabled": enabled, "strategies": active})
    return Response(200, {"version": 2, "features": features})


def _seed_flag(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"name", "project"?, "description"?, "environments": {env: {"enabled", "strategies": [...]}}}`."""
    project, name = parameters.get("project", "default"), parameters["name"]
    request = Request(
        "POST",
        "",
        payload={"name": name, "description": parameters.get("description")},
        params={"project": project},
    )
    doc = as_doc(unleash_features.create_feature(unit, request).body)
    environments: dict[str, Any] = parameters.get("environments") or {}
    for environment, wanted in environments.items():
        for strategy in wanted.get("strategies", []):
            unleash_strategies.add(unit, doc, environment, strategy)
        set_enabled(unit, doc, environment, enabled=bool(wanted.get("enabled")))
    return feature_view(unit, doc)
