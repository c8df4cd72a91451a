"""OpenFeature's own flagd provider as an independent reader of a flag file."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from systems.catalog import BLOCKS, HERE
from systems.server import require

_BLOCK = BLOCKS["flagd"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the provider made of a flag; `error` is OpenFeature's code (FLAG_NOT_FOUND, PARSE_ERROR …) or empty."""

    value: Any
    variant: str
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class FlagdReader:
    """Reads flagd files in a process of its own for each look, so that nothing is remembered between two."""

    @classmethod
    def ready(cls) -> Self:
        """The reader; raises NotInstalled."""
        require(_BLOCK)
        return cls()

    def read(self, path: Path, flag: str, default: bool | float | str | dict[str, Any] = False, **context: Any) -> Seen:
        """Evaluate a flag, of the type of `default`, which is what comes back if the file has no such flag."""
        asked = json.dumps({"path": str(path), "flag": flag, "default": default, "context": context})
        command: list[str | Path] = [_BLOCK.python, HERE / "launch" / "flagd_reader.py", asked]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return Seen(**json.loads(said))
