"""A project with the tiny shop, and commands run in it."""

import json

import pytest

from amends import Engine
from amends.surfaces.cli import app
from amends.testing.projects import make_project


@pytest.fixture
def project(tmp_path, distributions, monkeypatch):
    """The path of a project's settings; `AMENDS_CONFIG` names it."""
    path = make_project(tmp_path / "project")
    monkeypatch.setenv("AMENDS_CONFIG", str(path))
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.delenv("AMENDS_PERSON", raising=False)
    return path


class Told:
    """What a command printed, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def amends(capsys):
    """Run a command in this process."""

    def running(*arguments, code=0):
        capsys.readouterr()
        answer = app.run([str(argument) for argument in arguments])
        told = Told(answer, *capsys.readouterr())
        assert answer == code, f"exit {answer}: {told.out}{told.err}"
        return told

    return running


@pytest.fixture
def engine(project):
    """A whole engine beside the commands: the agent's."""
    with Engine.open(project) as opened:
        yield opened


@pytest.fixture
def committed(engine):
    """A run that made one reservation and committed."""
    with engine.run(workflow="order", run_key="good", agent="coder") as run:
        run.call("shop.reserve", {"name": "lamp"})
    return run.run_id


@pytest.fixture
def waiting(engine):
    """A run whose notice waits for a person."""
    with engine.run(workflow="order", run_key="asks", agent="coder", initiator="noah") as run:
        run.call("shop.reserve", {"name": "lamp"})
        run.call("shop.notify", {"name": "customer"})
    return run.run_id
