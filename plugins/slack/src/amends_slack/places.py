"""Places and references of messages: `slack:C012/1718.55` is where, `C012/1718.55` is which. Pure."""

from __future__ import annotations

import re

from amends.spi import Json, Question, Refused

_PLACE = re.compile(r"slack:(?P<channel>[CDG][A-Z0-9_]+)/(?P<ts>\d{1,12}\.\d{1,9})")
_PERSON = re.compile(r"person:(?P<name>.+)")


def place(channel: str, ts: str) -> str:
    """The place of a message; empty while its ts is not known, so that nothing is posted elsewhere (case S-03)."""
    return f"slack:{channel}/{ts}" if ts else ""


def reference(channel: str, ts: str) -> str:
    """The provider's reference of a message."""
    return f"{channel}/{ts}"


def parse_place(text: str) -> tuple[str, str]:
    """Channel and ts. Raises `Refused` if no thread is named: nothing is posted elsewhere (case S-03)."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise Refused(f"the place `{text}` names no thread", code="thread_unknown")
    return found["channel"], found["ts"]


def parse_person(text: str) -> str:
    """The name in `person:{name}`. Raises `Refused` for any other place."""
    found = _PERSON.fullmatch(text)
    if found is None:
        raise Refused(f"the place `{text}` names no person", code="person_unknown")
    return found["name"]


def known_ts(question: Question, channel: str) -> str:
    """The ts that the recorded reference or effect gives; empty if the answer was lost and no probe found it yet.

    Raises `Refused` if the reference belongs to another channel: only this run's own messages are touched (rule 11).
    """
    if question.reference:
        where, _, ts = question.reference.partition("/")
        if where != channel:
            raise Refused(
                f"the reference `{question.reference}` is not of channel `{channel}`", code="foreign_reference"
            )
        return ts
    return text_of(question.effect.get("ts"))


def text_of(value: Json) -> str:
    """`value` if it is text, else empty."""
    return value if isinstance(value, str) else ""
