"""The fault matrix of the ready Stripe contracts, over any server that speaks Stripe's v1 API.

A subclass says how its server is started. Effects are counted, and other people act, by the server's own API without
the adapter. What only one of the servers lacks is said where its subclass is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Denial, Subject
from systems.localstripe import LocalStripe
from systems.matrices.people import MAYA, SECRETS, maya_is_told
from systems.stripe_mock import StripeMock
from systems.web import Answer

AMOUNT = 1000
PART = 300  # what somebody else gives back
CROWD = 101  # more than a page of the contracts'
CARD = {"type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2040"}
NO = Denial(body={"error": {"type": "invalid_request_error", "message": "This key may not do that."}})
NO_LIMIT = "localstripe has no refund limit: our refund after theirs would give back more than was taken"
NO_KEYS = "localstripe reads no keys: it refuses the second capture, where Stripe gives the first answer again"

Ask = Callable[[str, str, Mapping[str, object] | None], Answer]


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account at a running server. `ask(method, path, form)` is somebody else who holds its secret key: `path` goes
    on after `/v1/`. `person` is the table of the adapter through which Maya is told.
    """

    url: str
    key: str
    ask: Ask
    person: Mapping[str, Json]


class StripeMatrix(AdapterMatrix[Account]):
    """`package:stripe` on a server; `contracts` may name other files."""

    contracts: ClassVar[str] = "package:stripe"

    @abstractmethod
    def server(self) -> AbstractContextManager[LocalStripe | StripeMock]:
        """Start the server."""

    @contextmanager
    def system(self, folder: Path) -> Generator[Account]:
        with self.server() as server, maya_is_told() as told:
            yield Account(url=server.url, key=server.key, ask=server.ask, person=told)

    def upstream(self, system: Account) -> str:
        return system.url

    def adapters(self, system: Account, address: str) -> Mapping[str, Mapping[str, Json]]:
        options: dict[str, Json] = {"contracts": self.contracts, "token": "env:STRIPE_KEY", "values": {"finance": MAYA}}
        return {"stripe": {"plugin": "http", "base_url": address, **options}, "slack": system.person}

    def secrets(self, system: Account) -> Mapping[str, str]:
        return {"STRIPE_KEY": system.key, **SECRETS}


def said(account: Account, method: str, path: str, **form: object) -> Any:
    """A request that must succeed. Raises AssertionError."""
    answer = account.ask(method, path, form or None)
    assert answer.status == 200, (method, path, answer)
    return answer.data


def every(account: Account, path: str) -> Iterator[dict[str, Any]]:
    """A list to its end; `path` ends in `?` or `&`."""
    after = ""
    while True:
        page = said(account, "GET", f"{path}limit=100{after}")
        yield from page["data"]
        if not page["has_more"]:
            return
        after = f"&starting_after={page['data'][-1]['id']}"


def saved_card(account: Account) -> dict[str, str]:
    """A new customer with a card of hers: the `customer` and the `source`."""
    customer = said(account, "POST", "customers", email="maya@example.com")["id"]
    card = said(account, "POST", "payment_methods", **CARD, **{"card[cvc]": "123"})["id"]
    said(account, "POST", f"payment_methods/{card}/attach", customer=customer)
    return {"customer": customer, "source": card}


def any_card(_: Account) -> dict[str, str]:
    """A token that any server takes for a card, of nobody in particular."""
    return {"source": "tok_visa"}


# --- charges ---------------------------------------------------------------------------------------------------------


def charged(account: Account, paid_with: Mapping[str, str], **form: object) -> str:
    """Somebody charges the card; the charge's id."""
    return str(said(account, "POST", "charges", amount=AMOUNT, currency="usd", **paid_with, **form)["id"])


def charges_of(account: Account, args: Args) -> list[dict[str, Any]]:
    """Charges for the order that stand: taken or held, and not given back."""
    customer = f"customer={args['customer']}&" if "customer" in args else ""
    return [
        charge
        for charge in every(account, f"charges?{customer}")
        if charge["metadata"].get("order") == args["order"]
        if charge["status"] in {"succeeded", "pending"} and not charge["refunded"]
    ]


def _charge_refunded(account: Account, args: Args) -> None:
    for charge in charges_of(account, args):
        said(account, "POST", "refunds", charge=charge["id"])


def _charge_partly_refunded(account: Account, args: Args) -> None:
    [charge] = charges_of(account, args)
    said(account, "POST", "refunds", charge=charge["id"], amount=PART, **{"metadata[by]": str(args["order"])})


def _part_is_kept(account: Account, args: Args) -> bool:
    """Their refund stands, and together with ours it is no more than was taken."""
    theirs = [one for one in every(account, "refunds?") if one["metadata"].get("by") == args["order"]]
    charge = said(account, "GET", f"charges/{theirs[0]['charge']}")
    return [one["amount"] for one in theirs] == [PART] and charge["amount_refunded"] <= AMOUNT


