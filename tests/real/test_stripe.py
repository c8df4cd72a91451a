"""The ready Stripe contracts on a server that keeps idempotency keys and on one that does not: suite and matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import amends_http
from systems.localstripe import LocalStripe
from systems.matrices.stripe import (
    HELD_PAYMENT,
    PAYMENT,
    Account,
    StripeMatrix,
    any_card,
    capture,
    capture_on_localstripe,
    charge,
    charge_on_localstripe,
    refund,
    saved_card,
)
from systems.stripe_mock import StripeMock
from systems.suites import stripe

CONTRACTS = Path(amends_http.__file__).parent / "contracts" / "stripe"


@pytest.mark.parametrize(
    ("fixture", "system"), [("stripe_mock", "stripe-stateful-mock"), ("localstripe", "localstripe")]
)
def test_the_server_does_what_the_suite_says_of_it(request, fixture, system):
    """Every behaviour holds, or is listed with the reason why that is no harm; a listed one that holds is a problem."""
    server = request.getfixturevalue(fixture)
    assert stripe.problems(system, server.url, server.key) == []


class _Keyed(StripeMatrix):
    """On stripe-stateful-mock, which keeps keys and limits, and knows no payment intents."""

    def server(self) -> StripeMock:
        return StripeMock.start()


class TestKeyed(_Keyed):
    """What is taken, captured and given back."""

    subjects = (charge(any_card), capture(any_card), refund(any_card))


class TestKeyedHold(_Keyed):
    """What is only held is let go."""

    subjects = (charge(any_card, capture=False),)


class _Unkeyed(StripeMatrix):
    """On localstripe, which keeps neither keys nor limits."""

    def server(self) -> LocalStripe:
        return LocalStripe.start()


class TestUnkeyed(_Unkeyed):
    """What is taken, captured and given back."""

    subjects = (charge_on_localstripe(), capture_on_localstripe(), refund(saved_card))


class TestUnkeyedHold(_Unkeyed):
    """What is only held is let go."""

    subjects = (charge(saved_card, capture=False),)


class _Payments(_Unkeyed):
    """Payment intents, with a contract that does without the filters that localstripe refuses on their list."""

    subjects = (PAYMENT,)
    filters = 'customer = "{customer}", "created[gt]" = "{since}", '

    @contextmanager
    def system(self, folder: Path) -> Iterator[Account]:
        text = (CONTRACTS / "payment.toml").read_text(encoding="utf-8")
        assert self.filters in text
        (folder / "payment.toml").write_text(text.replace(self.filters, ""), encoding="utf-8")
        type(self).contracts = str(folder)
        with super().system(folder) as account:
            yield account


class TestPayments(_Payments):
    """Payments that went through are refunded."""


class TestHeldPayments(_Payments):
    """Payments that are only authorized are cancelled."""

    subjects = (HELD_PAYMENT,)
