"""Exchange rates, from a service of another team."""

from __future__ import annotations

import json
from urllib.request import ProxyHandler, build_opener

TIMEOUT_SECONDS = 1.5
_OPENER = build_opener(ProxyHandler({}))


def rate(base_url: str, currency: str) -> float:
    """How much one euro is in `currency`. Raises `OSError` if the service does not answer in time."""
    with _OPENER.open(f"{base_url}/rates/{currency}", timeout=TIMEOUT_SECONDS) as answer:
        return float(json.load(answer)["rate"])


def converted_cents(base_url: str, cents: int, currency: str) -> int:
    """An amount in euro cents, in hundredths of `currency`."""
    return round(cents * rate(base_url, currency))
