"""The fault matrix over the partner's ready contracts, which are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from amends.testing.conformance import AdapterMatrix, Args, Subject
from amends.testing.loopback import LoopbackSystem

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
