"""A project whose shop keeps its effects as files, a good backup of it, and commands run in it."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from amends import Engine
from amends.surfaces.cli import app


@pytest.fixture(scope="module")
def original(shop_project):
    """A project with two committed runs and one that waits for a person. Nobody touches it: tests take copies."""
    with Engine.open(shop_project) as engine:
        for key in ("1", "2"):
            with engine.run(workflow="order", run_key=key, agent="coder") as run:
                run.call("shop.reserve", {"name": f"lamp-{key}"})
        with engine.run(workflow="order", run_key="3", agent="coder") as run:
            run.call("shop.reserve", {"name": "lamp-3"})
            run.call("shop.notify", {"name": "customer"})
        engine.ledger.refresh()
    return shop_project


@pytest.fixture
def project(original, tmp_path, monkeypatch):
    """The settings of a copy, which `AMENDS_CONFIG` names."""
    shutil.copytree(original.parent, tmp_path / "project", symlinks=True)
    monkeypatch.setenv("AMENDS_CONFIG", str(tmp_path / "project" / original.name))
    return tmp_path / "project" / original.name


@pytest.fixture
def storage(project):
    return project.parent / ".amends"


@pytest.fixture
def journal_file(storage):
    return storage / "journal.sqlite"


@pytest.fixture
def effects(project):
    """How many things the shop really holds."""
    return lambda: len(list((project.parent / "shop").glob("reservation-*")))


class Told:
    """What a command printed, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def problems(self):
        """What `ledger verify` found, or why it could not begin."""
        return json.loads(self.out).get("problems", [self.said])

    @property
    def said(self):
        """Everything that was printed."""
        return self.out + self.err


@pytest.fixture
def amends(project, capsys):
    """Run a command on the copy, in this process."""

    def running(*arguments):
        capsys.readouterr()
        code = app.run([str(argument) for argument in arguments])
        return Told(code, *capsys.readouterr())

    return running


@pytest.fixture
def safe(project, amends, storage, tmp_path):
    """A backup from before the attack. Called: it comes back whole in place of what is there, and verifies."""
    copy = tmp_path / "backup"
    assert amends("ledger", "backup", copy).code == 0
    before = events_in(copy / "journal.sqlite")
    ever = events_ever(copy / "journal.sqlite")

    def come_back():
        storage.rename(tmp_path / "attacked")
        assert amends("ledger", "restore", copy).code == 0
        assert events_in(storage / "journal.sqlite") == before
        told = amends("ledger", "rebuild", "--json")
        assert (told.code, json.loads(told.out)["events"], told.problems) == (0, ever, [])
        assert amends("ledger", "verify").code == 0

    return come_back


@pytest.fixture
def refused_backup(amends, storage, tmp_path):
    """A backup of the damaged journal is refused at the latest where it would be put to use."""

    def check():
        if amends("ledger", "backup", tmp_path / "bad").code == 0:
            aside = storage.rename(tmp_path / "aside")
            assert amends("ledger", "restore", tmp_path / "bad").code == 8
            assert not storage.exists()
            aside.rename(storage)

    return check


def events_in(database):
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT * FROM events ORDER BY seq").fetchall()


def events_ever(database):
    """Those that were sealed count."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT events FROM totals").fetchone()[0]


@pytest.fixture
def shell(journal_file):
    """Another program's own SQLite: statements of somebody who knows no better. The last one's answer."""

    def run(*statements):
        with closing(sqlite3.connect(journal_file, isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    return run


@pytest.fixture
def killed(project, storage, tmp_path):
    """The storage folder as a kill leaves it: what was acknowledged last is in the log alone."""
    with Engine.open(project) as engine:
        with engine.run(workflow="order", run_key="late", agent="coder") as run:
            run.call("shop.reserve", {"name": "late"})
        shutil.copytree(storage, tmp_path / "as-killed")
    shutil.rmtree(storage)
    (tmp_path / "as-killed").rename(storage)
    assert (storage / "journal.sqlite-wal").stat().st_size
    return storage
