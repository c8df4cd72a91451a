"""Between declarations and the wire: requests built from templates, answers read by declared predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urljoin, urlsplit

from amends.spi import Json, Question, Refused
from amends.spi.http import Ambiguous, HttpAnswer, HttpRequest, judge
from amends_http.declaration import Declaration, ListRule, ReadRule, RefusalRule, RequestRule, States
from amends_http.settings import HttpSettings
from amends_http.template import (
    BadValueError,
    MissingValueError,
    Scope,
    lookup,
    render,
    render_headers,
    render_path,
    render_query,
)

Meaning: TypeAlias = Literal["success", "accepted", "done"]

HEADER = "header:"


class Messages:
    """Builds requests for one adapter instance. `secret` resolves the adapter's own secret reference at send."""

    def __init__(self, settings: HttpSettings, secret: Callable[[str], str]) -> None:
        self._settings = settings
        self._secret = secret

    def mutating(self, rule: RequestRule, scope: Scope, secrets: Mapping[str, str]) -> HttpRequest:
        """The one request of a call. Raises `MissingValueError` or `BadValueError`; `secrets`: resolved arguments."""
        filled = {**scope, **secrets}
        body = render(dict(rule.body), filled) if rule.body is not None else None
        return HttpRequest(
            method=rule.method,
            url=self._settings.base_url + render_path(rule.path, scope),
            query=render_query(rule.query, scope),
            headers={**self._signature(), **render_headers(rule.headers, filled)},
            json=body,
            body=rule.answers,
            secrets=tuple(secrets.values()),
        )

    def reading(self, rule: ReadRule | ListRule, scope: Scope, page: tuple[tuple[str, str], ...] = ()) -> HttpRequest:
        """A read. Raises as `mutating`."""
        return HttpRequest(
            method="GET",
            url=self._settings.base_url + render_path(rule.path, scope),
            query=(*render_query(rule.query, scope), *page),
            headers={**self._signature(), **render_headers(rule.headers, scope)},
        )

    def operation(self, address: str) -> HttpRequest:
        """A read of a 202's operation. `BadValueError` if it lies elsewhere: our credential goes nowhere else."""
        url = urljoin(self._settings.base_url + "/", address)
        ours, theirs = urlsplit(self._settings.base_url), urlsplit(url)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise BadValueError("the operation lies on another host than the partner's API")
        plain = theirs._replace(query="", fragment="").geturl()
        return HttpRequest("GET", plain, query=tuple(parse_qsl(theirs.query)), headers=self._signature())

    def scope(self, question: Question, values: Mapping[str, str], **more: Json) -> dict[str, Json]:
        """Everything a template may name for this question."""
        return {
            **question.args,
            "marker": question.marker,
            "key": question.idempotency_key,
            "reference": question.reference or None,
            "effect": dict(question.effect),
            "before": dict(question.before),
            "after": dict(question.after),
            "values": dict(values),
            **more,
        }

    def _signature(self) -> dict[str, str]:
        signing = self._settings.signing
        return signing.headers(self._secret(signing.secret)) if signing else {}


def verdict(rule: RequestRule, answer: HttpAnswer, error_code: str, gone: frozenset[int] = frozenset()) -> Meaning:
    """What an answer to a mutating call means. A status in `gone` that no rule names is `done`.

    Raises `Refused` or `Ambiguous`: declared refusals first, then the shared status table, then the success predicate.
    """
    document = answer.document()
    code = str(lookup(document, error_code) or "")
    matched = _matching(rule.refusals, answer.status, code)
    if matched is not None:
        return _declared(matched, code, answer)
    if answer.status in gone:
        return "done"
    judge(answer, own_statuses=())
    if rule.operation is not None and answer.status == 202:  # noqa: PLR2004 - accepted
        return "accepted"
    statuses = rule.success.statuses
    if (statuses and answer.status not in statuses) or not holds(rule.success.where, document):
        raise Ambiguous(
            f"{answer.request.name} answered {answer.status} but not as a success reads: {answer.excerpt(120)}",
            code="unexpected_answer",
            status=answer.status,
        )
    return "success"


def owned(declaration: Declaration, document: Mapping[str, Json], values: Mapping[str, str]) -> bool:
    """True if `document` is ours by the declared owner field, or if none is declared."""
    owner = declaration.owner
    return owner is None or lookup(document, owner.field) == render(owner.equals, {"values": dict(values)})


def own_statuses(rule: RequestRule) -> frozenset[int]:
    """The statuses this operation judges by its own table."""
    return frozenset({409, *(refusal.status for refusal in rule.refusals)})


def holds(wanted: States, document: Mapping[str, Json]) -> bool:
    """True if every named field of `document` has one of the wanted values."""
    return all(lookup(document, path) in accepted for path, accepted in wanted.items())


def field_of(answer: HttpAnswer, path: str) -> Json:
    """A field of the body, or of the headers where `path` says `header:<name>`."""
    if path.startswith(HEADER):
        return answer.headers.get(path.removeprefix(HEADER).lower())
    return lookup(answer.document(), path)


def state_of(declaration: Declaration, document: Mapping[str, Json], headers: Mapping[str, str]) -> dict[str, Json]:
    """The state that `when` predicates look at, by the declared names."""
    return {
        name: headers.get(path.removeprefix(HEADER).lower()) if path.startswith(HEADER) else lookup(document, path)
        for name, path in declaration.find.state.items()
    }


def _matching(refusals: tuple[RefusalRule, ...], status: int, code: str) -> RefusalRule | None:
    """The rule for status and code; one without a code counts for every code that no other rule names."""
    fitting = [rule for rule in refusals if rule.status == status and rule.code in {"", code}]
    return next((rule for rule in fitting if rule.code), fitting[0] if fitting else None)


def _declared(rule: RefusalRule, code: str, answer: HttpAnswer) -> Meaning:
    if rule.means == "done":
        return "done"
    code = code or f"http_{answer.status}"
    detail = f"{answer.request.name} answered {answer.status} `{code}`: {answer.excerpt(120)}"
    if rule.means == "ambiguous":
        raise Ambiguous(detail, code=code, status=answer.status)
    raise Refused(detail, code=code, again=rule.means == "again", retry_after_seconds=answer.retry_after_seconds())


__all__ = [
    "BadValueError",
    "Meaning",
    "Messages",
    "MissingValueError",
    "field_of",
    "holds",
    "own_statuses",
    "owned",
    "state_of",
    "verdict",
]
