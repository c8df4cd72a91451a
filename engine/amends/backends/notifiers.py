"""How escalations and reports reach people: a command, or a webhook (rule 34).

Both get the same JSON document: notice_id, kind, run_id, owner, subject, body, until_us, facts. A notice may be
delivered more than once (it is repeated until acknowledged); `notice_id` tells repetitions apart.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

from amends.core.errors import AmendsError
from amends.ports.services import Delivery, Notice, Secrets
from amends.spi.process import TimeLimit, run


class CommandNotifier:
    """Runs `argv` with the notice on standard input. Delivered means exit status 0 within `timeout_seconds`."""

    def __init__(self, name: str, argv: Sequence[str], *, timeout_seconds: float, folder: Path) -> None:
        self._name = name
        self._argv = tuple(argv)
        self._timeout_seconds = timeout_seconds
        self._folder = folder

    @property
    def name(self) -> str:
        return self._name

    def deliver(self, notice: Notice) -> Delivery:
        try:
            ended = run(
                self._argv,
                env=os.environ,
                timeout_seconds=self._timeout_seconds,
                stdin=document(notice),
                cwd=str(self._folder),
            )
        except TimeLimit:
            return Delivery(delivered=False, detail=f"the command ran longer than {self._timeout_seconds:g} s")
        except OSError as error:
            return Delivery(delivered=False, detail=f"the command cannot start: {error.strerror}")
        except Exception as error:  # noqa: BLE001 — the port: a notifier must not raise
            return Delivery(delivered=False, detail=f"the command failed: {type(error).__name__}")
        if ended.returncode == 0:
            return Delivery(delivered=True)
        said = ended.err.strip()
        return Delivery(delivered=False, detail=f"the command ended with {ended.returncode}: {said}".rstrip(": "))


class WebhookNotifier:
    """POSTs the notice as JSON to `url` (or to what the reference `env:NAME` or `file:PATH` stands for).

    Delivered means an answer of 200 to 299 within `timeout_seconds`. Redirects are not followed. The URL, which may
    hold a token, is never part of a `Delivery`.
    """

    def __init__(self, name: str, url: str, *, timeout_seconds: float, secrets: Secrets) -> None:
        self._name = name
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._secrets = secrets

    @property
    def name(self) -> str:
        return self._name

    def deliver(self, notice: Notice) -> Delivery:
        try:
            status = self._post(document(notice))
        except AmendsError as error:
            return Delivery(delivered=False, detail=error.message)
        except TimeoutError:
            return Delivery(delivered=False, detail=f"no answer within {self._timeout_seconds:g} s")
        except urllib.error.URLError as error:
            return Delivery(delivered=False, detail=f"no answer: {type(error.reason).__name__}")
        except (OSError, http.client.HTTPException) as error:
            return Delivery(delivered=False, detail=f"no answer: {type(error).__name__}")
        except Exception as error:  # noqa: BLE001 — the port: a notifier must not raise
            return Delivery(delivered=False, detail=f"the webhook cannot be asked: {type(error).__name__}")
        if 200 <= status < 300:  # noqa: PLR2004 — HTTP's own numbers
            return Delivery(delivered=True)
        return Delivery(delivered=False, detail=f"the webhook answered {status}")

    def _post(self, body: bytes) -> int:
        url = self._secrets.resolve(self._url) if self._url.startswith(("env:", "file:")) else self._url
        if urlsplit(url).scheme not in {"http", "https"}:
            raise AmendsError("the webhook's URL is neither http nor https", hint="fix `url` of the notifier")
        request = urllib.request.Request(  # noqa: S310 — the scheme was checked
            url, data=body, method="POST", headers={"Content-Type": "application/json", "User-Agent": "amends"}
        )
        try:
            with _OPENER.open(request, timeout=self._timeout_seconds) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET, and could carry the notice to somebody else."""

    def redirect_request(self, *args: object, **named: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def document(notice: Notice) -> bytes:
    """The notice as the JSON that people's tools get."""
    told = {column.name: getattr(notice, column.name) for column in fields(notice)}
    told["facts"] = dict(notice.facts)
    return json.dumps(told, ensure_ascii=False, default=str).encode()
