"""A shop's administration API, after Vendure's: GraphQL, typed refusals in a 200, and no idempotency key anywhere.

Faithful to what the product was seen to do: fulfilling a line again ships it again while pieces are left, refunding
again refunds again up to the payment, cancelling an order gives its stock back and is final.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from amends.testing.loopback import graphql, shop_orders, shop_shipping
from amends.testing.loopback.system import Action, Route, System, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc

Resolver: TypeAlias = Callable[[Unit, Doc], Any]

_QUERIES: dict[str, Resolver] = {
    "order": shop_orders.order,
    "orders": shop_orders.orders,
    "productVariant": shop_shipping.product_variant,
}
_MUTATIONS: dict[str, Resolver] = {
    "addManualPaymentToOrder": shop_orders.add_manual_payment,
    "refundOrder": shop_orders.refund_order,
    "cancelOrder": shop_orders.cancel_order,
    "addFulfillmentToOrder": shop_shipping.add_fulfillment,
    "transitionFulfillmentToState": shop_shipping.transition_fulfillment,
}
_IN_THE_ANSWER = frozenset({"FORBIDDEN", "ENTITY_NOT_FOUND", "INTERNAL_SERVER_ERROR"})  # told with a 200


class Shop(System):
    """One shop, one kind of goods. Orders are placed by control; what is done with them goes over the API."""

    name = "shop"
    settings: ClassVar[Doc] = {"tokens": {"shop-token": "shop"}, "stock": 1000, "price": 1000, "shipping": 500}

    def routes(self) -> Sequence[Route]:
        """One address: what changes nothing is told apart by the document."""
        return [
            Route("POST", "/admin-api", _answer(_QUERIES), reads=True, accepts=_reads),
            Route("POST", "/admin-api", _answer(_MUTATIONS)),
        ]

    def actions(self) -> Mapping[str, Action]:
        """`place_order`, `settle_refund`."""
        return {"place_order": shop_orders.place_order, "settle_refund": shop_orders.settle_refund}

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Bearer tokens of administrators."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        account = unit.setting("tokens").get(token)
        if account is None:
            raise ApiError(200, "FORBIDDEN", "You are not currently authorized to perform this action")
        return str(account)

    def render_error(self, error: ApiError) -> Response:
        """`{"errors": [{message, extensions: {code}}], "data": null}`; what the schema refuses is a 400."""
        status = 200 if error.code in _IN_THE_ANSWER else error.status
        body = {"errors": [{"message": error.message, "extensions": {"code": error.code}}], "data": None}
        return Response(status, body, error.headers)


def _reads(request: Request) -> bool:
    return not graphql.is_mutation(request.payload)


def _answer(resolvers: Mapping[str, Resolver]) -> Callable[[Unit, Request], Response]:
    def handle(unit: Unit, request: Request) -> Response:
        operation = graphql.parse(str(request.body.get("query", "")))
        variables = as_doc(request.body.get("variables"))
        data: Doc = {}
        for wanted in operation.fields:
            resolver = resolvers.get(wanted.name)
            if resolver is None:
                raise ApiError(400, "GRAPHQL_VALIDATION_FAILED", f'Cannot query field "{wanted.name}".')
            found = resolver(unit, graphql.values(wanted.arguments, variables))
            data[wanted.alias] = graphql.project(found, wanted.selected)
        return Response(200, {"data": data})

    return handle
