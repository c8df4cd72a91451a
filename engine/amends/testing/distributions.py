"""Tiny distributions, made on the fly: a module and a `.dist-info` folder, found once the folder is on `sys.path`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path


class MadeDistributions:
    """A folder that distributions are put into. Put it on `sys.path`, and call `forget` when done with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        name: str,
        source: str = "",
        *,
        entry_point: str | None = None,
        target: str = "",
        attribute: str = "",
        group: str = "amends",
        version: str = "1.0",
    ) -> None:
        """Install distribution `name`, which offers `entry_point` (default: its name): `target`, or a module made of
        `source` (or its `attribute`).
        """
        module = f"made_{name.replace('-', '_')}"
        if not target:
            target = f"{module}:{attribute}" if attribute else module
            self._modules.add(module)
            (self.folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        points = f"[{group}]\n{entry_point or name} = {target}\n"
        (info / "entry_points.txt").write_text(points, encoding="utf-8")

    def forget(self) -> None:
        """Drop the made modules that were imported."""
        for module in self._modules:
            sys.modules.pop(module, None)
