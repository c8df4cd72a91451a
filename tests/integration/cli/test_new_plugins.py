"""`amends plugins new` makes what it says, and touches nothing that is there."""

import pytest

from amends.testing.distributions import MadeDistributions


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def texts(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_distribution_is_made_in_a_folder_of_its_name(here, amends):
    """Names are filled in, in paths and in files; each file is told once."""
    told = amends("plugins", "new", "my_shop")
    made = texts(here / "amends-my-shop")
    assert sorted(told.out.splitlines()) == sorted(made)
    assert 'name = "amends-my-shop"' in made["pyproject.toml"]
    assert 'my_shop = "amends_my_shop.plugin"' in made["pyproject.toml"]
    assert 'MyShop::Action::"my_shop.create_note"' in made["src/amends_my_shop/policies/my_shop.cedar"]
    assert "env:MY_SHOP_TOKEN" in made["README.md"]
    assert "${{ matrix.python }}" in made[".github/workflows/test.yml"]
    assert [name for name, text in made.items() if "NAME" in name or "$name" in text or ".tmpl" in name] == []


def test_the_folder_can_be_named(here, amends):
    """An empty one that exists is used."""
    (here / "adapter").mkdir()
    told = amends("plugins", "new", "demo", "--folder", "adapter", "--json")
    assert told.json["folder"] == str(here / "adapter")
    assert sorted(told.json["written"]) == sorted(texts(here / "adapter"))


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_nothing_is_overwritten(here, amends, kind):
    """A folder that holds anything, or a file in its place, is left as it is."""
    taken = here / "amends-demo"
    if kind == "folder":
        taken.mkdir()
        (taken / "notes.txt").write_text("mine")
    else:
        taken.write_text("mine")
    told = amends("plugins", "new", "demo", code=5)
    assert "exists already" in told.err
    assert set(texts(here).values()) == {"mine"}


@pytest.mark.parametrize("name", ["Demo", "2do", "de-mo", "de__mo", "demo_", "", "dé", "../demo", "a" * 41])
def test_a_name_that_cannot_be_a_prefix_is_refused(here, amends, name):
    """With what a name is made of; nothing is made."""
    told = amends("plugins", "new", name, code=2)
    assert f"`{name}` cannot be an adapter's name" in told.err
    assert list(here.iterdir()) == []


def test_a_word_of_the_engine_is_refused(here, amends):
    """Its policies would share the engine's namespace."""
    assert "`amends` is a word of the engine" in amends("plugins", "new", "amends", code=2).err
    assert list(here.iterdir()) == []


def test_the_name_of_an_installed_plugin_is_refused(here, amends, tmp_path, monkeypatch):
    """Two distributions of one name would both be left out by the host."""
    made = MadeDistributions(tmp_path / "site")
    made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
    monkeypatch.syspath_prepend(str(made.folder))
    told = amends("plugins", "new", "shop", code=5)
    assert "the plugin `shop` is installed already, by amends-shop 1.0" in told.err
    assert list(here.iterdir()) == []
