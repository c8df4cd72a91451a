"""Carrier instructions of an order: one document per order that is set as a whole, versioned, with its history.

Setting replaces; there is no key. `If-Match` is honoured, so a careful client never overwrites an unseen change.
"""

from __future__ import annotations

from amends.testing.loopback.system import Route, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, iso

COLLECTION = "carrier_instructions"
_PATH = "/v1/orders/{order}/carrier-instructions"
_NONE_SET = "no carrier instructions are set for this order"


def routes() -> list[Route]:
    """PUT, GET, DELETE of the instructions, and their history."""
    return [
        Route("PUT", _PATH, _put),
        Route("GET", _PATH, _get, reads=True),
        Route("DELETE", _PATH, _delete),
        Route("GET", _PATH + "/history", _history, reads=True),
    ]


def lock(unit: Unit, parameters: Doc) -> None:
    """Control: `{"order", "locked": true}` makes every change a 409 carrier_locked (the parcel has left)."""
    unit.objects.put("carrier_locks", parameters["order"], {"locked": parameters.get("locked", True)})


def _put(unit: Unit, request: Request) -> Response:
    order = request.params["order"]
    address = as_doc(request.body.get("address"))
    if not address.get("line1"):
        raise ApiError(422, "address_missing", "an address with line1 is required", param="address")
    before = _guard(unit, request, order)
    version = unit.rows.next_number(f"carrier:{order}")
    doc: Doc = {
        "object": "carrier_instructions",
        "order": order,
        "account": unit.origin.account,
        "address": address,
        "service": request.body.get("service", "standard"),
        "notes": request.body.get("notes", ""),
        "metadata": request.body.get("metadata") or {},
        "version": version,
        "updated": iso(unit.now()),
        "updated_by": unit.origin.actor,
    }
    back = before is not None and _content(before) == _content(doc)
    unit.objects.put(COLLECTION, order, doc, undo=back)
    _log(unit, order, version, doc)
    _record(unit, order, before, doc)
    return Response(200, doc, {"ETag": _etag(doc)})


def _get(unit: Unit, request: Request) -> Response:
    doc = unit.objects.get(COLLECTION, request.params["order"])
    if doc is None:
        raise ApiError(404, "resource_missing", _NONE_SET)
    _check_account(unit, doc)
    return Response(200, doc, {"ETag": _etag(doc)})


def _delete(unit: Unit, request: Request) -> Response:
    order = request.params["order"]
    before = _guard(unit, request, order)
    if before is None:
        raise ApiError(404, "resource_missing", _NONE_SET)
    unit.objects.remove(COLLECTION, order)
    _log(unit, order, unit.rows.next_number(f"carrier:{order}"), None)
    _record(unit, order, before, None)
    return Response(204)


def _history(unit: Unit, request: Request) -> Response:
    order = request.params["order"]
    entries = [entry for entry in unit.objects.all("carrier_history") if entry["order"] == order]
    return Response(200, {"object": "list", "data": entries})


def _guard(unit: Unit, request: Request, order: str) -> Doc | None:
    """The instructions before the change, if nothing forbids changing them."""
    if (unit.objects.peek("carrier_locks", order) or {}).get("locked"):
        raise ApiError(409, "carrier_locked", f"the carrier has already collected order {order}")
    before = unit.objects.peek(COLLECTION, order)
    if before is not None:
        _check_account(unit, before)
    expected = request.headers.get("if-match")
    if expected is not None and expected != ("" if before is None else _etag(before)):
        raise ApiError(412, "precondition_failed", "the instructions have changed since they were read")
    return before


def _check_account(unit: Unit, doc: Doc) -> None:
    """An order belongs to one account; to every other it does not exist (another actor may see them all)."""
    if unit.origin.account and doc["account"] not in ("", unit.origin.account):
        raise ApiError(404, "resource_missing", _NONE_SET)


def _record(unit: Unit, order: str, before: Doc | None, after: Doc | None) -> None:
    marker = marker_of(unit, (after or {}).get("metadata"))
    unit.effects.changed(
        "carrier_instructions", f"order:{order}", _content(before), _content(after), marker=marker, reference=order
    )


def _log(unit: Unit, order: str, version: int, doc: Doc | None) -> None:
    entry: Doc = {
        "order": order,
        "version": version,
        "at": iso(unit.now()),
        "by": unit.origin.actor,
        "instructions": _content(doc),
    }
    unit.objects.put("carrier_history", f"{order}:{version}", entry)


def _content(doc: Doc | None) -> Doc | None:
    return None if doc is None else {name: doc[name] for name in ("address", "service", "notes")}


def _etag(doc: Doc) -> str:
    return f'"v{doc["version"]}"'
