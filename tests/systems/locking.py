"""Pin the systems again: `locks/*.in` -> `*.lock` by uv, `npm/*/package.json` -> `package-lock.json` by npm.

A lock holds exact versions and digests and names no host, so it installs from whatever registry a machine has.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from systems.catalog import BLOCKS, ROOT, Block
from systems.install import install, npm

_UV = [
    *("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
]


def lock(*, upgrade: bool) -> None:
    """Write every lock anew; `upgrade` takes newer versions of what a wish leaves open."""
    for block in BLOCKS.values():
        if block.kind == "venv":
            _lock_python(block, upgrade=upgrade)
    install([BLOCKS["node"]])
    for block in BLOCKS.values():
        if block.kind == "npm":
            _lock_npm(block, upgrade=upgrade)


def _lock_python(block: Block, *, upgrade: bool) -> None:
    newer = ["--upgrade"] if upgrade else []
    command = [str(ROOT / ".uv" / "bin" / "uv"), *_UV, *newer, block.wish.name, "--output-file", block.lock.name]
    subprocess.run(command, cwd=block.wish.parent, check=True)


def _lock_npm(block: Block, *, upgrade: bool) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copy(block.wish, folder)
        if block.lock.is_file() and not upgrade:
            shutil.copy(block.lock, folder)
        npm("install", "--package-lock-only", folder=folder)
        found = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    for package in found["packages"].values():
        for address in ("resolved", "funding"):
            package.pop(address, None)
    found["packages"] = {path: package for path, package in found["packages"].items() if "extraneous" not in package}
    block.lock.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
