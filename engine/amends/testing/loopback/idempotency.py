"""Idempotency keys after Stripe: same key and same request, same answer; same key and another request, an error.

A refusal that the business logic gave is stored and replayed; one that came before it (validation, credentials, rate,
a concurrent use of the key) is not, so the key stays usable.
"""

from __future__ import annotations

import json
from dataclasses import replace

from amends.testing.loopback.system import Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response

COLLECTION = "idempotency_keys"
NOT_STORED = frozenset({400, 401, 403, 404, 422, 429})


def key_of(unit: Unit, request: Request) -> str | None:
    """The key that counts for this request, or None."""
    key = request.headers.get("idempotency-key")
    return key if key and request.method == "POST" and unit.setting("idempotency") else None


def replay(unit: Unit, request: Request) -> Response | None:
    """The stored answer for the key, marked as replayed, or None when the key is new or too old.

    Raises:
        ApiError: the key was used for another request.
    """
    stored = _stored(unit, request)
    if stored is None or unit.now() - stored["ts"] > unit.setting("key_ttl_s"):
        return None
    if stored["request"] != _identity(request):
        raise ApiError(400, "idempotency_error", "this key was used with other parameters", type="idempotency_error")
    headers = {**stored["headers"], "Idempotent-Replayed": "true"}
    return replace(Response(stored["status"], stored["body"]), headers=headers)


def remember(unit: Unit, request: Request, response: Response, *, forced: bool = False) -> None:
    """Store the answer under the request's key, if it has one and the answer is of the kind that is stored."""
    key = key_of(unit, request)
    if key is None or (response.status in NOT_STORED and not forced):
        return
    doc: Doc = {
        "ts": unit.now(),
        "request": _identity(request),
        "status": response.status,
        "body": response.body,
        "headers": dict(response.headers),
    }
    unit.objects.put(COLLECTION, _place(unit, key), doc)


def _stored(unit: Unit, request: Request) -> Doc | None:
    key = key_of(unit, request)
    return None if key is None else unit.objects.peek(COLLECTION, _place(unit, key))


def _place(unit: Unit, key: str) -> str:
    return f"{unit.origin.account}:{key}"


def _identity(request: Request) -> str:
    return json.dumps([request.method, request.path, request.payload], sort_keys=True)
