"""The request log: every request that was read from a socket, what it asked, and what was answered.

The authorization value is never kept: only its scheme and the head of its digest, so that two tokens can be told apart.
"""

from __future__ import annotations

import hashlib
import json

from amends.testing.loopback.store import Rows
from amends.testing.loopback.wire import Doc, Request, now

_SECRET_HEADERS = frozenset({"authorization", "cookie", "x-api-key"})


def open_request(rows: Rows, request: Request) -> int:
    """Log a request that has just arrived and return its number."""
    headers = {name: value for name, value in request.headers.items() if name not in _SECRET_HEADERS}
    return rows.run(
        "INSERT INTO requests (ts, method, path, query, headers, authorization, idempotency_key, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            now(),
            request.method,
            request.path,
            json.dumps(dict(request.query)),
            json.dumps(headers),
            fingerprint(request.headers.get("authorization")),
            request.headers.get("idempotency-key"),
            request.raw.decode("utf-8", "replace"),
        ),
    )


def close_request(rows: Rows, seq: int, *, handled: int | None, answered: int | None, fault: str) -> None:
    """Log the end: the status the handler reached, the status put on the wire (None: cut), the faults that fired."""
    rows.run(
        "UPDATE requests SET handled_status = ?, answered_status = ?, fault = ?, finished_ts = ? WHERE seq = ?",
        (handled, answered, fault or None, now(), seq),
    )


def list_requests(rows: Rows, method: str | None, path: str | None) -> list[Doc]:
    """Log rows in order of arrival; `path` may be a GLOB pattern, None means any."""
    found = rows.all(
        "SELECT * FROM requests WHERE (?1 IS NULL OR method = ?1) AND (?2 IS NULL OR path GLOB ?2) ORDER BY seq",
        (method, path),
    )
    return [
        {**row, "query": json.loads(row["query"]), "headers": json.loads(row["headers"]), "body": _body(row["body"])}
        for row in found
    ]


def fingerprint(value: str | None) -> str | None:
    """Scheme and digest head of a credential; None when there was none."""
    if not value:
        return None
    scheme = value.split(" ", 1)[0] if " " in value else "token"
    return f"{scheme} sha256:{hashlib.sha256(value.encode()).hexdigest()[:12]}"


def _body(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
