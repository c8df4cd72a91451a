"""Plain text as Jira wants it, and back: an Atlassian document on Cloud, wiki text on Data Center. Pure.

Nothing in the text is interpreted where that would do something: nobody is mentioned and no macro runs by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from amends.spi import Json, JsonMap

_ACTIVE = re.compile(r"[\\\[{!]")  # what begins a mention, a link, a macro or a picture in wiki text


def document(text: str) -> JsonMap:
    """The text as a document: a paragraph per line."""
    content: list[Json] = []
    for line in text.split("\n"):
        inner: list[Json] = [{"type": "text", "text": line}] if line else []
        content.append({"type": "paragraph", "content": inner})
    return {"type": "doc", "version": 1, "content": content}


def wiki(text: str) -> str:
    """The text as wiki text, with what would do something escaped."""
    return _ACTIVE.sub(lambda found: "\\" + found[0], text)


def plain(value: Json) -> str:
    """The text of a document, a line per paragraph; text stays as it is."""
    if isinstance(value, str):
        return value
    return "\n".join(_lines(value))


def _lines(value: Json) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    content = value.get("content")
    children = content if isinstance(content, list) else []
    if value.get("type") == "paragraph":
        yield "".join(_words(child) for child in children)
        return
    for child in children:
        yield from _lines(child)


def _words(value: Json) -> str:
    if not isinstance(value, dict):
        return ""
    text = value.get("text")
    return text if isinstance(text, str) else ""
