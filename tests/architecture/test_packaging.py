"""What the distributions declare, what the lock holds, and what the tools are told agree."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import amends

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = [ROOT, *PLUGINS]


def load(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def pins(name):
    """Return the locked version of every distribution in a lock file."""
    lines = (ROOT / "engine/locks" / name).read_text(encoding="utf-8").splitlines()
    found = [line.split(" ", 1)[0].partition("==") for line in lines if line and not line.startswith(" ")]
    return {name: Version(version) for name, _, version in found}


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_lock_satisfies_what_a_distribution_needs(folder):
    """Every declared requirement is locked, at a version that it accepts."""
    locked = pins("runtime.lock") | {"amends": Version(amends.__version__)}
    needed = [Requirement(text) for text in load(folder)["project"]["dependencies"]]
    assert [str(need) for need in needed if need.name not in locked] == []
    assert [str(need) for need in needed if not need.specifier.contains(locked[need.name])] == []


def test_dev_lock_holds_the_runtime_lock():
    """Tests run against the very versions that users are told to install."""
    runtime, dev = pins("runtime.lock"), pins("dev.lock")
    assert {name: dev.get(name) for name in runtime} == runtime


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_plugin_is_named_once(folder):
    """Folder, distribution, import package and entry point carry one name; its commands are of its own package."""
    project = load(folder)["project"]
    assert project["name"] == f"amends-{folder.name}"
    points = dict(project["entry-points"])
    commands = points.pop("amends.commands", {})
    assert all(command.startswith(f"amends_{folder.name}.") for command in commands.values())
    assert points == {"amends": {folder.name: f"amends_{folder.name}.plugin"}}


def test_tools_know_every_plugin():
    """A new plugin is type-checked and held to the import rules from its first day."""
    tool = load(ROOT)["tool"]
    packages = {f"amends_{folder.name}" for folder in PLUGINS}
    assert set(tool["importlinter"]["root_packages"]) == packages | {"amends"}
    assert set(tool["mypy"]["mypy_path"]) == {f"plugins/{folder.name}/src" for folder in PLUGINS} | {"engine"}
    for contract in tool["importlinter"]["contracts"]:
        named = set(contract.get("source_modules", contract.get("modules", []))) & packages
        assert named in (set(), packages), contract["name"]
