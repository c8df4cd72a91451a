"""The ready shop contracts over GraphQL. The same tests hold on the loopback shop and on a real Vendure.

`AMENDS_VENDURE` may hold the line that `tests/systems/vendure/server.cjs` prints: then the shop is that one.
"""

from __future__ import annotations

import json
import os
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from amends.core.registration import refusals
from amends.spi import Refused
from amends.spi.http import Ambiguous
from amends.testing.loopback import LoopbackSystem
from amends.testing.policies import policy_problems

Order: TypeAlias = dict[str, Any]

STATE = """query ($order: ID!) { order(id: $order) { state
  payments { id transactionId amount refunds { id state total reason } }
  fulfillments { id state trackingCode } } }"""
STOCK = "query ($variant: ID!) { productVariant(id: $variant) { stockLevels { stockOnHand stockAllocated } } }"


class Desk:
    """The shop as its own people see it, and how orders come in. This one is the loopback system."""

    def __init__(self, url: str, token: str, system: LoopbackSystem | None = None) -> None:
        self.url = url
        self.token = token
        self.system = system
        self.variant = "1"

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        body = json.dumps({"query": query, "variables": variables}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body, headers), timeout=10) as answer:
            said = json.loads(answer.read())
        assert "errors" not in said, said
        return said["data"]

    def place(self, quantity: int = 3) -> dict[str, str]:
        """An order that waits for its payment: `order` and `line`."""
        placed = self.system.control("place_order", quantity=quantity)
        return {"order": placed["order"], "line": placed["line"]}

    def order(self, order: str) -> Order:
        return self.ask(STATE, order=order)["order"]

    def stock(self) -> tuple[int, int]:
        """On hand, allocated."""
        [level] = self.ask(STOCK, variant=self.variant)["productVariant"]["stockLevels"]
        return level["stockOnHand"], level["stockAllocated"]

    def move(self, fulfilment: str, state: str) -> None:
        step = "transitionFulfillmentToState(id: $id, state: $state) { __typename }"
        change = f"mutation ($id: ID!, $state: String!) {{ {step} }}"
        self.ask(change, id=fulfilment, state=state)


class VendureDesk(Desk):
    """The same over a real Vendure: an order comes in by the draft-order mutations."""

    def __init__(self, line: dict[str, Any]) -> None:
        super().__init__(line["url"], line["token"])
        self.variant, self.customer, self.shipping = line["variant"], line["customer"], line["shipping"]

    def place(self, quantity: int = 3) -> dict[str, str]:
        order = self.ask("mutation { createDraftOrder { id } }")["createDraftOrder"]["id"]
        item = {"productVariantId": self.variant, "quantity": quantity}
        steps = {
            "($o: ID!, $i: AddItemToDraftOrderInput!) { addItemToDraftOrder(orderId: $o, input: $i)": {"i": item},
            "($o: ID!, $c: ID!) { setCustomerForDraftOrder(orderId: $o, customerId: $c)": {"c": self.customer},
            '($o: ID!) { setDraftOrderShippingAddress(orderId: $o, input: {streetLine1: "1", countryCode: "DE"})': {},
            "($o: ID!, $s: ID!) { setDraftOrderShippingMethod(orderId: $o, shippingMethodId: $s)": {"s": self.shipping},
            '($o: ID!) { transitionOrderToState(id: $o, state: "ArrangingPayment")': {},
        }
        for step, variables in steps.items():
            self.ask(f"mutation {step} {{ __typename }} }}", o=order, **variables)
        lines = self.ask("query ($o: ID!) { order(id: $o) { lines { id } } }", o=order)["order"]["lines"]
        return {"order": order, "line": lines[0]["id"]}


@pytest.fixture
def desk() -> Iterator[Desk]:
    real = os.environ.get("AMENDS_VENDURE")
    if real:
        yield VendureDesk(json.loads(real))
        return
    with LoopbackSystem.start("shop") as system:
        yield Desk(f"{system.url}/admin-api", "shop-token", system)
        assert system.unfired() == [], "a fault that was armed never fired"


