"""What the ready Stripe contracts rely on in Stripe's v1 API, asked over plain HTTP of whichever server is given.

Every behaviour is as Stripe documents it. Two servers of others imitate it, each in part: `localstripe` knows no
idempotency and no refund limit, `stripe-stateful-mock` has both and no payment intents. `DIFFERENCES` says so and why
it is no harm; one that is gone is a problem too. Each behaviour makes what it needs, so a shared server will do.

    python tests/systems/suites/stripe.py localstripe http://127.0.0.1:8420 sk_test_amends
"""

from __future__ import annotations

import sys
import uuid
from typing import Any

from amends.testing.differences import Behaviour, Difference, Said, Site
from amends.testing.differences import problems as compared

_AMOUNT = 1000
_CARD = {"type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2040"}


def problems(system: str, base_url: str, key: str) -> list[str]:
    """What is not as this page says of `system` (`localstripe` or `stripe-stateful-mock`); empty if all is."""
    return compared(BEHAVIOURS, DIFFERENCES, system=system, site=Site(base_url, key))


# --- how the contracts ask ----------------------------------------------------------------------------


def fresh() -> str:
    """A marker or key that nobody used."""
    return f"amends-{uuid.uuid4()}"


def send(site: Site, path: str, key: str = "", **form: str) -> Said:
    """A mutating call: a form, and a key where one is given."""
    return site.call("POST", f"v1/{path}", form=form, headers={"Idempotency-Key": key} if key else {})


def read(site: Site, path: str) -> Any:
    """A read that must succeed."""
    said = site.call("GET", f"v1/{path}")
    assert said.status == 200, said
    return said.json


def card(site: Site) -> dict[str, str]:
    """What a charge is paid with: a test token, or where there is none a customer with a card of hers."""
    made = send(site, "payment_methods", **_CARD, **{"card[cvc]": "123"})
    if made.status == 200:
        customer = send(site, "customers", email="maya@example.com").json["id"]
        send(site, f"payment_methods/{made.json['id']}/attach", customer=customer)
        return {"customer": customer, "source": made.json["id"]}
    return {"source": "tok_visa"}


def charge(site: Site, key: str = "", amount: int = _AMOUNT, **form: str) -> Said:
    """A charge; `form` may say more or otherwise."""
    return send(site, "charges", key, **{"amount": str(amount), "currency": "usd", **card(site), **form})


def charged(site: Site, **form: str) -> dict[str, Any]:
    """A charge that must succeed."""
    said = charge(site, **form)
    assert said.status == 200, said
    return dict(said.json)


def marked(marker: str) -> dict[str, str]:
    """The marker as a form says it."""
    return {"metadata[amends_action]": marker}


def every(site: Site, path: str) -> list[dict[str, Any]]:
    """A list to its end, as the contracts page it."""
    found: list[dict[str, Any]] = []
    while True:
        after = f"&starting_after={found[-1]['id']}" if found else ""
        page = read(site, f"{path}limit=3{after}")
        found += page["data"]
        if not page["has_more"]:
            return found


def error_of(said: Said) -> dict[str, Any]:
    """The error that an answer carries."""
    return dict(said.json["error"])


# --- behaviours -----------------------------------------------------------------------------


def a_key_is_needed(site: Site) -> None:
    """401 without one."""
    said = Site(site.base_url, "").call("GET", "v1/charges")
    assert said.status == 401, said


def a_charge_gives_its_marker_back(site: Site) -> None:
    """The contract takes the answer for proof only then."""
    marker = fresh()
    made = charged(site, **marked(marker))
    assert made["object"] == "charge", made
    assert (made["status"], made["amount"], made["captured"]) == ("succeeded", _AMOUNT, True), made
    assert made["metadata"] == {"amends_action": marker}, made
    assert made["refunded"] is False, made


def a_charge_is_read_by_its_id(site: Site) -> None:
    """By the reference that was recorded."""
    made = charged(site)
    assert read(site, f"charges/{made['id']}")["id"] == made["id"]


def a_charge_that_is_not_there_is_a_404(site: Site) -> None:
    """Absence is authoritative."""
    assert site.call("GET", "v1/charges/ch_none").status == 404


def charges_are_listed_to_their_end(site: Site) -> None:
    """`has_more` and `starting_after` lead to a charge that newer ones hide."""
    marker = fresh()
    first = charged(site, **marked(marker))
    for _ in range(4):
        charged(site)
    found = [one for one in every(site, "charges?") if one["metadata"].get("amends_action") == marker]
    assert [one["id"] for one in found] == [first["id"]], found


