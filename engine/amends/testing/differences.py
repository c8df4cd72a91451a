"""The same questions to a loopback system and to one that nobody here wrote, and a list of where they differ.

A behaviour is a plain function of a `Site`; it raises `AssertionError` where the system does not behave as the product
is documented to. A `Difference` says which system is known not to, and why that is no harm. `problems` is empty if a
system does what is said of it: a difference that is gone is a problem as well, because the list must stay true.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Said:
    """One whole answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, or as text where it is none: a behaviour then asserts against that."""
        try:
            return json.loads(self.content)
        except ValueError:
            return {"text": self.content.decode("utf-8", "replace")}


@dataclass(frozen=True, slots=True)
class Site:
    """A system that runs: where, and with which token (empty: none). One request per connection, none sent twice."""

    base_url: str
    token: str

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Said:
        """One request. `path` is appended to `base_url`, unless it is a whole address."""
        address = urlsplit(path if path.startswith("http") else f"{self.base_url.rstrip('/')}/{path}")
        headers = {"Accept": "application/json", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if form is not None:
            content, headers["Content-Type"] = urlencode(form).encode(), "application/x-www-form-urlencoded"
        elif body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        elif content is not None:
            headers["Content-Type"] = "application/octet-stream"
        line = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_SECONDS)
        try:
            line.request(method, f"{address.path}?{address.query}" if address.query else address.path, content, headers)
            answer = line.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Said(answer.status, named, answer.read())
        finally:
            line.close()


Behaviour: TypeAlias = Callable[[Site], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """A behaviour that a system is known not to have, and why our use of it stands all the same."""

    system: str
    behaviour: str
    why: str


def problems(
    behaviours: Iterable[Behaviour], differences: Iterable[Difference], *, system: str, site: Site
) -> list[str]:
    """One line for each thing that is not as said of `system`; empty if all is."""
    asked = {behaviour.__name__: behaviour for behaviour in behaviours}
    listed = {difference.behaviour: difference for difference in differences if difference.system == system}
    found = [f"`{name}` is listed as a difference, but there is no such behaviour" for name in listed.keys() - asked]
    for name, behaviour in asked.items():
        failure = _failure(behaviour, site)
        if failure and name not in listed:
            found.append(f"{system}: `{name}` does not hold: {failure}")
        if not failure and name in listed:
            found.append(f"{system}: `{name}` holds now, so the difference is gone: take it off the list")
    return found


def _failure(behaviour: Behaviour, site: Site) -> str:
    try:
        behaviour(site)
    except AssertionError as error:
        return " ".join(str(error).split())[:300] or "assertion failed"
    except (OSError, http.client.HTTPException, LookupError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
