"""Why a mutant that no test notices changes nothing that anybody relies on: `survivors.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutation.workspace import Mutant

_FILE = Path(__file__).parent / "survivors.toml"


@dataclass(frozen=True)
class Reason:
    """One entry: a module, a pattern that matches a whole changed line or all of them, and why it is equivalent."""

    module: str
    mutant: str
    why: str

    def explains(self, mutant: Mutant) -> bool:
        """True if this is one of the changes meant."""
        texts = (*mutant.written, "\n".join(mutant.written))
        return mutant.module == self.module and any(re.fullmatch(self.mutant, text) for text in texts)


def reasons() -> tuple[Reason, ...]:
    """Every entry. An entry lacking one of its three fields, or without a why, is a `ValueError`."""
    found: list[Reason] = []
    for entry in tomllib.loads(_FILE.read_text(encoding="utf-8"))["survivor"]:
        if set(entry) != {"module", "mutant", "why"} or not entry["why"].strip():
            raise ValueError(f"survivors.toml: an entry has module, mutant and why: {entry}")
        found.append(Reason(**entry))
    return tuple(found)