def charges_are_listed_since_a_time(site: Site) -> None:
    """`created[gt]` keeps a look from reading the whole account."""
    made = charged(site)
    assert made["id"] in [one["id"] for one in read(site, "charges?limit=100&created[gt]=1600000000")["data"]]
    later = made["created"] + 3600
    assert read(site, f"charges?limit=100&created[gt]={later}")["data"] == []


def the_same_key_is_one_charge(site: Site) -> None:
    """The stored answer comes again, and nothing else happens."""
    key, marker, paid_with = fresh(), fresh(), card(site)
    first, second = (charge(site, key, **paid_with, **marked(marker)) for _ in range(2))
    assert first.json["id"] == second.json["id"], (first, second)
    assert second.headers.get("idempotent-replayed") == "true", second
    assert len([one for one in every(site, "charges?") if one["metadata"].get("amends_action") == marker]) == 1


def the_same_key_with_other_parameters_is_an_idempotency_error(site: Site) -> None:
    """Told by its type: the contract calls it ambiguous, because the first call may have acted."""
    key, paid_with = fresh(), card(site)
    assert charge(site, key, **paid_with).status == 200
    said = charge(site, key, amount=_AMOUNT + 1, **paid_with)
    assert said.status == 400, said
    assert error_of(said)["type"] == "idempotency_error", said


def another_key_is_another_charge(site: Site) -> None:
    """A generation of its own."""
    paid_with = card(site)
    first, second = (charge(site, fresh(), **paid_with) for _ in range(2))
    assert first.json["id"] != second.json["id"]


def an_authorized_charge_is_captured_once(site: Site) -> None:
    """The second time is refused; the contract finds a capture by the charge itself."""
    made = charged(site, capture="false")
    assert made["captured"] is False, made
    said = send(site, f"charges/{made['id']}/capture")
    assert (said.status, said.json["captured"]) == (200, True), said
    assert send(site, f"charges/{made['id']}/capture").status == 400


def a_second_capture_says_what_it_is(site: Site) -> None:
    """`charge_already_captured`."""
    made = charged(site, capture="false")
    send(site, f"charges/{made['id']}/capture")
    assert error_of(send(site, f"charges/{made['id']}/capture")).get("code") == "charge_already_captured"


def an_authorized_charge_is_voided_by_a_refund(site: Site) -> None:
    """The rung `void`: no money has moved, and the charge reads as refunded."""
    made = charged(site, capture="false")
    said = send(site, "refunds", charge=made["id"])
    assert said.status == 200, said
    assert read(site, f"charges/{made['id']}")["refunded"] is True


def a_refund_gives_its_marker_and_its_charge_back(site: Site) -> None:
    """The rung `refund` believes no other answer, and the charge shows it."""
    marker, made = fresh(), charged(site)
    said = send(site, "refunds", charge=made["id"], **marked(marker))
    assert said.status == 200, said
    assert (said.json["object"], said.json["charge"], said.json["amount"]) == ("refund", made["id"], _AMOUNT), said
    assert said.json["metadata"] == {"amends_action": marker}, said
    now = read(site, f"charges/{made['id']}")
    assert (now["refunded"], now["amount_refunded"]) == (True, _AMOUNT), now


def refunds_are_listed_by_their_charge(site: Site) -> None:
    """How a lost refund is found."""
    made, other = charged(site), charged(site)
    refund = send(site, "refunds", charge=made["id"], amount="300").json
    send(site, "refunds", charge=other["id"])
    assert [one["id"] for one in every(site, f"refunds?charge={made['id']}&")] == [refund["id"]]


def a_refund_of_a_refunded_charge_is_refused_by_its_code(site: Site) -> None:
    """`charge_already_refunded`: to an undo the wanted state holds already."""
    made = charged(site)
    assert send(site, "refunds", charge=made["id"]).status == 200
    said = send(site, "refunds", charge=made["id"])
    assert said.status == 400, said
    assert error_of(said).get("code") == "charge_already_refunded", said


def a_refund_beyond_the_rest_is_refused(site: Site) -> None:
    """400, and nothing is refunded."""
    made = charged(site)
    assert send(site, "refunds", charge=made["id"], amount=str(_AMOUNT + 1)).status == 400
    assert read(site, f"charges/{made['id']}")["amount_refunded"] == 0


def a_payment_intent_is_taken_in_one_request(site: Site) -> None:
    """Created and confirmed, with its marker."""
    said = payment(site)
    assert said.status == 200, said
    assert said.json["status"] == "succeeded", said
    assert said.json["metadata"]["amends_action"].startswith("amends-"), said


