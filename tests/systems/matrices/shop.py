"""The fault matrix of the ready shop contracts, over any shop that speaks Vendure's admin API.

A subclass says how its shop is started, as a `Shop`. Effects are counted, and other people act, by the shop's own
API without the adapter.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Denial, Exchange, Subject
from systems.matrices.people import MAYA, SECRETS

QUANTITY = 3  # pieces of an order
AMOUNT = 500  # what is given back of its payment
GONE = frozenset({"Cancelled", "Failed"})
PLACED = frozenset({"PaymentAuthorized", "PaymentSettled", "PartiallyShipped", "Shipped"})
REFUSED: Json = {
    "message": "You are not currently authorized to perform this action",
    "extensions": {"code": "FORBIDDEN"},
}
NO = Denial(status=200, body={"errors": [REFUSED], "data": None})
_ORDER = """query ($order: ID!) { order(id: $order) { state payments { id amount refunds { total state } }
  fulfillments { id state } history(options: {filter: {type: {eq: "ORDER_CANCELLATION"}}}) { items { type } } } }"""


class Shop(ABC):
    """A running shop, as its own people see it: `url` is the admin API for the bearer `token`; `person` is the table of
    the adapter through which Maya is told.
    """

    def __init__(self, url: str, token: str, person: Mapping[str, Json]) -> None:
        self.url = url
        self.token = token
        self.person = person

    @abstractmethod
    def ask(self, query: str, **variables: Json) -> Any:
        """The `data` of a query or mutation; raises if it answers errors."""

    @abstractmethod
    def placed(self) -> tuple[str, str]:
        """An order of `QUANTITY` pieces that waits for its payment, and its line."""

    def order(self, key: Json) -> Any:
        """An order as it is now."""
        return self.ask(_ORDER, order=key)["order"]

    def paid(self) -> tuple[str, str]:
        """An order that somebody paid, and its line."""
        order, line = self.placed()
        given: dict[str, Json] = {"orderId": order, "method": "invoice", "transactionId": "theirs", "metadata": {}}
        change = "($input: ManualPaymentInput!) { addManualPaymentToOrder(input: $input) { __typename } }"
        self.ask(f"mutation {change}", input=given)
        return order, line

    def cancel(self, order: Json) -> None:
        """Somebody cancels an order."""
        given: dict[str, Json] = {"orderId": order, "reason": "theirs", "cancelShipping": True}
        self.ask("mutation ($input: CancelOrderInput!) { cancelOrder(input: $input) { __typename } }", input=given)

    def fulfil(self, order: Json, line: Json) -> str:
        """Somebody hands one piece to the warehouse; the fulfilment's id."""
        says: list[Json] = [{"name": "trackingCode", "value": "theirs"}, {"name": "method", "value": "parcel"}]
        given: dict[str, Json] = {
            "lines": [{"orderLineId": line, "quantity": 1}],
            "handler": {"code": "manual-fulfillment", "arguments": says},
        }
        change = "addFulfillmentToOrder(input: $input) { __typename ... on Fulfillment { id } }"
        made = self.ask(f"mutation ($input: FulfillOrderInput!) {{ {change} }}", input=given)
        return str(made["addFulfillmentToOrder"]["id"])

    def move(self, fulfilment: Json, state: str) -> None:
        """Somebody ships or cancels a fulfilment."""
        step = "transitionFulfillmentToState(id: $id, state: $state) { __typename }"
        self.ask(f"mutation ($id: ID!, $state: String!) {{ {step} }}", id=fulfilment, state=state)


class ShopMatrix(AdapterMatrix[Shop]):
    """`package:shop` on a shop."""

    def upstream(self, system: Shop) -> str:
        parts = urlsplit(system.url)
        return f"{parts.scheme}://{parts.netloc}"

    def adapters(self, system: Shop, address: str) -> Mapping[str, Mapping[str, Json]]:
        told: dict[str, Json] = {"desk": MAYA, "finance": MAYA}
        options: dict[str, Json] = {"contracts": "package:shop", "token": "env:SHOP_TOKEN", "values": told}
        base_url = f"{address}{urlsplit(system.url).path}"
        return {"shop": {"plugin": "http", "base_url": base_url, **options}, "slack": system.person}

    def secrets(self, system: Shop) -> Mapping[str, str]:
        return {"SHOP_TOKEN": system.token, **SECRETS}

    def writes(self, exchange: Exchange) -> bool:
        """Everything is a POST: the document says whether it is a mutation."""
        return str(json.loads(exchange.body)["query"]).lstrip().startswith("mutation")