@pytest.fixture
def shop(
    desk: Desk,
    adapter: Callable[..., Any],
    make_driver: Callable[..., Any],
    tokens: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """A driver of one capability of the ready shop contracts."""
    monkeypatch.setitem(tokens, "env:SHOP", desk.token)
    shelf = adapter(desk.url, name="shop", contracts="package:shop", token="env:SHOP")

    def make(name: str, action: str, **args: Any) -> Any:
        return make_driver(shelf.capabilities[f"shop.{name}"], action, **args)

    return make


@pytest.fixture
def marker() -> str:
    """A new action id for each test: the real shop keeps what earlier tests did."""
    return f"act-{uuid.uuid4()}"


def paid(shop: Callable[..., Any], desk: Desk, marker: str) -> dict[str, str]:
    """An order whose stock is reserved."""
    placed = desk.place()
    shop("reserve_stock", f"{marker}-paid", order=placed["order"], method="invoice").do()
    return placed


def test_every_shop_contract_is_complete_and_its_policies_hold(adapter):
    """Registration accepts all of them, and the default permits load beside the baseline."""
    shelf = adapter(name="shop", contracts="package:shop")
    contracts = [capability.contract for capability in shelf.capabilities.values()]
    assert len(contracts) == 4
    assert {c.capability: refusals(c) for c in contracts if refusals(c)} == {}
    [contribution] = shelf.contributions
    assert policy_problems("shop", contracts, contribution) == []


def test_stock_is_reserved_found_by_our_marker_and_given_back(shop, desk, marker):
    """Recording the payment allocates the stock; the undo cancels the order, and the stock is as it was."""
    before = desk.stock()
    placed = desk.place(3)
    reserve = shop("reserve_stock", marker, order=placed["order"], method="invoice")
    assert reserve.probe().seen == "absent"
    assert reserve.do().reference == placed["order"]
    assert desk.stock() == (before[0], before[1] + 3)
    assert desk.order(placed["order"])["payments"][0]["transactionId"] == marker
    seen = reserve.probe()
    assert (seen.seen, seen.state) == ("applied", {"state": "PaymentSettled"})
    reserve.undo("cancel")
    assert reserve.verify().seen == "absent"
    assert desk.stock() == before


def test_an_order_is_reserved_once_and_what_others_placed_is_not_ours(shop, desk, marker):
    """The second payment is refused, which our first may have caused: the look decides. One under another marker does
    not take the order for ours.
    """
    placed = desk.place()
    reserve = shop("reserve_stock", marker, order=placed["order"], method="invoice")
    reserve.do()
    with pytest.raises(Ambiguous) as no:
        reserve.do()
    assert no.value.code == "MANUAL_PAYMENT_STATE_ERROR"
    assert reserve.probe().seen == "applied"
    assert shop("reserve_stock", f"{marker}-other", order=placed["order"], method="invoice").probe().seen == "absent"


def test_cancelling_what_is_cancelled_is_no_error(shop, desk, marker):
    """Somebody cancelled first: the wanted state holds already."""
    placed = desk.place()
    reserve = shop("reserve_stock", marker, order=placed["order"], method="invoice")
    reserve.do()
    reserve.undo("cancel")
    reserve.undo("cancel", undo="undo-2")
    assert reserve.verify().seen == "absent"


def test_fulfilling_twice_ships_twice_and_both_are_found(shop, desk, marker):
    """Nothing stops a second shipment: the tracking code that is our marker names both, each is cancelled alone."""
    placed = paid(shop, desk, marker)
    before = desk.stock()
    fulfil = shop("fulfil", marker, **placed, quantity=1)
    first = fulfil.do().reference
    second = fulfil.do().reference
    assert desk.stock() == (before[0] - 2, before[1] - 2)
    seen = fulfil.probe()
    assert (seen.seen, seen.reference, set(seen.twins)) == ("many", second, {first, second})
    fulfil.undo("cancel")
    assert fulfil.verify().seen == "absent"
    assert desk.stock() == (before[0] - 1, before[1] - 1)
    fulfil.reference = first
    assert fulfil.verify().seen == "applied"


def test_pieces_that_are_gone_may_be_gone_because_of_us(shop, desk, marker):
    """The same typed refusal meets the second delivery of our call and a call that comes too late: the look tells them
    apart.
    """
    placed = paid(shop, desk, marker)
    fulfil = shop("fulfil", marker, **placed, quantity=3)
    fulfil.do()
    late = shop("fulfil", f"{marker}-2", **placed, quantity=1)
    for call, seen in ((fulfil, "applied"), (late, "absent")):
        with pytest.raises(Ambiguous) as no:
            call.do()
        assert no.value.code == "ITEMS_ALREADY_FULFILLED_ERROR"
        assert call.probe().seen == seen
    assert len(desk.order(placed["order"])["fulfillments"]) == 1


def test_a_parcel_that_left_is_a_persons_to_decide(shop, desk, marker):
    """The shop would cancel a shipped fulfilment and count the pieces in; no rung of ours does that."""
    placed = paid(shop, desk, marker)
    fulfil = shop("fulfil", marker, **placed, quantity=3)
    desk.move(fulfil.do().reference, "Shipped")
    seen = fulfil.probe()
    assert (seen.seen, seen.state) == ("applied", {"state": "Shipped"})
    rungs = fulfil.capability.contract.compensation
    fitting = [r for r in rungs if all(seen.state[name] in accepted for name, accepted in r.when.items())]
    assert [rung.undo for rung in fitting] == ["escalate"]


def test_a_fulfilment_that_is_cancelled_already_is_done(shop, desk, marker):
    """The transition is refused because it is there already."""
    placed = paid(shop, desk, marker)
    fulfil = shop("fulfil", marker, **placed, quantity=1)
    fulfil.do()
    fulfil.undo("cancel")
    fulfil.undo("cancel", undo="undo-2")
    assert fulfil.verify().seen == "absent"


def test_refunding_twice_refunds_twice_and_both_are_found(shop, desk, marker):
    """No key stops the second: the reason that opens with our marker names both; more than was paid is not given."""
    placed = paid(shop, desk, marker)
    [payment] = desk.order(placed["order"])["payments"]
    given = {"order": placed["order"], "payment": payment["id"], "reason": "arrived broken"}
    refund = shop("refund", marker, **given, amount=500)
    both = {refund.do().reference, refund.do().reference}
    seen = refund.probe()
    assert (seen.seen, set(seen.twins)) == ("many", both)
    [payment] = desk.order(placed["order"])["payments"]
    assert [row["reason"] for row in payment["refunds"]] == [f"{marker} arrived broken"] * 2
    more = shop("refund", f"{marker}-2", **given, amount=10_000_000)
    with pytest.raises(Ambiguous) as no:
        more.do()
    assert (no.value.code, more.probe().seen) == ("REFUND_AMOUNT_ERROR", "absent")


def test_a_cancelled_order_is_found_in_the_shops_history(shop, desk, marker):
    """The reason of the history entry is ours; a cancellation by somebody else is not."""
    before = desk.stock()
    placed = paid(shop, desk, marker)
    cancel = shop("cancel_order", marker, order=placed["order"], reason="out of season")
    assert cancel.probe().seen == "absent"
    cancel.do()
    assert cancel.probe().seen == "applied"
    assert desk.order(placed["order"])["state"] == "Cancelled"
    assert desk.stock() == before
    late = shop("cancel_order", f"{marker}-2", order=placed["order"])
    for call, seen in ((cancel, "applied"), (late, "absent")):
        with pytest.raises(Ambiguous):
            call.do()
        assert call.probe().seen == seen


def test_an_order_that_is_not_there_is_refused_and_proves_nothing_when_read(shop, marker):
    """A missing order is refused with a 200; reading it shows no list, which is no proof of absence."""
    fulfil = shop("fulfil", marker, order="999999", line="999999", quantity=1)
    with pytest.raises(Refused):
        fulfil.do()
    assert fulfil.probe().seen == "inconclusive"


def test_a_wrong_credential_is_refused_and_hides_nothing(shop, desk, marker, tokens, monkeypatch):
    """FORBIDDEN comes with a 200 and an empty order: the call is refused, the look is inconclusive, not absent."""
    placed = paid(shop, desk, marker)
    fulfil = shop("fulfil", marker, **placed, quantity=1)
    fulfil.do()
    monkeypatch.setitem(tokens, "env:SHOP", "nobody-that-is-known")
    with pytest.raises(Refused):
        fulfil.do()
    assert fulfil.probe().seen == "inconclusive"


def test_told_to_lose_answers_after_the_commit_its_effects_are_found(shop, desk, marker):
    """The shop committed: the call is ambiguous, sent once, and the look finds it."""
    desk.system.arm("drop_after_commit", contains="addFulfillmentToOrder", how="rst")
    desk.system.arm("error_after_commit", contains="addFulfillmentToOrder", status=502, form="html", skip=1)
    placed = paid(shop, desk, marker)
    for number in (1, 2):
        fulfil = shop("fulfil", f"{marker}-{number}", **placed, quantity=1)
        with pytest.raises(Ambiguous):
            fulfil.do()
        assert fulfil.probe().seen == "applied"
    assert desk.system.count("fulfillment") == 2


def test_told_to_lie_its_success_without_effect_is_seen_by_the_look(shop, desk, marker):
    """The answer reads as a success and the shop has nothing."""
    placed = paid(shop, desk, marker)
    desk.system.arm("answer_without_commit", contains="addFulfillmentToOrder")
    fulfil = shop("fulfil", marker, **placed, quantity=1)
    fulfil.do()
    assert fulfil.probe().seen == "absent"
