"""Redaction: what may not enter the ledger is taken out before every write (rule 10)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from amends.core.canonical import Json
from amends.core.disguises import anchors, disguises, without_breaks

MASK = "«redacted»"
SHORTEST_SECRET = 6  # characters; shorter ones are everywhere, and masking them would tell more than it hides
_SHORTEST_LINE = 16

_PATTERNS: tuple[re.Pattern[str], ...] = (
    re.compile(r"(?i)(?<=authorization[:=]\s)(?:(?:bearer|basic|token)\s+)?[^\s,;\"']+"),
    re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s]+(?=@)"),  # URL and DSN userinfo; the last @ before the path ends it
    re.compile(r"(?i)(?:(?<=http://)|(?<=https://))[^/\s@]+(?=@)"),  # a token instead of user and password
    re.compile(r"(?i)(?<![A-Za-z0-9])(?:api[_-]?key|token|secret|passw(?:or)?d|pwd|sig(?:nature)?)=[^\s&\"']+"),
    re.compile(r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}"),
    re.compile(r"\b(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9]{8,}"),
    re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,})"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\b"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
)
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:]*:([^/\s]+)@")
_SECRET_NAMES = re.compile(
    r"(?i)^(?:.*[_-])?(?:password|passwd|secret|token|api[_-]?key|authorization|private[_-]?key|credentials?)$"
)


def redact(value: Json, secrets: Iterable[str] = ()) -> Json:
    """`value` with every known secret and everything that looks like one masked; the structure stays."""
    return _redact(value, _known(secrets))


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """`redact` for text."""
    return _text(text, _known(secrets))


def hide(text: str, secrets: Iterable[str], *, mask: str = MASK, shortest: int = SHORTEST_SECRET) -> str:
    """`text` with the given secrets masked, in every form of `disguises`; what only looks like a secret stays."""
    return _hidden(text, _known(secrets, shortest), mask)


def unfit(secret: str, words: Iterable[str]) -> str:
    """Why a secret cannot be kept out of a ledger written in these words; empty if it can. Not told: which word."""
    if len(secret) < SHORTEST_SECRET:
        return f"has fewer than {SHORTEST_SECRET} characters"
    if any(hide(word, (secret,)) != word for word in words):
        return "is, or holds as its password, a word that the ledger itself is written in"
    return ""


def is_reference(value: Json) -> bool:
    """True for a secret reference such as `env:JIRA_TOKEN`, which may be recorded."""
    return isinstance(value, str) and re.fullmatch(r"(?:env|file):[^\s]+", value) is not None


def _known(secrets: Iterable[str], shortest: int = SHORTEST_SECRET) -> tuple[str, ...]:
    """The secrets to look for. What the mask itself says is no secret."""
    pieces = (piece for secret in secrets for piece in (secret, *_lines(secret), *_password(secret)))
    known = {piece for piece in pieces if len(piece) >= shortest and piece not in MASK}
    return tuple(sorted(known))


def _lines(secret: str) -> list[str]:
    """The long lines of a secret that has several: a key file is quoted line by line."""
    lines = [line.strip() for line in secret.splitlines()]
    return [line for line in lines if len(line) >= _SHORTEST_LINE] if len(lines) > 1 else []


def _password(secret: str) -> list[str]:
    """The password within an address that is a secret as a whole, as it stands there and as it is meant."""
    found = _PASSWORD.match(secret)
    return [found[1], unquote(found[1])] if found else []


def _redact(value: Json, secrets: tuple[str, ...], name: str = "") -> Json:
    if isinstance(value, str):
        if name and _SECRET_NAMES.match(name) and value and not is_reference(value):
            return MASK
        return _text(value, secrets)
    if isinstance(value, list):
        return [_redact(item, secrets, name) for item in value]
    if isinstance(value, dict):
        held = name if _SECRET_NAMES.match(name) else ""
        return {_text(key, secrets): _redact(item, secrets, held or key) for key, item in value.items()}
    return value


def _hidden(text: str, secrets: tuple[str, ...], mask: str) -> str:
    """Secrets may overlap, and one may begin another: what any of them covers is masked as a whole."""
    unbroken = without_breaks(text)
    if not any(anchor in unbroken for anchor in anchors(secrets)):
        return text
    kept: list[str] = []
    done = 0
    for start, end in sorted(span for secret in secrets for span in disguises(secret).spans(text, unbroken)):
        if start >= done and (start > done or not kept):
            kept += [text[done:start], mask]
        done = max(done, end)
    return "".join([*kept, text[done:]])


def _text(text: str, secrets: tuple[str, ...]) -> str:
    text = _hidden(text, secrets, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(MASK, text)
    return text
