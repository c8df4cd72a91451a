"""What a flag looks like in one environment, as values to compare. Pure.

Strategies are compared without their ids: a strategy that was deleted and added again is the same one to everybody who
evaluates the flag, and Unleash cannot give it its former id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from amends.spi import Json, Question

Ending: TypeAlias = Literal["live", "archived", "deleted", "unexplained"]

_TITLE = re.compile(r"amends:(\S+) (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One rule of who sees the flag: its id there, and its content (`title` and `variants` everywhere)."""

    id: str
    content: Mapping[str, Json]

    @property
    def enabled(self) -> bool:
        """True if it takes part in evaluation."""
        return not self.content.get("disabled")

    @property
    def marker(self) -> str:
        """The action id in its title; empty if no agent run made it."""
        return self._title_parts()[0]

    @property
    def cohort(self) -> str:
        """Whom an agent run made it for; empty if none did."""
        return self._title_parts()[1]

    @property
    def variants(self) -> list[Json]:
        """What those get whom it lets in."""
        return listed(self.content.get("variants"))

    def _title_parts(self) -> tuple[str, str]:
        match = _TITLE.fullmatch(str(self.content.get("title") or ""))
        return (match[1], match[2]) if match else ("", "")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag in one environment. `revision` changes with every change of it there; `on_in` are all environments where
    it is on; `snapshot` is the flag's own document, where there is one.
    """

    enabled: bool
    strategies: tuple[Strategy, ...]
    revision: Json
    on_in: tuple[str, ...] = ()
    snapshot: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def contents(self) -> list[Json]:
        """The strategies' contents, in an order that does not depend on ids."""
        return ordered(strategy.content for strategy in self.strategies)

    def image(self) -> dict[str, Json]:
        """What is recorded as before- or after-image."""
        image: dict[str, Json] = {"enabled": self.enabled, "strategies": self.contents(), "revision": self.revision}
        if self.snapshot:
            image["snapshot"] = dict(self.snapshot)
        return image

    def of_cohort(self, cohort: Json) -> list[Strategy]:
        """The strategies that agent runs made for a cohort."""
        return [strategy for strategy in self.strategies if strategy.cohort and strategy.cohort == cohort]


@dataclass(frozen=True, slots=True)
class Switched:
    """What the place itself says about our switch: that it turned, and the strategies that came with it."""

    happened: bool
    added: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a flag, and what has become of it."""

    ours: bool
    edited: bool
    in_use: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """How a flag stands between two images: which strategies are more than before, and which parts are ours still."""

    switched: bool
    added: tuple[Strategy, ...] = ()
    diverged: bool = False
    parts: tuple[str, ...] = field(default=())


def title_of(question: Question) -> str:
    """The title of a cohort's strategy: our marker first."""
    return f"amends:{question.marker} {question.args.get('cohort')}"


def feature_of(question: Question) -> str:
    """The flag's name."""
    return str(question.args.get("feature", ""))


def summary(image: Mapping[str, Json]) -> str:
    """A recorded image in words, for people who are told what the flag went back to."""
    strategies = image.get("strategies")
    count = len(strategies) if isinstance(strategies, list) else 0
    rules = "1 rule" if count == 1 else f"{count} rules"
    return f"{'on' if image.get('enabled') else 'off'}, with the {rules} it had"


def ordered(contents: Iterable[Mapping[str, Json]]) -> list[Json]:
    """Contents in a stable order."""
    return sorted((dict(content) for content in contents), key=repr)


def listed(value: Json) -> list[Json]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mapped(value: Json) -> dict[str, Json]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def covers(there: Json, asked: Json) -> bool:
    """True if everything that was asked for stands there; what the place adds by itself is not compared."""
    if isinstance(asked, dict) and isinstance(there, dict):
        return all(covers(there.get(name), value) for name, value in asked.items())
    if isinstance(asked, list) and isinstance(there, list):
        return len(there) == len(asked) and all(covers(one, other) for one, other in zip(there, asked, strict=True))
    return there == asked


def compare(flag: Flag, before: Mapping[str, Json], after: Mapping[str, Json]) -> Difference:
    """Field by field: the switch and the strategies may each stand as before or as after us; all else is diverged."""
    switched = flag.enabled != bool(before.get("enabled"))
    former, ours = listed(before.get("strategies")), listed(after.get("strategies"))
    now = flag.contents()
    strategies_changed = now != former
    diverged = strategies_changed and now != ours
    left = list(former)
    added: list[Strategy] = []
    for strategy in flag.strategies:
        content: Json = dict(strategy.content)
        if content in left:
            left.remove(content)
        else:
            added.append(strategy)
    parts = (("enabled",) if switched else ()) + (("strategies",) if strategies_changed else ())
    return Difference(switched, tuple(added), diverged, parts)
