"""What passes between a socket and a loopback system: requests, responses and the system's own refusals.

Bodies are JSON documents (`Doc`). A loopback system is outside Amends, so it has a clock of its own.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import responses
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

Doc: TypeAlias = dict[str, Any]

JSON_TYPE = "application/json; charset=utf-8"
HTML_TYPE = "text/html; charset=utf-8"
GATEWAY_PAGE = "<html><head><title>Gateway</title></head><body><h1>The page you asked for</h1></body></html>"


def now() -> float:
    """The outside world's clock, in seconds since the epoch."""
    return time.time()  # noqa: TID251 - a system outside Amends keeps its own time


def iso(ts: float) -> str:
    """A time stamp as the emulated products print it (UTC, milliseconds)."""
    return datetime.fromtimestamp(ts, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was read from the socket. Header names are lower case; `payload` is the parsed body."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: bytes = b""
    payload: Any = None
    malformed: bool = False
    params: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def body(self) -> Doc:
        """The body as a document; empty when there is none or when it is not an object."""
        return as_doc(self.payload)

    @property
    def fields(self) -> Doc:
        """Query parameters and body fields in one document, the body winning: what a fault looks at."""
        return {**self.query, **self.body}


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. `body` is a JSON value, text that is sent as it stands, or None for no body at all."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON_TYPE

    def content(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        if isinstance(self.body, str) and self.content_type != JSON_TYPE:
            return self.body.encode()
        return json.dumps(self.body).encode()

    def head(self) -> bytes:
        """Status line and headers, with the length of the whole body."""
        phrase = responses.get(self.status, "Unknown")
        headers = {
            "Content-Type": self.content_type,
            **self.headers,
            "Content-Length": str(len(self.content())),
        }
        if self.body is None:
            del headers["Content-Type"]
        if self.status == HTTPStatus.NO_CONTENT:
            del headers["Content-Length"]
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class ApiError(Exception):
    """A loopback system refuses a request. Each system renders it in its product's own shape."""

    def __init__(
        self, status: int, code: str, message: str = "", *, headers: Mapping[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(message or code)
        self.status = status
        self.code = code
        self.message = message or code.replace("_", " ")
        self.headers = dict(headers or {})
        self.extra = extra


def parse_request(method: str, target: str, headers: Mapping[str, str], raw: bytes) -> Request:
    """Build a request from what was read; a body that does not parse is kept and marked malformed."""
    split = urlsplit(target)
    payload, malformed = _parse_body(headers.get("content-type", ""), raw)
    return Request(
        method=method,
        path=split.path,
        query=dict(parse_qsl(split.query, keep_blank_values=True)),
        headers=headers,
        raw=raw,
        payload=payload,
        malformed=malformed,
    )


def _parse_body(content_type: str, raw: bytes) -> tuple[Any, bool]:
    if not raw:
        return None, False
    if content_type.startswith("application/octet-stream"):
        return None, False
    if content_type.startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True)), False
    try:
        return json.loads(raw), False
    except ValueError:
        return None, True


def as_doc(value: Any) -> Doc:
    """The value if it is a JSON object, else an empty one."""
    return cast("Doc", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


def new_uuid() -> str:
    """A random id in the form of a UUID, as products give out."""
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))


def lookup(doc: Doc, dotted: str) -> Any:
    """The value at a dotted path (`metadata.order`), or None. A key that holds dots itself is found first."""
    if dotted in doc:
        return doc[dotted]
    value: Any = doc
    for part in dotted.split("."):
        value = as_doc(value).get(part)
    return value
