"""How answers read: declared refusals, then the shared status table, then the success predicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from amends.spi import Json, Refused
from amends.spi.http import Ambiguous, HttpAnswer, Unreadable, judge
from amends_http.declaration import Declaration
from amends_http.rules import MessageRule, RefusalRule, RequestRule, States
from amends_http.template import Scope, lookup, render, values_at

Meaning: TypeAlias = Literal["success", "accepted", "done"]

HEADER = "header:"
GRAPHQL_ERRORS = "errors"


def verdict(
    rule: RequestRule, answer: HttpAnswer, error_code: str, scope: Scope, gone: frozenset[int] = frozenset()
) -> Meaning:
    """What an answer to a mutating call means. A status in `gone` that no rule names is `done`.

    Raises `Refused` or `Ambiguous`: declared refusals first, then the shared status table, then the success predicate,
    whose wanted values are filled from `scope`.
    """
    document = answer.document()
    code = str(lookup(document, error_code) or "")
    matched = _matching(rule.refusals, answer.status, code, document)
    if matched is not None:
        return _declared(matched, code, answer)
    if answer.status in gone:
        return "done"
    judge(answer, own_statuses=())
    if rule.operation is not None and answer.status == 202:  # noqa: PLR2004 - accepted
        return "accepted"
    if not _success(rule, answer, scope):
        raise Ambiguous(
            f"{answer.request.name} answered {answer.status} but not as a success reads: {answer.excerpt(120)}",
            code="unexpected_answer",
            status=answer.status,
        )
    return "success"


def readable(rule: MessageRule, answer: HttpAnswer) -> HttpAnswer:
    """The answer to a read. Raises `Unreadable` for a GraphQL answer with errors: what is missing may be there."""
    if rule.graphql and answer.ok and lookup(answer.document(), GRAPHQL_ERRORS):
        raise Unreadable(
            f"{answer.request.name} answered with errors: {answer.excerpt(120)}", code="errors", status=answer.status
        )
    return answer


def document_of(rule: RequestRule, answer: HttpAnswer) -> dict[str, Json]:
    """The thing that the answer tells of."""
    found = lookup(answer.document(), rule.document) if rule.document else answer.document()
    return found if isinstance(found, dict) else {}


def owned(declaration: Declaration, document: Mapping[str, Json], values: Mapping[str, str]) -> bool:
    """True if `document` is ours by the declared owner field, or if none is declared."""
    owner = declaration.owner
    return owner is None or lookup(document, owner.field) == render(owner.equals, {"values": dict(values)})


def own_statuses(rule: RequestRule) -> frozenset[int]:
    """The statuses this operation judges by its own table."""
    return frozenset({409, *(refusal.status for refusal in rule.refusals)})


def holds(wanted: States, document: Mapping[str, Json]) -> bool:
    """True if every named field of `document` has one of the wanted values. A path with `*` holds if any item does."""
    return all(any(value in accepted for value in values_at(document, path)) for path, accepted in wanted.items())


def holds_any(wanted: tuple[States, ...], document: Mapping[str, Json]) -> bool:
    """True if one of the alternatives holds."""
    return any(holds(states, document) for states in wanted)


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


def _success(rule: RequestRule, answer: HttpAnswer, scope: Scope) -> bool:
    document = answer.document()
    statuses = rule.success.statuses
    if (statuses and answer.status not in statuses) or (rule.graphql and lookup(document, GRAPHQL_ERRORS)):
        return False
    wanted = {path: tuple(render(value, scope) for value in values) for path, values in rule.success.where.items()}
    return holds(wanted, document)


def _matching(
    refusals: tuple[RefusalRule, ...], status: int, code: str, document: Mapping[str, Json]
) -> RefusalRule | None:
    """The rule for status, code and body; one that names neither code nor body is for what no other rule names."""
    fitting = [
        rule for rule in refusals if rule.status == status and rule.code in {"", code} and holds(rule.where, document)
    ]
    return next((rule for rule in fitting if rule.code or rule.where), fitting[0] if fitting else None)


def _declared(rule: RefusalRule, code: str, answer: HttpAnswer) -> Meaning:
    if rule.means == "done":
        return "done"
    code = code or f"http_{answer.status}"
    detail = f"{answer.request.name} answered {answer.status} `{code}`: {answer.excerpt(120)}"
    if rule.means == "ambiguous":
        raise Ambiguous(detail, code=code, status=answer.status)
    raise Refused(detail, code=code, again=rule.means == "again", retry_after_seconds=answer.retry_after_seconds())
