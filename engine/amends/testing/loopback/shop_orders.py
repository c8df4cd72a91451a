"""The shop's orders, their payments, refunds and cancellation."""

from __future__ import annotations

from typing import Any

from amends.testing.loopback.system import Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, as_doc, as_list, iso

ORDERS = "orders"
PAYMENTS = "payments"
REFUNDS = "refunds"
FULFILLMENTS = "fulfillments"
HISTORY = "history"

PLACED = ("PaymentAuthorized", "PaymentSettled", "PartiallyShipped", "Shipped")
_PAGE = 100  # the product's own default and limit


def place_order(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"quantity"}` makes an order that waits for its payment; its `order` and `line` are the answer."""
    key, line = unit.new_id("or"), unit.new_id("ol")
    quantity = int(parameters.get("quantity", 1))
    total = quantity * unit.setting("price") + unit.setting("shipping")
    lines = [{"__typename": "OrderLine", "id": line, "quantity": quantity}]
    doc: Doc = {"__typename": "Order", "id": key, "code": key.upper(), "state": "ArrangingPayment", "lines": lines}
    unit.objects.put(ORDERS, key, {**doc, "totalWithTax": total, "createdAt": iso(unit.now())})
    return {"order": key, "line": line, "total": total}


def order(unit: Unit, arguments: Doc) -> Doc | None:
    """`order(id)`: the order as this read shows it."""
    doc = unit.objects.get(ORDERS, str(arguments.get("id")))
    return None if doc is None else shown(unit, doc)


def orders(unit: Unit, arguments: Doc) -> Doc:
    """`orders(options: {skip, take, filter: {transactionId|code: {eq}}})`, newest first."""
    options = as_doc(arguments.get("options"))
    found = [shown(unit, doc) for doc in unit.objects.all(ORDERS)][::-1]
    for name, wanted in as_doc(options.get("filter")).items():
        found = [doc for doc in found if as_doc(wanted).get("eq") in _filterable(doc, name)]
    return _page("OrderList", found, options)


def add_manual_payment(unit: Unit, arguments: Doc) -> Doc:
    """Places the order, which allocates its stock; once."""
    given = as_doc(arguments.get("input"))
    doc = truly(unit, ORDERS, given.get("orderId"), "Order")
    if doc["state"] != "ArrangingPayment":
        return refusal(
            "ManualPaymentStateError", "MANUAL_PAYMENT_STATE_ERROR", "A manual payment may only be added now"
        )
    key = unit.new_id("pa")
    payment: Doc = {
        "__typename": "Payment",
        "id": key,
        "order": doc["id"],
        "method": given.get("method"),
        "transactionId": given.get("transactionId"),
        "metadata": given.get("metadata") or {},
        "amount": doc["totalWithTax"],
        "state": "Settled",
    }
    unit.objects.put(PAYMENTS, key, payment)
    doc = moved(unit, doc, "PaymentSettled")
    marker = marker_of(unit, payment["metadata"], payment["transactionId"])
    unit.effects.created("reservation", f"order:{doc['id']}", doc["id"], marker)
    return shown(unit, doc)


def refund_order(unit: Unit, arguments: Doc) -> Doc:
    """Refunds as often as it is told to, up to what was paid."""
    given = as_doc(arguments.get("input"))
    payment = truly(unit, PAYMENTS, given.get("paymentId"), "Payment")
    if not isinstance(given.get("shipping"), int) or not isinstance(given.get("adjustment"), int):
        raise ApiError(200, "INTERNAL_SERVER_ERROR", 'null value in column "shipping" of relation "refund"')
    amount = given.get("amount")
    done = sum(refund["total"] for refund in _refunds(unit, payment["id"]) if refund["state"] != "Failed")
    if not isinstance(amount, int) or amount <= 0:
        return refusal("NothingToRefundError", "NOTHING_TO_REFUND_ERROR", "Nothing was selected to refund")
    if done + amount > payment["amount"]:
        return refusal("RefundAmountError", "REFUND_AMOUNT_ERROR", "The amount exceeds the refundable amount")
    key = unit.new_id("rf")
    reason = str(given.get("reason") or "")
    refund: Doc = {
        "__typename": "Refund",
        "id": key,
        "paymentId": payment["id"],
        "total": amount,
        "reason": reason,
        "state": "Pending",
    }
    unit.objects.put(REFUNDS, key, refund)
    unit.effects.created("refund", f"payment:{payment['id']}", key, reason.partition(" ")[0], {"amount": amount})
    return refund


def settle_refund(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"id", "state": "Settled" | "Failed"}` as the payment provider decides in the end."""
    refund = truly(unit, REFUNDS, parameters["id"], "Refund")
    refund = {**refund, "state": parameters.get("state", "Settled")}
    if refund["state"] == "Failed":
        unit.effects.removed("refund", refund["id"])
    return unit.objects.put(REFUNDS, refund["id"], refund)


def cancel_order(unit: Unit, arguments: Doc) -> Doc:
    """Cancels every line: the stock is free again, the payment stays as it is, and it is final."""
    given = as_doc(arguments.get("input"))
    doc = truly(unit, ORDERS, given.get("orderId"), "Order")
    if doc["state"] == "Cancelled":
        code = "EMPTY_ORDER_LINE_SELECTION_ERROR"
        return refusal("EmptyOrderLineSelectionError", code, "At least one OrderLine must be specified")
    reason = str(given.get("reason") or "")
    key = unit.new_id("hi")
    entry: Doc = {
        "__typename": "HistoryEntry",
        "id": key,
        "order": doc["id"],
        "type": "ORDER_CANCELLATION",
        "data": {"reason": reason, "shippingCancelled": bool(given.get("cancelShipping"))},
    }
    unit.objects.put(HISTORY, key, entry)
    reserved = unit.effects.find("reservation", f"order:{doc['id']}")
    doc = moved(unit, doc, "Cancelled", undo=True)
    if reserved:
        unit.effects.removed("reservation", doc["id"])
    unit.effects.created("cancellation", f"order:{doc['id']}", doc["id"], reason.partition(" ")[0])
    return shown(unit, doc)


def shown(unit: Unit, doc: Doc) -> Doc:
    """An order with all that hangs on it, as this request is shown it."""
    payments = [
        {**payment, "refunds": [refund for refund in unit.objects.all(REFUNDS) if refund["paymentId"] == payment["id"]]}
        for payment in _of(unit, PAYMENTS, doc)
    ]
    history = _of(unit, HISTORY, doc)
    listed = {"__typename": "HistoryEntryList", "totalItems": len(history), "items": history}
    return {**doc, "payments": payments, "fulfillments": _of(unit, FULFILLMENTS, doc), "history": listed}


def moved(unit: Unit, doc: Doc, state: str, *, undo: bool = False) -> Doc:
    """The order in another state, stored."""
    return unit.objects.put(ORDERS, doc["id"], {**doc, "state": state}, undo=undo)


def truly(unit: Unit, collection: str, key: Any, kind: str) -> Doc:
    """The thing as it is. Raises `ApiError` (ENTITY_NOT_FOUND), which the product tells with a 200."""
    doc = unit.objects.peek(collection, str(key))
    if doc is None:
        raise ApiError(200, "ENTITY_NOT_FOUND", f'No {kind} with the id "{key}" could be found')
    return doc


def refusal(kind: str, code: str, message: str, **more: Any) -> Doc:
    """An `ErrorResult`: a refusal that is part of the answer."""
    return {"__typename": kind, "errorCode": code, "message": message, **more}


def _of(unit: Unit, collection: str, doc: Doc) -> list[Doc]:
    return [item for item in unit.objects.all(collection) if item["order"] == doc["id"]]


def _refunds(unit: Unit, payment: str) -> list[Doc]:
    return [refund for refund in unit.objects.truth(REFUNDS) if refund["paymentId"] == payment]


def _filterable(doc: Doc, name: str) -> list[Any]:
    if name == "transactionId":
        return [payment["transactionId"] for payment in as_list(doc["payments"])]
    return [doc.get(name)]


def _page(kind: str, found: list[Doc], options: Doc) -> Doc:
    skip, take = int(options.get("skip") or 0), min(int(options.get("take") or _PAGE), _PAGE)
    return {"__typename": kind, "totalItems": len(found), "items": found[skip : skip + take]}
