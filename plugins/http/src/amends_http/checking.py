"""What is wrong with a declaration that its types cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from amends_http.declaration import Declaration
from amends_http.rules import ListRule, MessageRule, RequestRule
from amends_http.template import roots

Problem: TypeAlias = tuple[str, str, str]  # key, what is wrong, remedy

RESERVED = frozenset(
    {"marker", "key", "reference", "since", "effect", "before", "after", "observed", "values"}
    | {"undo_marker", "undo_key", "page"}
)
_UNDO_ONLY = frozenset({"observed", "undo_marker", "undo_key"})
_PARTS = ("path", "headers", "query", "body", "variables", "match")


def problems(declaration: Declaration) -> Iterator[Problem]:
    """Every problem in the order of the file."""
    arguments = set(declaration.arguments)
    for name in sorted(arguments & RESERVED):
        yield f"arguments.{name}", f"`{name}` is a reserved word of templates", "rename the argument"
    forward = arguments | (RESERVED - _UNDO_ONLY - {"page"})
    yield from _request("request", declaration.request, forward)
    yield from _secrets(declaration)
    for index, rung in enumerate(declaration.compensation):
        key = f"compensation.{index}"
        if rung.undo == "own" and rung.request is None:
            yield f"{key}.request", f"rung `{rung.name}` has no request", 'declare one, or `undo = "escalate"`'
        if rung.request is not None:
            yield from _request(f"{key}.request", rung.request, arguments | (RESERVED - {"page"}))
            if rung.request.operation is not None:
                yield f"{key}.request.operation", "an undo is not polled", "the separate read after it decides"
    yield from _find(declaration, forward)
    for name in declaration.input:
        if name not in arguments:
            yield f"input.{name}", f"there is no argument `{name}`", "declare it, or leave it out of the policy input"


def _secrets(declaration: Declaration) -> Iterator[Problem]:
    """A secret in an address is logged by everybody on the way."""
    secret = set(declaration.secrets())
    for part in ("path", "query"):
        for root in roots(getattr(declaration.request, part)):
            if root in secret:
                yield f"request.{part}", f"`{root}` is a secret", "send secrets in a header or in the body"


def _request(key: str, rule: RequestRule, known: set[str]) -> Iterator[Problem]:
    yield from _message(key, rule, known)
    if rule.encoding == "form" and rule.graphql:
        yield f"{key}.encoding", "a GraphQL document is sent as JSON", "leave `encoding` out"
    wanted: dict[str, object] = {name: list(values) for name, values in rule.success.where.items()}
    yield from _unknown(f"{key}.success", wanted, known)


def _message(key: str, rule: MessageRule, known: set[str]) -> Iterator[Problem]:
    for part in _PARTS:
        yield from _unknown(f"{key}.{part}", getattr(rule, part, None), known)
    if rule.graphql and rule.body is not None:
        yield f"{key}.body", "a GraphQL request has its own body", "give `variables`"
    if rule.variables and not rule.graphql:
        yield f"{key}.variables", "variables belong to a GraphQL document", "give `graphql`, or a `body`"
    if not rule.path and not rule.graphql:
        yield f"{key}.path", "it names no path", "give a `path`, or a `graphql` document"


def _find(declaration: Declaration, known: set[str]) -> Iterator[Problem]:
    find = declaration.find
    probe = declaration.probe
    if probe is not None and find.by_id is None and find.listing is None:
        yield "find", "the contract has a probe but nothing says what to read", "declare `find.by_id` or `find.by_list`"
    if probe is not None and find.by_list is None and find.by_search is not None and probe.strength != "search":
        yield "probe.strength", "what is read is a search, which may lag", 'say `strength = "search"`'
    if declaration.image is not None and find.by_id is None:
        yield "find.by_id", "an image is read by path", "declare where the state is read"
    if find.by_id is not None:
        yield from _message("find.by_id", find.by_id, known)
        if find.by_id.body is not None and find.by_id.method == "GET":
            yield "find.by_id.method", "a GET has no body", 'say `method = "POST"`'
    for name, rule in (("find.by_list", find.by_list), ("find.by_search", find.by_search)):
        if rule is not None:
            yield from _message(name, rule, known | {"page"})
            yield from _paging(name, rule)


def _paging(key: str, rule: ListRule) -> Iterator[Problem]:
    ways = [way for way in (rule.cursor, rule.number, rule.link) if way]
    if len(ways) > 1:
        yield key, "it says more than one way to the next page", "keep one of `cursor`, `number` and `link`"
    if (rule.more or rule.total) and not ways:
        yield f"{key}.cursor", "it says there are pages but not how to ask for them", "declare the cursor"
    if rule.cursor is not None and bool(rule.cursor.item) == bool(rule.cursor.page):
        yield f"{key}.cursor", "the next page is named by an item or by the page", "give one of `item` and `page`"
    named = {root for part in ("query", "body", "variables", "headers") for root in roots(getattr(rule, part))}
    for name, way in (("cursor", rule.cursor), ("number", rule.number)):
        if way is not None and bool(way.parameter) == ("page" in named):
            remedy = "give `parameter`, or place `{page}` in the query, body or variables"
            yield f"{key}.{name}", "nothing, or more than one thing, takes the page's name", remedy
    if rule.body is not None and rule.method == "GET":
        yield f"{key}.method", "a GET has no body", 'say `method = "POST"`'


def _unknown(key: str, template: object, known: set[str]) -> Iterator[Problem]:
    for root in roots(template):
        if root not in known:
            yield key, f"`{{{root}}}` is neither an argument nor a word of templates", "correct the name"
