"""Exports: accepted with 202 and an operation to poll; done, failed or forgotten some time later.

The effect exists from the moment the operation is done, whether or not anybody polled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amends.testing.loopback.system import Route, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, iso

SETTINGS: Doc = {"export_seconds": 0.2, "export_end": "done", "absolute_locations": False}


def routes(list_objects: Callable[[str, Unit, Request], Response]) -> list[Route]:
    """Create, list, read, delete exports; read operations."""
    return [
        Route("POST", "/v1/exports", _create),
        Route("GET", "/v1/exports", partial(list_objects, "exports"), reads=True),
        Route("GET", "/v1/exports/{id}", _get, reads=True),
        Route("DELETE", "/v1/exports/{id}", _delete),
        Route("GET", "/v1/operations/{id}", _operation, reads=True),
    ]


def tick(unit: Unit) -> None:
    """End every operation whose time has come, the way the setting `export_end` says."""
    for operation in unit.objects.truth("operations"):
        if operation["status"] == "running" and unit.now() >= operation["ready_ts"]:
            _end(unit, operation, unit.setting("export_end"))


def set_operation(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"id", "status": "done" | "failed" | "expired"}` ends an operation now."""
    operation = unit.objects.peek("operations", parameters["id"])
    if operation is None:
        raise ApiError(404, "resource_missing", f"no such operation: {parameters['id']}")
    return _end(unit, operation, parameters["status"])


def _create(unit: Unit, request: Request) -> Response:
    if not request.body.get("name"):
        raise ApiError(422, "parameter_missing", "missing required parameter: name", param="name")
    key = unit.new_id("op_")
    operation: Doc = {
        "id": key,
        "object": "operation",
        "account": unit.origin.account,
        "status": "running",
        "url": f"/v1/operations/{key}",
        "ready_ts": unit.now() + unit.setting("export_seconds"),
        "request": {"name": request.body["name"], "metadata": request.body.get("metadata") or {}},
        "export": None,
        "error": None,
    }
    unit.objects.put("operations", key, operation)
    base = unit.base if unit.setting("absolute_locations") else ""
    headers = {"Location": base + operation["url"], "Retry-After": "1"}
    return Response(202, {"operation": _public(operation)}, headers)


def _operation(unit: Unit, request: Request) -> Response:
    operation = unit.objects.get("operations", request.params["id"])
    if operation is None or operation["status"] == "expired" or not _sees(unit, operation):
        raise ApiError(404, "operation_expired", f"no such operation: {request.params['id']}")
    headers = {"Retry-After": "1"} if operation["status"] == "running" else {}
    return Response(200, _public(operation), headers)


def _get(unit: Unit, request: Request) -> Response:
    return Response(200, _found(unit, request))


def _delete(unit: Unit, request: Request) -> Response:
    key = request.params["id"]
    _found(unit, request)
    unit.objects.remove("exports", key)
    unit.effects.removed("export", key)
    return Response(204)


def _end(unit: Unit, operation: Doc, status: str) -> Doc:
    ended = {**operation, "status": status}
    if status == "done":
        ended["export"] = _make(unit, operation)
    elif status == "failed":
        ended["error"] = {"code": "export_failed", "message": "the export could not be made"}
    unit.objects.put("operations", operation["id"], ended)
    return _public(ended)


def _make(unit: Unit, operation: Doc) -> str:
    key = unit.new_id("exp_")
    wanted = operation["request"]
    export: Doc = {
        "id": key,
        "object": "export",
        "account": operation["account"],
        "status": "ready",
        "name": wanted["name"],
        "metadata": wanted["metadata"],
        "created": iso(unit.now()),
    }
    unit.objects.put("exports", key, export)
    unit.effects.created("export", f"export:{wanted['name']}", key, marker_of(unit, wanted["metadata"]))
    return key


def _found(unit: Unit, request: Request) -> Doc:
    doc = unit.objects.get("exports", request.params["id"])
    if doc is None or not _sees(unit, doc):
        raise ApiError(404, "resource_missing", f"no such object: {request.params['id']}")
    return doc


def _sees(unit: Unit, doc: Doc) -> bool:
    return not unit.origin.account or doc["account"] == unit.origin.account


def _public(operation: Doc) -> Doc:
    return {name: operation[name] for name in ("id", "object", "status", "url", "export", "error")}