def a_payment_that_is_only_authorized_is_cancelled_once(site: Site) -> None:
    """The rung `cancel`; the second time is refused."""
    made = payment(site, capture_method="manual").json
    assert made["status"] == "requires_capture", made
    assert send(site, f"payment_intents/{made['id']}/cancel").json["status"] == "canceled"
    assert send(site, f"payment_intents/{made['id']}/cancel").status == 400


def a_payment_shows_its_refund(site: Site) -> None:
    """The expanded charge says it; the payment's own status does not change."""
    made = payment(site).json
    assert send(site, "refunds", payment_intent=made["id"]).json["payment_intent"] == made["id"]
    now = read(site, f"payment_intents/{made['id']}?expand[]=latest_charge")
    assert (now["status"], now["latest_charge"]["refunded"]) == ("succeeded", True), now


def payments_are_listed_by_customer_and_time(site: Site) -> None:
    """How a lost payment is found without reading the whole account."""
    made = payment(site).json
    found = read(site, f"payment_intents?customer={made['customer']}&created[gt]=1600000000&limit=100")["data"]
    assert [one["id"] for one in found] == [made["id"]], found


def payment(site: Site, **form: str) -> Said:
    """A payment intent, confirmed at once."""
    paid_with = card(site)
    given = {"customer": paid_with.get("customer", ""), "payment_method": paid_with["source"]}
    asked = {"amount": str(_AMOUNT), "currency": "usd", "confirm": "true", "off_session": "true"}
    return send(site, "payment_intents", **asked, **given, **marked(fresh()), **form)


BEHAVIOURS: tuple[Behaviour, ...] = (
    a_key_is_needed,
    a_charge_gives_its_marker_back,
    a_charge_is_read_by_its_id,
    a_charge_that_is_not_there_is_a_404,
    charges_are_listed_to_their_end,
    charges_are_listed_since_a_time,
    the_same_key_is_one_charge,
    the_same_key_with_other_parameters_is_an_idempotency_error,
    another_key_is_another_charge,
    an_authorized_charge_is_captured_once,
    a_second_capture_says_what_it_is,
    an_authorized_charge_is_voided_by_a_refund,
    a_refund_gives_its_marker_and_its_charge_back,
    refunds_are_listed_by_their_charge,
    a_refund_of_a_refunded_charge_is_refused_by_its_code,
    a_refund_beyond_the_rest_is_refused,
    a_payment_intent_is_taken_in_one_request,
    a_payment_that_is_only_authorized_is_cancelled_once,
    a_payment_shows_its_refund,
    payments_are_listed_by_customer_and_time,
)

_NO_KEYS = "it reads no idempotency keys: a second send is a second charge there, and the look finds both by our marker"
_NO_INTENTS = "it has no payment intents; the contract `payment` is tried on localstripe"

DIFFERENCES: tuple[Difference, ...] = (
    Difference("localstripe", "the_same_key_is_one_charge", _NO_KEYS),
    Difference("localstripe", "the_same_key_with_other_parameters_is_an_idempotency_error", _NO_KEYS),
    Difference(
        "localstripe",
        "a_second_capture_says_what_it_is",
        "its 400 has no code; the status alone refuses, and the code is tried on stripe-stateful-mock",
    ),
    Difference(
        "localstripe",
        "a_refund_of_a_refunded_charge_is_refused_by_its_code",
        "it refunds again; the engine undoes only on evidence of presence, and the look says the charge is refunded",
    ),
    Difference(
        "localstripe",
        "a_refund_beyond_the_rest_is_refused",
        "it has no refund limit; the look counts every refund that bears our marker",
    ),
    Difference(
        "localstripe",
        "payments_are_listed_by_customer_and_time",
        "it refuses every filter of that list; the contract is tried there without them",
    ),
    Difference(
        "stripe-stateful-mock",
        "charges_are_listed_since_a_time",
        "it ignores `created` and shows more; what is shown is matched on our side too",
    ),
    Difference("stripe-stateful-mock", "a_payment_intent_is_taken_in_one_request", _NO_INTENTS),
    Difference("stripe-stateful-mock", "a_payment_that_is_only_authorized_is_cancelled_once", _NO_INTENTS),
    Difference("stripe-stateful-mock", "a_payment_shows_its_refund", _NO_INTENTS),
    Difference("stripe-stateful-mock", "payments_are_listed_by_customer_and_time", _NO_INTENTS),
)


if __name__ == "__main__":
    found = problems(*sys.argv[1:4])
    print("\n".join(found))
    sys.exit(1 if found else 0)
