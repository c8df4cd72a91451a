"""The ready Stripe contracts against localstripe, a server of others: it ignores keys and refund limits.

`tests/systems/suites/stripe.py` holds what is asked of the server itself.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import amends_http
from amends.core.registration import refusals
from amends.spi import Refused
from amends.spi.http import Ambiguous
from amends.testing.policies import policy_problems

CONTRACTS = Path(amends_http.__file__).parent / "contracts" / "stripe"


class Stripe:
    """Another party's view of the account: what is really there."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def call(self, path: str, **fields: Any) -> dict[str, Any]:
        """A POST with fields, a GET without."""
        data = urlencode(fields).encode() if fields else None
        request = urllib.request.Request(self.url + path, data, {"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read())

    def all(self, collection: str) -> list[dict[str, Any]]:
        return self.call(f"/v1/{collection}?limit=100")["data"]

    def saved_card(self, number: str = "4242424242424242") -> dict[str, str]:
        """A customer with a card: what `charge` and `payment` are called with."""
        customer = self.call("/v1/customers", email="maya@example.com")["id"]
        card = {"card[number]": number, "card[exp_month]": 12, "card[exp_year]": 2040, "card[cvc]": "123"}
        method = self.call("/v1/payment_methods", type="card", **card)["id"]
        self.call(f"/v1/payment_methods/{method}/attach", customer=customer)
        return {"customer": customer, "method": method}


@pytest.fixture
def stripe(localstripe: Any) -> Stripe:
    """The shared server, emptied."""
    localstripe.reset()
    return Stripe(localstripe.url, localstripe.key)


@pytest.fixture
def pay(stripe: Stripe, adapter: Callable[..., Any], make_driver: Callable[..., Any]) -> Callable[..., Any]:
    """A driver of one capability of the ready Stripe contracts."""
    shelf = adapter(stripe.url, name="stripe", contracts="package:stripe", token="env:STRIPE")

    def make(name: str, action: str = "act-1", **args: Any) -> Any:
        return make_driver(shelf.capabilities[f"stripe.{name}"], action, **args)

    return make


def charge_of(pay: Callable[..., Any], stripe: Stripe, action: str = "act-1", **args: Any) -> Any:
    card = stripe.saved_card()
    given = {"order": "1234", "amount": 1000, "currency": "usd", "customer": card["customer"], "source": card["method"]}
    return pay("charge", action, **{**given, **args})


def test_every_stripe_contract_is_complete_and_its_policies_hold(adapter):
    """Registration accepts all of them, and the default permits load beside the baseline."""
    shelf = adapter(name="stripe", contracts="package:stripe", token="env:STRIPE")
    contracts = [capability.contract for capability in shelf.capabilities.values()]
    assert sorted(c.capability for c in contracts) == [
        "stripe.capture",
        "stripe.charge",
        "stripe.payment",
        "stripe.refund",
    ]
    assert {c.capability: refusals(c) for c in contracts if refusals(c)} == {}
    [contribution] = shelf.contributions
    assert policy_problems("stripe", contracts, contribution) == []


def test_a_charge_is_made_marked_found_and_refunded(pay, stripe):
    """One charge with our marker; the refund is one request, and the separate read says the charge is taken back."""
    charge = charge_of(pay, stripe)
    done = charge.do()
    [there] = stripe.all("charges")
    assert there["id"] == done.reference
    assert there["metadata"] == {"amends_action": "act-1", "order": "1234"}
    assert charge.probe().seen == "applied"
    charge.undo("refund")
    assert charge.verify().seen == "absent"
    [refund] = stripe.all("refunds")
    assert (refund["amount"], refund["metadata"]["amends_action"]) == (1000, "undo-1")


def test_a_provider_that_ignores_keys_makes_a_twin_and_the_probe_finds_it(pay, stripe):
    """The same key sent twice is two charges here: both are named, and each is refunded by itself (F-22)."""
    charge = charge_of(pay, stripe)
    first = charge.do().reference
    second = charge.do().reference
    assert first != second
    assert len(stripe.all("charges")) == 2
    seen = charge.probe()
    assert (seen.seen, set(seen.twins)) == ("many", {first, second})
    twin = charge_of(pay, stripe)
    twin.args, twin.action_id, twin.reference = charge.args, "twin-1", first
    twin.undo("refund", undo="undo-2")
    assert twin.verify().seen == "absent"
    assert charge.verify().seen == "applied"


def test_a_charge_is_found_without_its_reference_on_a_later_page(pay, stripe):
    """The answer was lost and a hundred newer charges lie before ours: the list is read to its end."""
    charge = charge_of(pay, stripe)
    reference = charge.do().reference
    for _ in range(101):
        card = {"customer": charge.args["customer"], "source": charge.args["source"]}
        stripe.call("/v1/charges", amount=5, currency="usd", **card)
    charge.reference = ""
    seen = charge.probe()
    assert (seen.seen, seen.reference) == ("applied", reference)


def test_the_rung_follows_what_was_captured(pay, stripe):
    """An uncaptured charge is voided under one authority, a captured one refunded under another, and then a person."""
    charge = charge_of(pay, stripe, capture=False)
    charge.do()
    seen = charge.probe()
    assert seen.state["captured"] is False
    fitting = [
        rung.name
        for rung in charge.capability.contract.compensation
        if all(seen.state.get(name) in accepted for name, accepted in rung.when.items())
    ]
    assert fitting == ["void", "finance_review"]
    charge.undo("void")
    assert charge.verify().seen == "absent"


def test_a_declined_card_is_refused_and_its_failed_charge_is_no_effect(pay, stripe):
    """402 changes nothing that counts: the failed charge that stays behind reads as absent."""
    card = stripe.saved_card("4000000000000341")
    charge = charge_of(pay, stripe, customer=card["customer"], source=card["method"])
    with pytest.raises(Refused) as no:
        charge.do()
    assert no.value.code == "card_declined"
    assert [there["status"] for there in stripe.all("charges")] == ["failed"]
    assert charge.probe().seen == "absent"


def test_a_capture_is_found_by_the_charge_itself(pay, stripe):
    """Capture carries no marker: before it absent, after it applied, and undone by a refund."""
    charge = charge_of(pay, stripe, capture=False)
    reference = charge.do().reference
    capture = pay("capture", "act-2", charge=reference)
    assert capture.probe().seen == "absent"
    assert capture.do().reference == reference
    assert capture.probe().seen == "applied"
    with pytest.raises(Refused):
        capture.do()
    capture.undo("refund")
    assert capture.verify().seen == "absent"


def test_two_refunds_are_counted_because_nothing_stops_the_second(pay, stripe):
    """localstripe refunds more than was charged: the probe names both refunds that bear our marker."""
    charge = charge_of(pay, stripe)
    refund = pay("refund", "act-2", charge=charge.do().reference, amount=800)
    refund.do()
    refund.do()
    assert refund.probe().seen == "many"
    assert len(stripe.all("refunds")) == 2
    assert refund.capability.contract.irreversible


@pytest.fixture
def payment(stripe: Stripe, adapter: Callable[..., Any], make_driver: Callable[..., Any]) -> Callable[..., Any]:
    """`stripe.payment`, without the filters that localstripe refuses on a list of payment intents."""
    text = (CONTRACTS / "payment.toml").read_text()
    filters = 'customer = "{customer}", "created[gt]" = "{since}", '
    assert filters in text
    files = {"payment.toml": text.replace(filters, "")}
    shelf = adapter(stripe.url, name="stripe", files=files, token="env:STRIPE")
    card = stripe.saved_card()
    given = {"amount": 700, "currency": "usd", "customer": card["customer"], "payment_method": card["method"]}

    def make(action: str = "act-1", **args: Any) -> Any:
        return make_driver(shelf.capabilities["stripe.payment"], action, **{"order": "1", **given, **args})

    return make


def test_a_payment_that_is_only_authorized_is_cancelled(payment):
    """No money has moved: cancelled, never refunded; a second cancel is refused, and the separate read decides."""
    held = payment(capture="manual")
    held.do()
    assert held.probe().state["status"] == "requires_capture"
    held.undo("cancel")
    assert held.verify().seen == "absent"
    with pytest.raises(Refused):
        held.undo("cancel", undo="undo-2")


def test_a_payment_that_went_through_is_refunded(payment, stripe):
    """Money has moved: refunded, and the charge behind the payment says so."""
    paid = payment()
    reference = paid.do().reference
    paid.reference = ""
    assert paid.probe().reference == reference
    paid.reference = reference
    paid.undo("refund")
    assert paid.verify().seen == "absent"
    assert [refund["payment_intent"] for refund in stripe.all("refunds")] == [reference]


def test_two_payments_of_one_call_are_told_apart(payment, stripe):
    """No keys here: the same call twice is two payments, and each is named."""
    paid = payment()
    both = {paid.do().reference, paid.do().reference}
    seen = paid.probe()
    assert (seen.seen, set(seen.twins)) == ("many", both)


def test_a_success_that_names_another_call_is_no_success(pay, stripe, scripted, adapter, make_driver):
    """A gateway replays an old answer: it does not bear our marker, so nothing is believed."""
    old = {"object": "charge", "id": "ch_1", "status": "succeeded", "amount": 1000, "metadata": {"amends_action": "x"}}
    gateway = scripted(lambda heard: (200, {}, old))
    shelf = adapter(gateway.url, name="stripe", contracts="package:stripe", token="env:STRIPE")
    charge = make_driver(shelf.capabilities["stripe.charge"], **charge_of(pay, stripe).args)
    with pytest.raises(Ambiguous) as lost:
        charge.do()
    assert lost.value.code == "unexpected_answer"
    assert stripe.all("charges") == []
