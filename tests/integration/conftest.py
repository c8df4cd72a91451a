"""What several folders of integration tests begin with."""

import pytest

from amends.testing.distributions import MadeDistributions


@pytest.fixture
def distributions(tmp_path, monkeypatch):
    """A folder of distributions with the tiny shop in it."""
    made = MadeDistributions(tmp_path / "site")
    made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    made.forget()
