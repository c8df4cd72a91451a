"""What a flag looks like in one environment, as values to compare. Pure.

Strategies are compared without their ids: a strategy that was deleted and added again is the same one to everybody who
evaluates the flag, and Unleash cannot give it its former id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amends.spi import Json

CONTENT = ("name", "title", "disabled", "sortOrder", "constraints", "variants", "parameters", "segments")
_EMPTY: Mapping[str, Json] = {"disabled": False, "constraints": [], "variants": [], "parameters": {}, "segments": []}


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy: its id there, and its content."""

    id: str
    content: Mapping[str, Json]

    @property
    def title(self) -> str:
        """The free text that carries our marker."""
        title = self.content.get("title")
        return title if isinstance(title, str) else ""

    @property
    def enabled(self) -> bool:
        """True if it takes part in evaluation."""
        return not self.content.get("disabled")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag in one environment, with the newest event that concerned it there."""

    enabled: bool
    strategies: tuple[Strategy, ...]
    newest_event: int

    def contents(self) -> list[Json]:
        """The strategies' contents, in an order that does not depend on ids."""
        return ordered(strategy.content for strategy in self.strategies)

    def image(self) -> dict[str, Json]:
        """What is recorded as before- or after-image."""
        return {"enabled": self.enabled, "strategies": self.contents(), "newest_event": self.newest_event}


def summary(image: Mapping[str, Json]) -> str:
    """A recorded image in words, for people who are told what the flag went back to."""
    strategies = image.get("strategies")
    count = len(strategies) if isinstance(strategies, list) else 0
    rules = "1 rule" if count == 1 else f"{count} rules"
    return f"{'on' if image.get('enabled') else 'off'}, with the {rules} it had"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a flag stands between two images: which strategies are more than before, and which parts are ours still."""

    switched: bool
    added: tuple[Strategy, ...] = ()
    diverged: bool = False
    parts: tuple[str, ...] = field(default=())


def content_of(document: Mapping[str, Json]) -> dict[str, Json]:
    """A strategy's content with the defaults that Unleash leaves out."""
    return {name: _value(document.get(name), name) for name in CONTENT}


def ordered(contents: Iterable[Mapping[str, Json]]) -> list[Json]:
    """Contents in a stable order."""
    return sorted((dict(content) for content in contents), key=repr)


def has_enabled(contents: Iterable[Json]) -> bool:
    """True if any of the contents takes part in evaluation: then switching on adds nothing."""
    return any(isinstance(content, dict) and not content.get("disabled") for content in contents)


def listed(value: Json) -> list[Json]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


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


def _value(value: Json, name: str) -> Json:
    return _EMPTY.get(name) if value is None else value
