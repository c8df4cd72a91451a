"""The default policies that adapters bring pass their own tests, together with the baseline."""

import importlib

import pytest

from amends.backends.cedar.testing import check_policies, run_policy_tests
from amends.spi import AdapterContext

SECTIONS = {
    "git": {"repositories": {"billing": {"remote": "billing.git", "pull_requests": {"project": "acme/billing"}}}},
    "migrations": {"databases": {"billing": {"url": "sqlite:///billing.db", "scripts": "migrations"}}},
}


class Shelf:
    """Keeps what hooks hand over."""

    def __init__(self):
        self.contracts, self.contributions = [], []

    def capability(self, capability):
        self.contracts.append(capability.contract)

    def policies(self, contribution):
        self.contributions.append(contribution)


def registered(adapter, folder):
    context = AdapterContext(
        name=adapter,
        instance=adapter,
        tenant="acme",
        environment="staging",
        options=SECTIONS[adapter],
        secret=lambda reference: reference,
        base_path=str(folder),
    )
    shelf = Shelf()
    plugin = importlib.import_module(f"amends_{adapter}.plugin")
    plugin.amends_register_capabilities(context, shelf)
    plugin.amends_register_policies(context, shelf)
    return shelf


@pytest.mark.parametrize("adapter", sorted(SECTIONS))
def test_defaults_of_an_adapter_hold(adapter, tmp_path):
    """The policies load beside the baseline without a finding, and every test that the adapter brings passes."""
    shelf = registered(adapter, tmp_path)
    (contribution,) = shelf.contributions
    loaded = {
        "contracts": shelf.contracts,
        "contributions": {adapter: contribution},
        "site_bundle": None,
        "known_labels": {},
    }
    assert [str(found) for found in check_policies(**loaded)] == []
    results = run_policy_tests(**loaded)
    assert [str(result) for result in results if not result.passed] == []
    assert {result.file for result in results if adapter in result.file}
