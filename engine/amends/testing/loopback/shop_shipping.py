"""The shop's fulfilments, and the stock that they take."""

from __future__ import annotations

from typing import Any

from amends.testing.loopback.shop_orders import FULFILLMENTS, ORDERS, PLACED, moved, refusal, truly
from amends.testing.loopback.system import Unit
from amends.testing.loopback.wire import ApiError, Doc, as_doc, as_list

_NEXT = {
    "Pending": ("Shipped", "Delivered", "Cancelled"),
    "Shipped": ("Delivered", "Cancelled"),
    "Delivered": ("Cancelled",),
}
_HANDLER = "manual-fulfillment"


def add_fulfillment(unit: Unit, arguments: Doc) -> Doc:
    """Ships pieces of an order that are left; asked again, it ships again."""
    given = as_doc(arguments.get("input"))
    handler = as_doc(given.get("handler"))
    if handler.get("code") != _HANDLER:
        return refusal("InvalidFulfillmentHandlerError", "INVALID_FULFILLMENT_HANDLER_ERROR", "No such handler")
    wanted = {str(as_doc(line)["orderLineId"]): int(as_doc(line)["quantity"]) for line in as_list(given.get("lines"))}
    if not wanted or not all(quantity > 0 for quantity in wanted.values()):
        code = "EMPTY_ORDER_LINE_SELECTION_ERROR"
        return refusal("EmptyOrderLineSelectionError", code, "At least one OrderLine must be specified")
    doc = _order_of(unit, wanted)
    ordered = {line["id"]: line["quantity"] for line in doc["lines"]}
    shipped = _shipped(unit, doc["id"])
    if doc["state"] not in PLACED or any(shipped.get(line, 0) + n > ordered[line] for line, n in wanted.items()):
        code = "ITEMS_ALREADY_FULFILLED_ERROR"
        return refusal("ItemsAlreadyFulfilledError", code, "One or more OrderItems are already part of a Fulfillment")
    said = {as_doc(item)["name"]: as_doc(item)["value"] for item in as_list(handler.get("arguments"))}
    key = unit.new_id("fu")
    lines = [{"__typename": "FulfillmentLine", "orderLineId": line, "quantity": n} for line, n in wanted.items()]
    fulfillment: Doc = {
        "__typename": "Fulfillment",
        "id": key,
        "order": doc["id"],
        "state": "Pending",
        "method": said.get("method", ""),
        "trackingCode": said.get("trackingCode", ""),
        "lines": lines,
    }
    unit.objects.put(FULFILLMENTS, key, fulfillment)
    unit.effects.created("fulfillment", f"order:{doc['id']}", key, fulfillment["trackingCode"])
    return fulfillment


def transition_fulfillment(unit: Unit, arguments: Doc) -> Doc:
    """Ships, delivers or cancels; cancelled pieces are back in stock."""
    doc = truly(unit, FULFILLMENTS, arguments.get("id"), "Fulfillment")
    state = str(arguments.get("state"))
    if state not in _NEXT.get(doc["state"], ()):
        code = "FULFILLMENT_STATE_TRANSITION_ERROR"
        why = f'Cannot transition Fulfillment from "{doc["state"]}" to "{state}"'
        steps = {"transitionError": why, "fromState": doc["state"], "toState": state}
        return refusal("FulfillmentStateTransitionError", code, f"errorResult.{code}", **steps)
    doc = unit.objects.put(FULFILLMENTS, doc["id"], {**doc, "state": state}, undo=state == "Cancelled")
    if state == "Cancelled":
        unit.effects.removed("fulfillment", doc["id"])
    if state == "Shipped":
        _ship(unit, truly(unit, ORDERS, doc["order"], "Order"))
    return doc


def product_variant(unit: Unit, arguments: Doc) -> Doc:
    """The goods with their stock: what was shipped is gone from it, what is ordered and not shipped is allocated."""
    allocated = shipped = 0
    for doc in unit.objects.truth(ORDERS):
        sent = sum(_shipped(unit, doc["id"]).values()) if doc["state"] in PLACED else 0
        ordered = sum(line["quantity"] for line in doc["lines"]) if doc["state"] in PLACED else 0
        allocated, shipped = allocated + ordered - sent, shipped + sent
    level = {"__typename": "StockLevel", "stockOnHand": unit.setting("stock") - shipped, "stockAllocated": allocated}
    return {"__typename": "ProductVariant", "id": arguments.get("id"), "stockLevels": [level]}


def _order_of(unit: Unit, wanted: dict[str, int]) -> Doc:
    for doc in unit.objects.truth(ORDERS):
        if set(wanted) <= {line["id"] for line in doc["lines"]}:
            return doc
    raise ApiError(200, "ENTITY_NOT_FOUND", "No OrderLine with this id could be found")


def _shipped(unit: Unit, order: str) -> dict[str, Any]:
    """Pieces in fulfilments that are not cancelled, by order line."""
    found: dict[str, Any] = {}
    for doc in unit.objects.truth(FULFILLMENTS):
        if doc["order"] == order and doc["state"] != "Cancelled":
            for line in doc["lines"]:
                found[line["orderLineId"]] = found.get(line["orderLineId"], 0) + line["quantity"]
    return found


def _ship(unit: Unit, doc: Doc) -> None:
    sent = [f for f in unit.objects.truth(FULFILLMENTS) if f["order"] == doc["id"] and f["state"] == "Shipped"]
    pieces = sum(line["quantity"] for fulfillment in sent for line in fulfillment["lines"])
    whole = pieces >= sum(line["quantity"] for line in doc["lines"])
    moved(unit, doc, "Shipped" if whole else "PartiallyShipped")