def _charge_crowd(account: Account, args: Args) -> None:
    paid_with = {name: str(args[name]) for name in ("customer", "source") if name in args}
    for _ in range(CROWD):
        charged(account, paid_with)


def charge(card: Callable[[Account], Mapping[str, str]], *, capture: bool = True) -> Subject[Account]:
    """Charging a card: it is given back, or let go where it was only held."""

    def args(account: Account, word: str) -> Args:
        return {"order": word, "amount": AMOUNT, "currency": "usd", "capture": capture, **card(account)}

    return Subject(
        capability="stripe.charge",
        args=args,
        effects=lambda account, args: len(charges_of(account, args)),
        other=lambda args: {**args, "amount": AMOUNT + 1},
        text="description",
        taken_away=_charge_refunded,
        edited=_charge_partly_refunded if capture else None,
        kept=_part_is_kept if capture else None,
        crowd=_charge_crowd,
        denial=NO,
    )


def charge_on_localstripe() -> Subject[Account]:
    """The same where nothing limits refunds."""
    return replace(charge(saved_card), exempt={"test_what_somebody_else_changed_is_not_overwritten": NO_LIMIT})


# --- captures --------------------------------------------------------------------------------------------------------


def _captured(account: Account, args: Args) -> int:
    charge = said(account, "GET", f"charges/{args['charge']}")
    return int(charge["captured"] and not charge["refunded"])


def _capture_refunded(account: Account, args: Args) -> None:
    said(account, "POST", "refunds", charge=args["charge"])


def capture(card: Callable[[Account], Mapping[str, str]]) -> Subject[Account]:
    """Capturing what somebody held."""
    return Subject(
        capability="stripe.capture",
        args=lambda account, _: {"charge": charged(account, card(account), capture="false")},
        effects=_captured,
        taken_away=_capture_refunded,
        denial=NO,
    )


def capture_on_localstripe() -> Subject[Account]:
    """The same where nothing recognises the second delivery."""
    return replace(capture(saved_card), exempt={"test_two_effects_of_one_call_are_both_accounted_for": NO_KEYS})


# --- refunds ---------------------------------------------------------------------------------------------------------


def _refunds(account: Account, args: Args) -> int:
    found = every(account, f"refunds?charge={args['charge']}&")
    return sum(one["amount"] == args["amount"] and one["status"] == "succeeded" for one in found)


def _refund_crowd(account: Account, args: Args) -> None:
    for _ in range(CROWD):
        said(account, "POST", "refunds", charge=args["charge"], amount=1)


def refund(card: Callable[[Account], Mapping[str, str]]) -> Subject[Account]:
    """Giving back a part of what somebody took."""
    return Subject(
        capability="stripe.refund",
        args=lambda account, _: {"charge": charged(account, card(account)), "amount": PART},
        effects=_refunds,
        other=lambda args: {**args, "amount": PART + 1},
        crowd=_refund_crowd,
        denial=NO,
    )


# --- payments --------------------------------------------------------------------------------------------------------


def payments_of(account: Account, args: Args) -> list[dict[str, Any]]:
    """Payments for the order that stand."""
    found = every(account, "payment_intents?expand[]=data.latest_charge&")
    return [
        one
        for one in found
        if one["metadata"].get("order") == args["order"]
        if one["status"] in {"succeeded", "requires_capture"} and not one["latest_charge"]["refunded"]
    ]


def _payment_args(how: str) -> Callable[[Account, str], Args]:
    def args(account: Account, word: str) -> Args:
        card = saved_card(account)
        paid_with = {"customer": card["customer"], "payment_method": card["source"]}
        return {"order": word, "amount": AMOUNT, "currency": "usd", "capture": how, **paid_with}

    return args


def _payment_refunded(account: Account, args: Args) -> None:
    for one in payments_of(account, args):
        said(account, "POST", "refunds", payment_intent=one["id"])


def _payment_cancelled(account: Account, args: Args) -> None:
    for one in payments_of(account, args):
        said(account, "POST", f"payment_intents/{one['id']}/cancel")


def _payment_crowd(account: Account, args: Args) -> None:
    paid_with = {"customer": args["customer"], "payment_method": args["payment_method"]}
    for _ in range(CROWD):
        said(account, "POST", "payment_intents", amount=AMOUNT, currency="usd", confirm="true", **paid_with)


PAYMENT: Subject[Account] = Subject(
    capability="stripe.payment",
    args=_payment_args("automatic"),
    effects=lambda account, args: len(payments_of(account, args)),
    other=lambda args: {**args, "amount": AMOUNT + 1},
    taken_away=_payment_refunded,
    crowd=_payment_crowd,
    denial=NO,
)
HELD_PAYMENT = replace(PAYMENT, args=_payment_args("manual"), taken_away=_payment_cancelled)
