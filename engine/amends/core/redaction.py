"""Redaction: what may not enter the ledger is taken out before every write (rule 10)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from amends.core.canonical import Json

MASK = "«redacted»"
_SHORTEST_SECRET = 6

_PATTERNS: tuple[re.Pattern[str], ...] = (
    re.compile(r"(?i)(?<=authorization[:=]\s)(?:(?:bearer|basic|token)\s+)?[^\s,;\"']+"),
    re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),  # URL and DSN userinfo
    re.compile(r"(?i)(?<![A-Za-z0-9])(?:api[_-]?key|token|secret|passw(?:or)?d|pwd|sig(?:nature)?)=[^\s&\"']+"),
    re.compile(r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|sk_(?:live|test)_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{20,})\b"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\b"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"),
)
_SECRET_NAMES = re.compile(
    r"(?i)^(?:.*[_-])?(?:password|passwd|secret|token|api[_-]?key|authorization|private[_-]?key|credentials?)$"
)


def redact(value: Json, secrets: Iterable[str] = ()) -> Json:
    """`value` with every known secret and everything that looks like one masked; the structure stays."""
    return _redact(value, tuple(s for s in secrets if len(s) >= _SHORTEST_SECRET))


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """`redact` for text."""
    return _text(text, tuple(s for s in secrets if len(s) >= _SHORTEST_SECRET))


def is_reference(value: Json) -> bool:
    """True for a secret reference such as `env:JIRA_TOKEN`, which may be recorded."""
    return isinstance(value, str) and re.fullmatch(r"(?:env|file):[^\s]+", value) is not None


def _redact(value: Json, secrets: tuple[str, ...], name: str = "") -> Json:
    if isinstance(value, str):
        if name and _SECRET_NAMES.match(name) and value and not is_reference(value):
            return MASK
        return _text(value, secrets)
    if isinstance(value, list):
        return [_redact(item, secrets) for item in value]
    if isinstance(value, dict):
        return {_text(key, secrets): _redact(item, secrets, key) for key, item in value.items()}
    return value


def _text(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(MASK, text)
    return text
