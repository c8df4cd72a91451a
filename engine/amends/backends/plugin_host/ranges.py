"""Version ranges of the SPI, as a plugin states them: `SPI = ">=1.0,<2"`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*")
_OPERATORS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def supports(spi_range: str, version: str) -> bool:
    """True if `version` satisfies every clause of `spi_range`. Raises `ValueError` for a clause it cannot read."""
    return all(_holds(clause, _numbers(version)) for clause in spi_range.split(",") if clause.strip())


def _holds(clause: str, version: tuple[int, ...]) -> bool:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise ValueError(f"`{clause.strip()}` is no version clause")
    wanted = _numbers(match[2])
    width = max(len(wanted), len(version))
    return _OPERATORS[match[1]](_padded(version, width), _padded(wanted, width))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _padded(numbers: tuple[int, ...], width: int) -> tuple[int, ...]:
    return numbers + (0,) * (width - len(numbers))
