"""An invoice and its lines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line of an invoice."""

    text: str
    cents: int


@dataclass(frozen=True)
class Invoice:
    """What a customer owes. `cost_centre` is the customer's own word for who pays inside their house."""

    number: str
    lines: tuple[Line, ...]
    cost_centre: str = ""

    @property
    def total_cents(self) -> int:
        """The sum of all lines."""
        return sum(line.cents for line in self.lines)
