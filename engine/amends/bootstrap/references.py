"""Where the settings refer to secrets: what redaction knows from the first event on, and what `amends doctor` tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amends.config import Settings
from amends.core.canonical import Json
from amends.core.redaction import is_reference


def references_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every secret reference that an engine needs, with the section it stands in."""
    for name, section in settings.adapters.items():
        for _, value in leaves(section.options):
            if is_reference(value):
                yield str(value), f"[adapters.{name}]"
    for name, notifier in settings.notifiers.items():
        if is_reference(notifier.url):
            yield notifier.url, f"[notifiers.{name}]"


def sandbox_references_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every secret reference that drills need, likewise."""
    for name, section in settings.adapters.items():
        for _, value in leaves(section.sandbox.options if section.sandbox else {}):
            if is_reference(value):
                yield str(value), f"[adapters.{name}.sandbox]"


def leaves(value: Json | Mapping[str, Json], key: str = "") -> Iterator[tuple[str, Json]]:
    """Every value within options, with the key it stands under."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value
