"""The fault matrix over the ready contracts, which are data: the partner's whole, of Stripe and the shop one each.

`tests/real` has all of Stripe's and the shop's, on more systems of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Subject
from amends.testing.loopback import LoopbackSystem
from systems.localstripe import LocalStripe
from systems.matrices.people import maya_is_told
from systems.matrices.shop import QUANTITY, REFUND, Shop, ShopMatrix
from systems.matrices.stripe import StripeMatrix, charge_on_localstripe

Count = Callable[[LoopbackSystem, Args], int]


def _ending(how: str) -> Callable[[LoopbackSystem, Args], None]:
    return lambda partner, _: partner.configure(export_end=how)


def _of(kind: str, resource: str) -> Count:
    return lambda partner, args: sum(row["resource"] == resource.format(**args) for row in partner.present(kind))


def _exports(partner: LoopbackSystem, args: Args) -> int:
    partner.foreign("GET", "/v1/exports")  # operations end when somebody asks, and belong to whoever asked
    made = partner.effects("export", state="present", actor=None)
    return sum(row["resource"] == f"export:{args['title']}" for row in made)


def _title(partner: LoopbackSystem, word: str) -> Args:
    partner.configure(export_seconds=0.0, export_end="done")
    return {"title": word}


def _released(partner: LoopbackSystem, args: Args) -> None:
    [row] = [row for row in partner.present("reservation") if row["resource"] == f"order:{args['order']}"]
    partner.foreign("POST", f"/v1/reservations/{row['reference']}/release")


def _readdressed(partner: LoopbackSystem, args: Args) -> None:
    partner.foreign("PUT", f"/v1/orders/{args['order']}/carrier-instructions", {"address": {"line1": "theirs"}})


def _still_readdressed(partner: LoopbackSystem, args: Args) -> bool:
    now = partner.foreign("GET", f"/v1/orders/{args['order']}/carrier-instructions")["body"]
    return bool(now["address"]["line1"] == "theirs")


class TestPartner(AdapterMatrix[LoopbackSystem]):
    """The ready contracts of `package:partner`, over its loopback system."""

    subjects = (
        Subject(
            capability="partner.reserve_inventory",
            args=lambda _, word: {"order": word, "sku": "bolt", "quantity": 3},
            effects=_of("reservation", "order:{order}"),
            other=lambda args: {**args, "quantity": 4},
            taken_away=_released,
        ),
        Subject(
            capability="partner.queue_adjustment",
            args=lambda _, word: {"order": word, "amount_minor": -500, "currency": "EUR", "reason": "late"},
            effects=_of("adjustment", "order:{order}"),
            other=lambda args: {**args, "amount_minor": -501},
            text="reason",
        ),
        Subject(
            capability="partner.set_carrier_instructions",
            args=lambda _, word: {"order": word, "address": {"line1": "1 High St"}, "notes": "ring twice"},
            effects=_of("carrier_instructions", "order:{order}"),
            text="notes",
            edited=_readdressed,
            kept=_still_readdressed,
        ),
        Subject(
            capability="partner.submit_for_approval",
            args=lambda _, word: {"order": word, "kind": "express"},
            effects=_of("submission", "order:{order}"),
        ),
        Subject(
            capability="partner.make_export",
            args=_title,
            effects=_exports,
            later={"done": _ending("done"), "failed": _ending("failed"), "gone": _ending("expired")},
        ),
        Subject(
            capability="partner.notify_partner",
            args=lambda _, word: {"order": word, "message": "it is on its way"},
            effects=_of("notification", "order:{order}"),
            text="message",
        ),
        Subject(
            capability="partner.buy_report",
            args=lambda _, word: {"subject": word},
            effects=_of("report", "subject:{subject}"),
        ),
    )

    @contextmanager
    def system(self, folder: Path) -> Iterator[LoopbackSystem]:
        with LoopbackSystem.start("partner") as partner:
            yield partner

    def upstream(self, system):
        return system.url

    def adapters(self, system, address):
        options = {"contracts": "package:partner", "token": "env:KIT_TOKEN", "account": "acct_main"}
        return {"partner": {"plugin": "http", "base_url": address, **options}}

    def secrets(self, system):
        return {"KIT_TOKEN": "partner-token"}


class TestStripe(StripeMatrix):
    """Charging a card on localstripe, which reads no keys."""

    subjects = (charge_on_localstripe(),)

    def server(self) -> LocalStripe:
        return LocalStripe.start()


class LoopbackShop(Shop):
    """The loopback shop, where somebody else acts without a credential."""

    def __init__(self, system: LoopbackSystem, person: Mapping[str, Json]) -> None:
        super().__init__(f"{system.url}/admin-api", "shop-token", person)
        self._system = system

    def ask(self, query: str, **variables: Json) -> Any:
        said = self._system.foreign("POST", "/admin-api", {"query": query, "variables": variables})["body"]
        assert "errors" not in said, said
        return said["data"]

    def placed(self) -> tuple[str, str]:
        order = self._system.control("place_order", quantity=QUANTITY)
        return order["order"], order["line"]


class TestShop(ShopMatrix):
    """Giving money back, which nothing but our look keeps from happening twice."""

    subjects = (REFUND,)

    @contextmanager
    def system(self, folder: Path) -> Iterator[Shop]:
        with LoopbackSystem.start("shop") as shop, maya_is_told() as person:
            yield LoopbackShop(shop, person)
