"""What a move notes down before each commit, so that a lost answer can be asked after: a file per action.

The line is on the disk before COMMIT is sent. Whoever probes later, in any process of this host, asks the server
what became of the transaction; that also tells our own move from the same move made by somebody else.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Noted:
    """The transactions of all attempts of one action, and whether a statement ran outside of any."""

    transactions: tuple[int, ...] = ()
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """The note of one action. `file` is None where nothing is to be noted."""

    file: Path | None

    def transaction(self, number: int) -> None:
        """Note a transaction that is about to be committed. Raises `OSError`: then it must not be committed."""
        self._append({"transaction": number})

    def outside(self) -> None:
        """Note that a statement is about to run outside of a transaction."""
        self._append({"outside": True})

    def read(self) -> Noted:
        """What was noted; nothing for a file that is not there. A line cut short was never followed by its commit."""
        if self.file is None or not self.file.is_file():
            return Noted()
        lines = self.file.read_text(encoding="utf-8").split("\n")[:-1]
        facts = [json.loads(line) for line in lines]
        numbers = tuple(int(fact["transaction"]) for fact in facts if "transaction" in fact)
        return Noted(numbers, any("outside" in fact for fact in facts))

    def _append(self, fact: dict[str, int | bool]) -> None:
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as note:
            note.write(json.dumps(fact) + "\n")
            note.flush()
            os.fsync(note.fileno())
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
