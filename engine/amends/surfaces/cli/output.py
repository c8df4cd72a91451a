"""What commands print: one JSON document or tables on standard output, talk on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from amends.core.errors import AmendsError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PIPE_WIDTH = 160  # columns when nobody says how wide the output is


@dataclass
class Output:
    """Where a command's words go. `as_json`: data is one JSON document, and nothing else is on standard output."""

    as_json: bool = False
    _consoles: dict[bool, Console] = field(default_factory=dict[bool, "Console"])

    def document(self, value: object) -> None:
        """Print the one JSON document."""
        print(json.dumps(value, ensure_ascii=False, indent=2, default=str))

    def line_document(self, value: object) -> None:
        """Print one JSON value on a line of its own, for output that has no end."""
        print(json.dumps(value, ensure_ascii=False, default=str), flush=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
        """Print a table; cells are texts in rich's markup-free form, or renderables."""
        from rich.table import Table

        made = Table(*columns, title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for row in rows:
            made.add_row(*(_cell(value) for value in row))
        self.show(made)

    def fields(self, values: Mapping[str, object]) -> None:
        """Print names and values, one a line; empty ones are left out."""
        from rich.table import Table

        made = Table(box=None, show_header=False, pad_edge=False)
        for name, value in values.items():
            if value not in {"", None}:
                made.add_row(_cell(name, "bold"), _cell(value))
        self.show(made)

    def show(self, renderable: RenderableType) -> None:
        """Print something rich on standard output."""
        self._console(talk=False).print(renderable)

    def heading(self, text: str) -> None:
        """Print a heading on standard output."""
        from rich.text import Text

        self.show(Text(f"\n{text}", style="bold"))

    def line(self, text: str, style: str = "") -> None:
        """Print a line of data."""
        from rich.text import Text

        self.show(Text(text, style=style))

    def say(self, text: str, style: str = "") -> None:
        """Talk; a sentence is not broken, so that it can be searched for."""
        from rich.text import Text

        self._console(talk=True).print(Text(text, style=style), soft_wrap=True)

    def error(self, error: AmendsError) -> None:
        """Say what went wrong and the remedy; with `--json` the error is the document."""
        if self.as_json:
            self.document({"error": error.as_dict()})
            return
        self.say(f"error: {error.message}", "bold red")
        if error.hint:
            self.say(f"  {error.hint}")

    @property
    def talk(self) -> Console:
        """The console of standard error, for progress."""
        return self._console(talk=True)

    def _console(self, *, talk: bool) -> Console:
        if talk not in self._consoles:
            from rich.console import Console

            stream = sys.stderr if talk else sys.stdout
            wide = None if stream.isatty() or os.environ.get("COLUMNS") else _PIPE_WIDTH
            self._consoles[talk] = Console(file=stream, width=wide, highlight=False, soft_wrap=False)
        return self._consoles[talk]


def moment(at_us: int | None) -> str:
    """A time for people: UTC, to the second."""
    if at_us is None or at_us <= 0:
        return ""
    return datetime.fromtimestamp(at_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cell(value: object, style: str = "") -> RenderableType:
    from rich.text import Text

    if hasattr(value, "__rich__") or hasattr(value, "__rich_console__"):
        return value  # type: ignore[return-value] # it is what it says it is
    return Text(_word(value), style=style)


def _word(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_word(one) for one in cast("Sequence[object]", value))
    return str(value)
