"""A secret in every form in which a text may repeat it (rule 10): as it is, encoded, broken over lines, or cut short.

Systems echo what they were sent, but rarely letter by letter: an address is percent-encoded, an error body escapes
quotes, a log wraps at column 76, a Basic header is base64, a message ends in the middle of a key.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property, lru_cache

_SHORTEST_CODE = 6  # characters of a base64 or hex form that are worth a search
_CUT_SHARE = (2, 3)  # a beginning of this share of a secret is hidden too
_SHORTEST_CUT = 12
_LONGEST_CUT = 64
_LAST_OF_THE_PLANE = 0xFFFF
_ANCHOR = 4  # letters that are looked for before a pattern is made
_BREAK = r"(?:\\?\r?\n[ \t]*|(?:\\r)?\\n)"  # a line break between two letters, real or escaped
_BROKEN = re.compile(_BREAK)
_MAYBE = f"{_BREAK}?"
_BLANKS = " \t\r\n"
_ESCAPE = r"\\{1,8}"  # text within text doubles them
_C_ESCAPES = {"\a": "a", "\b": "b", "\v": "v", "\f": "f"}
_SPACE = r"(?:[ \t\r\n]|%(?:20|0[9AaDd])|\+|\\{1,8}[nrt]|\\{1,8}u00(?:20|0[9AaDd])|&nbsp;|&#0*(?:32|9|10|13);)+"


class Disguises:
    """Finds one secret: the whole of it in any form, and what a cut left of it."""

    def __init__(self, secret: str) -> None:
        texts = sorted({form(secret) for form in (str, _composed, _decomposed)})
        codes = sorted(_codes(texts))
        self._spellings = [_Spelling(_anchor(text), _units(text)) for text in texts]
        self._spellings += [_Spelling(code[:_ANCHOR], tuple(map(re.escape, code))) for code in codes]

    @property
    def anchors(self) -> frozenset[str]:
        """Texts of which every form of the secret holds one."""
        return frozenset(spelling.anchor for spelling in self._spellings)

    def spans(self, text: str, unbroken: str) -> Iterator[tuple[int, int]]:
        """Where the secret stands, or a long beginning of it: from its first letter to behind its last. May overlap.
        `unbroken`: the same text as `without_breaks` makes it.
        """
        for spelling in self._spellings:
            if spelling.anchor in unbroken:
                yield from spelling.spans(text)


@lru_cache(maxsize=1024)
def disguises(secret: str) -> Disguises:
    """The disguises of a secret, made once."""
    return Disguises(secret)


def without_breaks(text: str) -> str:
    """A text in which no line break parts the letters of an anchor."""
    return _BROKEN.sub("", text) if "\n" in text or "\\n" in text else text


@lru_cache(maxsize=64)
def anchors(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """A text that, `without_breaks`, holds none of these has nothing of these secrets to hide: most texts, and quickly
    told.
    """
    return tuple(sorted({anchor for secret in secrets for anchor in disguises(secret).anchors}))


class _Spelling:
    """One form of a secret: `anchor`, which every occurrence holds, and a pattern for each letter."""

    def __init__(self, anchor: str, units: tuple[str, ...]) -> None:
        self.anchor = anchor
        needed = _cut(len(units))
        self._first, self._rest = units[:needed], units[needed:]

    @cached_property
    def _start(self) -> re.Pattern[str]:
        return re.compile(_MAYBE.join(self._first))

    @cached_property
    def _further(self) -> list[re.Pattern[str]]:
        made = {unit: re.compile(_MAYBE + unit) for unit in set(self._rest)}
        return [made[unit] for unit in self._rest]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """As `Disguises.spans`."""
        found = self._start.search(text)
        while found:
            end = found.end()
            for unit in self._further:
                more = unit.match(text, end)
                if more is None:
                    break
                end = more.end()
            yield found.start(), end
            found = self._start.search(text, found.start() + 1)


def _cut(length: int) -> int:
    """How many letters of a secret of `length` are too many to be shown."""
    share, of = _CUT_SHARE
    return min(length, max(_SHORTEST_CUT, -(-length * share // of)), _LONGEST_CUT)


def _anchor(text: str) -> str:
    """Letters that stand in every spelling of a secret, and of a long beginning of it, once breaks are taken out: what
    follows a backslash may look like one.
    """
    runs: list[str] = re.findall(r"(?<!\\)[A-Za-z0-9]+", text[: min(_cut(len(text)), _SHORTEST_CUT)])
    return max(runs, key=len, default="")[:_ANCHOR]


def _units(text: str) -> tuple[str, ...]:
    """A pattern for each letter of a secret, in every spelling; a run of white space is one unit."""
    return tuple(_SPACE if run[0] in _BLANKS else _spellings(run) for run in re.findall(r"[ \t\r\n]+|[^ \t\r\n]", text))


def _spellings(letter: str) -> str:
    """One letter: itself, as in an address, in JSON or a Python or C literal, in HTML."""
    if letter.isascii() and letter.isalnum():
        return letter
    octets = letter.encode("utf-8", "surrogatepass")
    spelled = {
        re.escape(letter),
        "".join(f"%(?i:{octet:02x})" for octet in octets),
        "".join(rf"{_ESCAPE}x(?i:{octet:02x})" for octet in octets),
        "".join(rf"{_ESCAPE}u(?i:{unit})" for unit in _utf16(ord(letter))),
        rf"{_ESCAPE}U(?i:{ord(letter):08x})",
        rf"{_ESCAPE}{re.escape(letter)}",
        re.escape(html.escape(letter)),
        rf"&#0*{ord(letter)};",
        rf"&#[xX]0*(?i:{ord(letter):x});",
    }
    if len(octets) > 1 and ord(letter) < 256:  # noqa: PLR2004 - Latin-1, as `repr` of bytes and old servers write it
        spelled |= {f"%(?i:{ord(letter):02x})", rf"{_ESCAPE}x(?i:{ord(letter):02x})"}
    if letter in _C_ESCAPES:
        spelled.add(f"{_ESCAPE}{_C_ESCAPES[letter]}")
    return f"(?:{'|'.join(sorted(spelled, key=lambda s: (-len(s), s)))})"


def _utf16(point: int) -> tuple[str, ...]:
    """The code units of a letter in hexadecimal. By hand: a codec is a module, found when it is first needed."""
    if point <= _LAST_OF_THE_PLANE:
        return (f"{point:04x}",)
    beyond = point - _LAST_OF_THE_PLANE - 1
    return f"{0xD800 + (beyond >> 10):04x}", f"{0xDC00 + (beyond & 0x3FF):04x}"


def _codes(texts: list[str]) -> set[str]:
    """Base64 at each of its three alignments, in both alphabets, and hexadecimal in both cases."""
    found: set[str] = set()
    for text in texts:
        octets = text.encode("utf-8", "surrogatepass")
        found |= {octets.hex(), octets.hex().upper()}
        for before in range(3):
            coded = base64.b64encode(b"\0" * before + octets).decode().rstrip("=")
            spoiled = -(-before * 8 // 6)  # letters that the bytes before have a share in
            whole = (before + len(octets)) * 8 // 6  # letters that no byte behind has a share in
            found |= {(inner := coded[spoiled:whole]), inner.translate(str.maketrans("+/", "-_"))}
    return {code for code in found if len(code) >= _SHORTEST_CODE}


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)
