"""What several folders of integration tests begin with."""

import pytest

from amends.testing.distributions import MadeDistributions
from amends.testing.projects import make_project


@pytest.fixture
def distributions(tmp_path, monkeypatch):
    """A folder of distributions with the tiny shop in it."""
    made = MadeDistributions(tmp_path / "site")
    made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    made.forget()


@pytest.fixture(scope="module")
def shop_project(tmp_path_factory):
    """Settings of a project with the tiny shop, for as long as the tests of a module run."""
    folder = tmp_path_factory.mktemp("shop")
    made = MadeDistributions(folder / "site")
    made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(made.folder))
        yield make_project(folder / "project")
        made.forget()
