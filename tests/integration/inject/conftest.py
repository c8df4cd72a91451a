"""A project whose adapters have a sandbox: the loopback partner as the user's staging, and one as production."""

import json
import os
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from amends import Engine
from amends.surfaces.cli import app
from amends.testing.distributions import MadeDistributions
from amends.testing.loopback import LoopbackSystem

SETTINGS = """
[project]
tenant = "acme"
environment = "production"
owner = "maya"

[engine]
lease_seconds = 30.0
skew_seconds = 0.0

[people.maya]
roles = ["operations"]
tier = 2

[adapters.partner]
plugin = "http"
base_url = "{production}"
contracts = "contracts"
token = "env:PARTNER_TOKEN"
account = "acct_main"
"""
DRAWER = """
[adapters.{name}]
plugin = "drawer"
folder = "production/{name}"
{options}

[adapters.{name}.sandbox]
folder = "staging/{name}"
"""
SANDBOX = """
[adapters.partner.sandbox]
base_url = "{staging}"
"""


@pytest.fixture
def staging():
    """The partner's test account."""
    with LoopbackSystem.start("partner", settings={"stock": {"kettle": 500}}) as system:
        yield system


@pytest.fixture
def production():
    """The partner that no injection may reach."""
    with LoopbackSystem.start("partner", settings={"stock": {"kettle": 500}}) as system:
        yield system


@pytest.fixture
def project(tmp_path, staging, production, monkeypatch):
    """The project's folder; it is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    text = (SETTINGS + SANDBOX).format(production=production.url, staging=staging.url)
    (folder / "amends.toml").write_text(text)
    with as_file(files("amends.testing.crash") / "contracts") as contracts:
        shutil.copytree(contracts, folder / "contracts")
    monkeypatch.setenv("PARTNER_TOKEN", "partner-token")
    monkeypatch.delenv("AMENDS_CONFIG", raising=False)
    monkeypatch.chdir(folder)
    return folder


class Told:
    """What the command printed, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def world(self, fault):
        """The one world of a fault."""
        (found,) = [world for world in self.json["worlds"] if world["fault"] == fault]
        return found

    def verdicts(self):
        """(fault, point) -> verdict."""
        return {(w["fault"], w["step"], w["point"]): w["verdict"] for w in self.json["worlds"]}


@pytest.fixture
def inject(project, capsys):
    """Run `amends inject` on a workflow given as text, or with other words."""

    def running(workflow, *words, code=0):
        if workflow:
            Path("flow.toml").write_text(workflow)
            words = ("flow.toml", *words)
        capsys.readouterr()
        answer = app.run(["inject", *words, "--wait-seconds", "20"])
        told = Told(answer, *capsys.readouterr())
        assert answer == code, f"exit {answer}: {told.out}{told.err}"
        return told

    return running


@pytest.fixture
def drawer(project, tmp_path, monkeypatch):
    """Give the project a drawer: an adapter of the site, whose effects are files. Answers its staging folder."""
    made = MadeDistributions(tmp_path / "site")
    made.add("amends-drawer", Path(__file__).with_name("drawer_plugin.py").read_text(), entry_point="drawer")
    monkeypatch.syspath_prepend(str(made.folder))
    path = os.pathsep.join(filter(None, [str(made.folder), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)  # for the processes that are killed
    monkeypatch.setenv("DRAWER_KEY", "open-sesame")

    def giving(name="drawer", **options):
        """`lies`: its undo does nothing and says so to nobody; `rungs`: the ladder of its inverses."""
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
        with (project / "amends.toml").open("a") as settings:
            settings.write(DRAWER.format(name=name, options=lines))
        return project / "staging" / name

    yield giving
    made.forget()


@pytest.fixture
def recorded(project):
    """A production run that its agent left after these calls: (capability, args) or a function of the results."""

    def recording(*calls):
        with Engine.open(project, mirror=False) as engine:
            run = engine.run(workflow="orders", run_key="o-1", agent="order-agent")
            results = []
            for call in calls:
                capability, args = call(results) if callable(call) else call
                results.append(run.call(capability, args))
            run.finish()
        return results

    return recording
