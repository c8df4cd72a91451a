"""Which loopback systems there are."""

from __future__ import annotations

from collections.abc import Callable

from amends.testing.loopback.partner import Partner
from amends.testing.loopback.system import System

SYSTEMS: dict[str, Callable[[], System]] = {
    "partner": Partner,
}


def build_system(name: str) -> System:
    """A fresh system by name.

    Raises:
        ValueError: there is no such system; the text names those that there are.
    """
    if name not in SYSTEMS:
        raise ValueError(f"no loopback system `{name}`; there are {', '.join(sorted(SYSTEMS))}")
    return SYSTEMS[name]()
