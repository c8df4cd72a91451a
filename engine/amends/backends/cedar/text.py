"""Guards that look at policy text before any parser does, and where each statement begins.

The Cedar parser recurses: some 600 nested brackets, or some 1,000 links in one chain of `&&` or `.`, end the whole
process (measured). So text written by people is counted here first. This is no parser: it knows strings, comments,
brackets and `;`, and is used for limits and line numbers only, never for meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from amends.backends.cedar.findings import PolicyFinding, error

MAX_BYTES = 256 * 1024
MAX_NESTING = 60
MAX_IFS = 50  # in one statement
MAX_LINKS = 500  # operators and member accesses in one statement

_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<angle>[<>]=?)
    | (?P<link>&&|\|\||==|!=|[.+*!-])
    | (?P<end>;)
    | (?P<line>\n)
    | (?P<space>[ \t\r]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINK_WORDS = frozenset({"has", "in", "is", "like"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level statement: its text, the line it begins on, and how deep it goes."""

    text: str
    line: int
    nesting: int
    ifs: int
    links: int


def normalise(data: bytes, file: str) -> str | PolicyFinding:
    """`data` as text with LF line ends, or why it is refused (size, encoding)."""
    if len(data) > MAX_BYTES:
        return error(
            "too_large", f"file has {len(data)} bytes, more than {MAX_BYTES}", "split the file by concern", file=file
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        return error("not_utf8", f"byte {problem.start} is not UTF-8", "save the file as UTF-8", file=file)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def guard(text: str, file: str, *, schema: bool = False) -> list[PolicyFinding]:
    """Every limit that `text` breaks; empty if a parser may see it. In a schema `<` nests and nothing is chained."""
    if len(text.encode()) > MAX_BYTES:
        return [error("too_large", f"text is larger than {MAX_BYTES} bytes", "split the file by concern", file=file)]
    found: list[PolicyFinding] = []
    limits = (
        ("too_deep", "brackets nest {} deep, more than {}", MAX_NESTING, "flatten it"),
        ("too_many_ifs", "{} times `if` in one statement, more than {}", MAX_IFS, "write one policy per case"),
        ("too_long", "{} operators in one statement, more than {}", MAX_LINKS, "split it into several policies"),
    )
    for statement in statements(text, schema=schema):
        counts = (statement.nesting, 0, 0) if schema else (statement.nesting, statement.ifs, statement.links)
        for (code, message, limit, hint), count in zip(limits, counts, strict=True):
            if count > limit:
                found.append(error(code, message.format(count, limit), hint, file=file, line=statement.line))
    return found


def statements(text: str, *, schema: bool = False) -> Iterator[Statement]:
    """The statements of `text` in order; text after the last `;` is one, if it is more than space and comments."""
    begin = line = first = 0
    depth = angles = nesting = ifs = links = 0
    empty = True
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in {"comment", "space"}:
            continue
        if kind == "line":
            line += 1
            continue
        if empty:
            begin, first, empty = token.start(), line, False
        match kind:
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "angle":  # a comparison in a policy, `Set<…>` in a schema
                links += 1
                angles = max(0, angles + (1 if token[0] == "<" else -1)) if schema else 0
            case "link":
                links += 1
            case "word":
                ifs += token[0] == "if"
                links += token[0] in _LINK_WORDS
            case _:
                line += token[0].count("\n")
        links += token[0] == "["
        nesting = max(nesting, depth + angles)
        if kind == "end" and depth == 0:
            yield Statement(text[begin : token.end()], first + 1, nesting, ifs, links)
            depth = angles = nesting = ifs = links = 0
            empty = True
    if not empty:
        yield Statement(text[begin:], first + 1, nesting, ifs, links)
