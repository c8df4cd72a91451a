"""What the ready Stripe contracts rely on, asked of a server with idempotency keys and of one without."""

from __future__ import annotations

import pytest

from systems.suites import stripe


@pytest.mark.parametrize(
    ("fixture", "system"), [("stripe_mock", "stripe-stateful-mock"), ("localstripe", "localstripe")]
)
def test_the_server_does_what_the_suite_says_of_it(request, fixture, system):
    """Every behaviour holds, or is listed with the reason why that is no harm; a listed one that holds is a problem."""
    server = request.getfixturevalue(fixture)
    assert stripe.problems(system, server.url, server.key) == []
