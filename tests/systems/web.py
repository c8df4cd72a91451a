"""One JSON request over a fresh connection: how the systems are asked, set up and counted from outside."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `data` is the decoded JSON, or None where there is none."""

    status: int
    headers: dict[str, str]
    text: str
    data: Any


class Unexpected(Exception):
    """An answer that is not 2xx."""


def call(
    method: str,
    url: str,
    body: object = None,
    *,
    form: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send `body` as JSON or `form` as a form; the answer whatever its status. Raises OSError, HTTPException."""
    parts = urlsplit(url)
    sent = dict(headers or {})
    payload: bytes | None = None
    if form is not None:
        payload = urlencode(form).encode()
        sent["content-type"] = "application/x-www-form-urlencoded"
    elif body is not None:
        payload = json.dumps(body).encode()
        sent["content-type"] = "application/json"
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), payload, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, text, _decoded(text))
    finally:
        connection.close()


def want(
    method: str,
    url: str,
    body: object = None,
    *,
    form: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The same, but answers the data and raises Unexpected unless the status is 2xx."""
    answer = call(method, url, body, form=form, headers=headers)
    if not 200 <= answer.status < 300:
        raise Unexpected(f"{method} {urlsplit(url).path}: {answer.status} {answer.text[:500]}")
    return answer.data


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
