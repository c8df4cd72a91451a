"""Which plugins are installed: entry points of the group `amends`, read without importing anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

GROUP = "amends"


@dataclass(frozen=True, slots=True)
class Installed:
    """One entry point of one distribution."""

    plugin: str
    distribution: str
    version: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def installed() -> dict[str, tuple[Installed, ...]]:
    """Every plugin by name; more than one `Installed` means that distributions contend for the name."""
    return by_name(entry_points(group=GROUP))


def by_name(points: Iterable[EntryPoint]) -> dict[str, tuple[Installed, ...]]:
    """`points` grouped by name, each group in order of its distributions."""
    found: dict[str, list[Installed]] = {}
    for point in points:
        distribution = point.dist
        name = distribution.name if distribution else "an unnamed distribution"
        version = distribution.version if distribution else ""
        found.setdefault(point.name, []).append(Installed(point.name, name, version, point))
    return {name: tuple(sorted(group, key=lambda one: one.distribution)) for name, group in sorted(found.items())}
