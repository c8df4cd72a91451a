"""The shop contracts on a real Vendure: the very tests that hold on the loopback shop, and the fault matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from amends.core.canonical import Json
from amends.testing.conformance import Args
from systems.matrices.people import maya_is_told
from systems.matrices.shop import (
    CANCEL_ORDER,
    FULFIL,
    QUANTITY,
    REFUND_ALL,
    RESERVE_STOCK,
    Shop,
    ShopMatrix,
)
from systems.vendure import Vendure

ROOT = Path(__file__).parents[2]
TESTS = "plugins/http/tests/test_shop.py"
CROWD = 101  # more than a page of the contract's


@pytest.mark.timeout(300)
def test_the_shop_contracts_hold_on_the_real_shop(vendure):
    """All but those that tell the shop to misbehave."""
    line = {
        "url": vendure.admin_url,
        "token": vendure.token,
        "variant": vendure.variant,
        "customer": vendure.customer,
        "shipping": vendure.shipping,
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", TESTS, "-q", "-k", "not told", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "AMENDS_VENDURE": json.dumps(line)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout


class VendureShop(Shop):
    """A real shop; an order comes in by the draft-order mutations, in one request."""

    def __init__(self, vendure: Vendure, person: Mapping[str, Json]) -> None:
        super().__init__(vendure.admin_url, vendure.token, person)
        self._vendure = vendure

    def ask(self, query: str, **variables: Json) -> Any:
        return self._vendure.ask(query, **variables)

    def placed(self) -> tuple[str, str]:
        order = self.ask("mutation { createDraftOrder { id } }")["createDraftOrder"]["id"]
        made = self.ask(
            """mutation ($order: ID!, $variant: ID!, $quantity: Int!, $customer: ID!, $shipping: ID!) {
              line: addItemToDraftOrder(orderId: $order, input: {productVariantId: $variant, quantity: $quantity}) {
                ... on Order { lines { id } } }
              setCustomerForDraftOrder(orderId: $order, customerId: $customer) { __typename }
              setDraftOrderShippingAddress(orderId: $order, input: {streetLine1: "1", countryCode: "DE"}) { __typename }
              setDraftOrderShippingMethod(orderId: $order, shippingMethodId: $shipping) { __typename }
              state: transitionOrderToState(id: $order, state: "ArrangingPayment") { __typename } }""",
            order=order,
            variant=self._vendure.variant,
            quantity=QUANTITY,
            customer=self._vendure.customer,
            shipping=self._vendure.shipping,
        )
        assert made["state"]["__typename"] == "Order", made
        return order, made["line"]["lines"][0]["id"]


def _history_crowd(shop: Shop, args: Args) -> None:
    """Somebody writes many notes into the order's history."""
    note = '{{ id: $order, note: "{0}", isPublic: false }}'
    notes = " ".join(
        f"n{number}: addNoteToOrder(input: {note.format(number)}) {{ __typename }}" for number in range(CROWD)
    )
    shop.ask(f"mutation ($order: ID!) {{ {notes} }}", order=args["order"])


class TestShop(ShopMatrix):
    """All of `package:shop`; of a refund all that was paid, so that the second of two deliveries is refused."""

    subjects = (RESERVE_STOCK, FULFIL, REFUND_ALL, replace(CANCEL_ORDER, crowd=_history_crowd))
    vendure: ClassVar[Vendure]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _shared(cls, vendure: Vendure) -> None:
        """The session's shop: it takes long to start."""
        cls.vendure = vendure

    @contextmanager
    def system(self, folder: Path) -> Iterator[Shop]:
        with maya_is_told() as person:
            yield VendureShop(self.vendure, person)
