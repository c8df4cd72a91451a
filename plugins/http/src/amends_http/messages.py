"""From declarations to the wire: requests built from templates, signed with the adapter's own secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, urljoin, urlsplit

from amends.spi import Json, Question
from amends.spi.http import HttpRequest
from amends_http.rules import ListRule, MessageRule, ReadRule, RequestRule
from amends_http.settings import HttpSettings
from amends_http.template import BadValueError, Scope, render, render_headers, render_path, render_query

_DAY_SECONDS = 86_400
_PORTS = {"http": 80, "https": 443}


class Messages:
    """Builds requests for one adapter instance. `secret` resolves the adapter's own secret reference at send."""

    def __init__(self, settings: HttpSettings, secret: Callable[[str], str]) -> None:
        self._settings = settings
        self._secret = secret

    def mutating(self, rule: RequestRule, scope: Scope, secrets: Mapping[str, str]) -> HttpRequest:
        """The one request of a call. Raises `MissingValueError` or `BadValueError`; `secrets`: resolved arguments."""
        filled = {**scope, **secrets}
        body = _body(rule, filled)
        form = form_fields(body) if rule.encoding == "form" and body is not None else None
        return HttpRequest(
            method=rule.method,
            url=self._settings.base_url + render_path(rule.path, scope),
            query=render_query(rule.query, scope),
            headers={**self._signature(), **render_headers(rule.headers, filled)},
            json=body if form is None else None,
            form=form,
            body=rule.answers,
            secrets=tuple(secrets.values()),
        )

    def reading(self, rule: ReadRule | ListRule, scope: Scope, page: tuple[tuple[str, str], ...] = ()) -> HttpRequest:
        """A read, which may be a POST: a query of GraphQL changes nothing. Raises as `mutating`."""
        return HttpRequest(
            method="POST" if rule.graphql else rule.method,
            url=self._settings.base_url + render_path(rule.path, scope),
            query=(*render_query(rule.query, scope), *page),
            headers={**self._signature(), **render_headers(rule.headers, scope)},
            json=_body(rule, scope),
        )

    def following(self, address: str, headers: Mapping[str, str] | None = None) -> HttpRequest:
        """A read of an address that the partner gave: a 202's operation, a next page. Raises `BadValueError` if it
        lies elsewhere: our credential goes to the partner's own host only.
        """
        url = self.own_address(address)
        plain = url._replace(query="", fragment="").geturl()
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return HttpRequest("GET", plain, query=query, headers={**self._signature(), **(headers or {})})

    def own_address(self, address: str) -> SplitResult:
        """`address`, relative or absolute, on the partner's own host. Raises `BadValueError` if it is elsewhere."""
        ours = urlsplit(self._settings.base_url)
        try:
            theirs = urlsplit(urljoin(self._settings.base_url + "/", address))
            same = _host(ours) == _host(theirs) and "@" not in theirs.netloc
        except ValueError:
            same, theirs = False, ours
        if not same:
            raise BadValueError("what the partner points at lies on another host than its API")
        return theirs

    def scope(self, question: Question, values: Mapping[str, str], **more: Json) -> dict[str, Json]:
        """Everything a template may name for this question."""
        return {
            **question.args,
            "marker": question.marker,
            "key": question.idempotency_key,
            "reference": question.reference or None,
            "since": _since(question),
            "effect": dict(question.effect),
            "before": dict(question.before),
            "after": dict(question.after),
            "values": dict(values),
            **more,
        }

    def _signature(self) -> dict[str, str]:
        signing = self._settings.signing
        return signing.headers(self._secret(signing.secret)) if signing else {}


def _since(question: Question) -> Json:
    """A day before the call in epoch seconds: no clock is that wrong, and an earlier try bears the same key."""
    return question.sent_at_us // 1_000_000 - _DAY_SECONDS if question.sent_at_us is not None else None


def form_fields(body: Mapping[str, Json]) -> dict[str, str]:
    """A body as form fields, the way Stripe and PHP read them: `metadata[order]`, `items[0][price]`, `true`."""
    return dict(_fields(body, ""))


def _fields(value: Json | Mapping[str, Json], name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _fields(inner, f"{name}[{key}]" if name else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _fields(inner, f"{name}[{index}]")
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif value is not None:
        yield name, str(value)


def _body(rule: MessageRule, scope: Scope) -> dict[str, Json] | None:
    if rule.graphql:
        return {"variables": render(dict(rule.variables), scope), "query": rule.graphql}
    filled = render(dict(rule.body), scope) if rule.body is not None else None
    return filled if isinstance(filled, dict) else None


def _host(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme)
