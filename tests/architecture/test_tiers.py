"""The two test tiers: what they install is pinned and names no host, and the real one is asked for."""

import json
import re
import subprocess
import sys

import pytest

from systems.catalog import BLOCKS, ROOT, blocks
from systems.install import is_installed

PYTHONS = [block for block in BLOCKS.values() if block.kind == "venv"]
NODES = [block for block in BLOCKS.values() if block.kind == "npm"]


def named(block):
    return block.name


@pytest.mark.parametrize("block", PYTHONS, ids=named)
def test_a_python_lock_names_no_host_and_hashes_everything(block):
    text = block.lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", text.replace("    --hash=sha256:", ""), re.MULTILINE), "an option beside --hash"
    pins = re.split(r"\n(?=\S)", text.strip())
    assert [pin for pin in pins if not re.match(r"[a-z0-9.-]+==\S+", pin) or "--hash=sha256:" not in pin] == []


@pytest.mark.parametrize("block", NODES, ids=named)
def test_an_npm_lock_names_no_host_and_digests_everything(block):
    lock = json.loads(block.lock.read_text(encoding="utf-8"))
    assert "://" not in block.lock.read_text(encoding="utf-8")
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert packages
    assert [path for path, package in packages.items() if "integrity" not in package or "resolved" in package] == []


@pytest.mark.parametrize("block", BLOCKS.values(), ids=named)
def test_a_system_is_asked_for_at_one_version(block):
    """Its behaviour is what tests are written against, so a newer one comes in by a change that shows it."""
    wish = block.wish.read_text(encoding="utf-8")
    if block.kind == "npm":
        asked = json.loads(wish)["dependencies"]
        assert block.package in asked
        assert [version for version in asked.values() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    else:
        lines = [line.split("#")[0].strip() for line in wish.splitlines()]
        assert [line for line in lines if not re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line)] == []


def test_the_pip_tier_is_installed():
    """`make test` brings it before it runs a test; a missing system is an error."""
    assert [block.name for block in blocks("pip") if not is_installed(block)] == []


def test_the_real_tier_is_collected_only_by_its_path():
    """`make test` on a machine without Node must not meet it."""
    others = [f"--ignore={path}" for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "real"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests", *others]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 5, "it collected something"
