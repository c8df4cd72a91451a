"""The fault matrix over the partner's ready contracts, which are data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amends.testing.conformance import AdapterMatrix, Args, Subject
from amends.testing.loopback import LoopbackSystem


def _reservations(partner: LoopbackSystem, args: Args) -> int:
    return sum(row["detail"]["order"] == args["order"] for row in partner.present("reservation"))


class TestPartner(AdapterMatrix[LoopbackSystem]):
    """The ready contracts of `package:partner`, over its loopback system."""

    subjects = (
        Subject(
            capability="partner.reserve_inventory",
            args=lambda _, word: {"order": word, "sku": "bolt", "quantity": 3},
            effects=_reservations,
            other=lambda args: {**args, "quantity": 4},
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
