"""Choices: everything in a simulated world that could have gone another way is asked here, and nowhere else.

A seed answers at random, and always the same.
"""

from __future__ import annotations

import random  # noqa: TID251 - a seeded generator of its own: a replay needs the same numbers
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choices(Protocol):
    """Who decides."""

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        """One of the options; the first is the ordinary course of things. `what` says what is being decided."""
        ...


class Seeded:
    """Decides at random from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same numbers, not secret ones

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        return self._random.choices(options, weights)[0]