# --- stock -----------------------------------------------------------------------------------------------------------


def _reserve_args(shop: Shop, word: str) -> Args:
    return {"order": shop.placed()[0], "method": word}


def _ship_one(shop: Shop, args: Args) -> None:
    """Somebody sends a piece of the order."""
    lines = shop.ask("query ($order: ID!) { order(id: $order) { lines { id } } }", order=args["order"])
    shop.move(shop.fulfil(args["order"], lines["order"]["lines"][0]["id"]), "Shipped")


RESERVE_STOCK: Subject[Shop] = Subject(
    capability="shop.reserve_stock",
    args=_reserve_args,
    effects=lambda shop, args: int(shop.order(args["order"])["state"] in PLACED),
    other=lambda args: {**args, "method": "cash"},
    taken_away=lambda shop, args: shop.cancel(args["order"]),
    edited=_ship_one,
    kept=lambda shop, args: shop.order(args["order"])["state"] == "PartiallyShipped",
    denial=NO,
)


# --- fulfilments -----------------------------------------------------------------------------------------------------


def _fulfil_args(shop: Shop, _: str) -> Args:
    order, line = shop.paid()
    return {"order": order, "line": line, "quantity": 1}


def _fulfilments(shop: Shop, args: Args) -> list[Any]:
    return [one for one in shop.order(args["order"])["fulfillments"] or () if one["state"] not in GONE]


def _move_all(state: str) -> Any:
    def move(shop: Shop, args: Args) -> None:
        for one in _fulfilments(shop, args):
            shop.move(one["id"], state)

    return move


FULFIL: Subject[Shop] = Subject(
    capability="shop.fulfil",
    args=_fulfil_args,
    effects=lambda shop, args: len(_fulfilments(shop, args)),
    other=lambda args: {**args, "quantity": 2},
    taken_away=_move_all("Cancelled"),
    edited=_move_all("Shipped"),
    kept=lambda shop, args: [one["state"] for one in _fulfilments(shop, args)] == ["Shipped"],
    denial=NO,
)


# --- refunds and cancellations ---------------------------------------------------------------------------------------


def _refund_args(shop: Shop, _: str) -> Args:
    order, _line = shop.paid()
    [payment] = shop.order(order)["payments"]
    return {"order": order, "payment": payment["id"], "amount": AMOUNT, "reason": "arrived broken"}


def _refunds(shop: Shop, args: Args) -> int:
    found = [refund for payment in shop.order(args["order"])["payments"] for refund in payment["refunds"]]
    return sum(refund["total"] == args["amount"] and refund["state"] not in GONE for refund in found)


def _rest_args(shop: Shop, word: str) -> Args:
    """All that was paid: the second of two deliveries finds nothing to give back."""
    args = _refund_args(shop, word)
    [payment] = shop.order(args["order"])["payments"]
    return {**args, "amount": payment["amount"]}


def _a_part(args: Args) -> Args:
    return {**args, "amount": AMOUNT}


REFUND: Subject[Shop] = Subject(
    capability="shop.refund",
    args=_refund_args,
    effects=_refunds,
    other=lambda args: {**args, "amount": AMOUNT + 1},
    text="reason",
    denial=NO,
)


REFUND_ALL = replace(REFUND, args=_rest_args, other=_a_part)


def _cancel_args(shop: Shop, _: str) -> Args:
    return {"order": shop.paid()[0], "reason": "out of season"}


def _cancellations(shop: Shop, args: Args) -> int:
    return sum(entry["type"] == "ORDER_CANCELLATION" for entry in shop.order(args["order"])["history"]["items"])


CANCEL_ORDER: Subject[Shop] = Subject(
    capability="shop.cancel_order",
    args=_cancel_args,
    effects=_cancellations,
    other=lambda args: {**args, "reason": "another one"},
    text="reason",
    denial=NO,
)
