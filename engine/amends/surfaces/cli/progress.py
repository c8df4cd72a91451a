"""What long work shows on a terminal: where it is, in one line that goes away."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from amends.ports.services import Milestone
from amends.surfaces.cli.output import Output

if TYPE_CHECKING:
    from rich.status import Status

_WORDS: dict[str, str] = {
    "before_probe": "asking the system",
    "before_undo": "undoing",
    "before_verify": "reading again",
    "before_correction": "correcting",
    "before_release": "releasing",
    "after_freeze": "frozen",
}


class Watching:
    """A `Progress` for the command line. Silent unless standard error is a terminal."""

    def __init__(self, output: Output) -> None:
        self._console = output.talk
        self._status: Status | None = None
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("looking for runs")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Say what goes on now."""
        self._counts[milestone] += 1
        if self._status is not None and milestone in _WORDS:
            done = f"{self._counts['settled']} settled, {self._counts['after_undo']} undone"
            self._status.update(f"{_WORDS[milestone]} · run …{run_id[-6:]} · {done}")
