"""The suites that also run on independent systems, on the loopback ones: the two must answer alike."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from amends.testing.loopback import LoopbackSystem

SUITES = Path(__file__).parents[1] / "systems" / "suites"


def suite(name: str) -> ModuleType:
    """A suite by its file: tests do not import each other."""
    spec = importlib.util.spec_from_file_location(f"suite_{name}", SUITES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["slack", "slack_adapter"])
def test_the_slack_loopback_answers_as_the_suite_says(slack, name):
    """Every behaviour that the adapter relies on, and every life of an effect."""
    slack.system.control("seed_user", id="U0MAYA", name="maya", email="maya@example.test")
    slack.system.control("seed_channel", id="C0AMENDS", name="amends", members=["U0AGENT", "U0MAYA"])
    assert suite(name).problems("loopback", f"{slack.system.url}/api", "xoxb-loopback") == []


def git(folder: Path, *args: str) -> None:
    name = {
        f"GIT_{role}_{part}": "suite@example.test" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"], **name}
    subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, timeout=30, env=plain)


def test_the_github_loopback_answers_as_the_suite_says(tmp_path):
    """Pull requests over a real bare repository, with a branch for each behaviour."""
    github = suite("github")
    remote, work = tmp_path / "billing.git", tmp_path / "work"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(tmp_path, "init", "-q", "-b", "main", str(work))
    git(work, "commit", "-q", "--allow-empty", "-m", "start")
    for branch in github.branches():
        git(work, "checkout", "-q", "-b", branch, "main")
        git(work, "commit", "-q", "--allow-empty", "-m", branch)
    git(work, "push", "-q", str(remote), "--all")
    with LoopbackSystem.start("github", settings={"repositories": {"acme/billing": str(remote)}}) as system:
        assert github.problems("loopback", system.url, "ghp-loopback", "acme/billing") == []
