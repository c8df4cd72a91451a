"""A project whose adapters have a sandbox: the loopback partner as the user's staging, and one as production."""

import json
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from amends.surfaces.cli import app
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
SANDBOX = """
[adapters.partner.sandbox]
base_url = "{staging}"
"""
RESERVE = """
workflow = "orders"
agent = "order-agent"

[values]
sku = "kettle"

[[script]]
call = "partner.reserve_inventory"
as = "reserve"
args = { order = "o-${world}", sku = "${values.sku}", quantity = 2 }
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
