"""Choices: everything in a simulated world that could have gone another way is asked here, and nowhere else.

A seed answers at random, always the same; an explorer answers with every combination there is, one after the other.
"""

from __future__ import annotations

import random
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
        self._random = random.Random(seed)  # noqa: S311, TID251 - a replay needs the same numbers, not secret ones

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        return self._random.choices(options, weights)[0]


class Explorer:
    """Decides every way: call `next_world` after each world, until it says that there is none left.

    A depth-first walk over the tree of choices. `depth` bounds the number of choices that are varied at all.
    """

    def __init__(self) -> None:
        self._path: list[tuple[int, int]] = []  # (taken, of how many)
        self._place = 0
        self.worlds = 0

    def pick(self, what: str, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        if len(options) == 1:
            return options[0]
        if self._place == len(self._path):
            self._path.append((0, len(options)))
        taken, count = self._path[self._place]
        if count != len(options):
            raise RuntimeError(f"the world is not replayed exactly: `{what}` had {count} ways, now {len(options)}")
        self._place += 1
        return options[taken]

    def next_world(self) -> bool:
        """Go on to the next combination; False if all were seen."""
        self.worlds += 1
        self._place = 0
        while self._path:
            taken, count = self._path.pop()
            if taken + 1 < count:
                self._path.append((taken + 1, count))
                return True
        return False

    @property
    def path(self) -> str:
        """The choices of this world, for a report."""
        return "".join(f"{taken}" if count < 10 else f"({taken})" for taken, count in self._path)  # noqa: PLR2004
