"""Search: a small part of JQL over an index that lags, as the product's does.

Clauses joined by AND: `project`, `key`, `status`, `issuetype`, `labels` with `=` or `in (…)`, `summary ~`, and
`issue.property[key].path =` where the setting `indexed_properties` names the property. Anything else is refused.
`ORDER BY created DESC` turns the order around. Cloud: `POST /search/jql` by page token; Data Center: `/search` by
`startAt`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from amends.testing.loopback.jira_issues import shown_properties
from amends.testing.loopback.jira_state import CLOUD, ISSUE_PROPERTIES, ISSUES, Form, issue_view
from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, lookup

_ORDER = re.compile(r"\s*\border\s+by\s+.*$", re.IGNORECASE)
_NEWEST_FIRST = re.compile(r"order\s+by\s+created\s+desc", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_PROPERTY = re.compile(r"issue\.property\[\"?(?P<key>[^\]\"]+)\"?\]\.(?P<path>[\w.]+)")
_CLAUSE = re.compile(
    r"(?P<field>issue\.property\[[^\]]+\]\.[\w.]+|\w+)\s*(?P<operator>=|~|in)\s*(?P<value>\(.*\)|\".*\"|'.*'|[^\s()]+)",
    re.IGNORECASE,
)


def routes(form: Form) -> list[Route]:
    """The search endpoint."""
    if form is CLOUD:
        return [Route("POST", form.api + "/search/jql", partial(_by_token, form), reads=True)]
    return [Route(method, form.api + "/search", partial(_by_start, form), reads=True) for method in ("GET", "POST")]


def _by_token(form: Form, unit: Unit, request: Request) -> Response:
    """`{"jql", "fields"?, "properties"?, "maxResults"?, "nextPageToken"?, "reconcileIssues"?: [ids]}`."""
    if not _ORDER.sub("", str(request.body.get("jql", ""))).strip():
        raise ApiError(400, "bad_request", "Unbounded JQL queries are not allowed here.")
    wanted: list[Any] = request.body.get("reconcileIssues") or []
    found = _found(unit, str(request.body.get("jql")), {str(number) for number in wanted})
    start, size = int(request.body.get("nextPageToken") or 0), int(request.body.get("maxResults", 50))
    names: list[str] | None = request.body.get("fields")
    shown = [_shown(form, unit, issue, names, request.body.get("properties")) for issue in found[start : start + size]]
    body: Doc = {"issues": shown, "isLast": start + size >= len(found)}
    if not body["isLast"]:
        body["nextPageToken"] = str(start + size)
    return Response(200, body)


def _by_start(form: Form, unit: Unit, request: Request) -> Response:
    """`jql`, `fields`, `startAt`, `maxResults`, in the query or in the body; without JQL, every issue."""
    asked = request.fields
    found = _found(unit, str(asked.get("jql", "")), set())
    start, size = int(asked.get("startAt", 0)), int(asked.get("maxResults", 50))
    names = asked.get("fields") or "*all"
    named = names.split(",") if isinstance(names, str) else [str(name) for name in names]
    shown = [_shown(form, unit, issue, named, None) for issue in found[start : start + size]]
    return Response(200, {"startAt": start, "maxResults": size, "total": len(found), "issues": shown})


def _found(unit: Unit, jql: str, live: set[str]) -> list[Doc]:
    """The issues that an index of some time ago holds, oldest first unless told otherwise."""
    clauses = [_parse(unit, text) for text in _AND.split(_ORDER.sub("", jql)) if text.strip()]
    lag = float(unit.setting("search_lag_s"))
    indexed = {issue["key"]: issue for issue in unit.objects.indexed(ISSUES, lag)}
    indexed.update({issue["key"]: issue for issue in unit.objects.truth(ISSUES) if issue["id"] in live})
    properties = unit.objects.indexed(ISSUE_PROPERTIES, lag)
    found = [issue for issue in indexed.values() if all(_holds(clause, issue, properties) for clause in clauses)]
    found.sort(key=lambda issue: int(issue["id"]), reverse=_NEWEST_FIRST.search(jql) is not None)
    return found


def _shown(form: Form, unit: Unit, issue: Doc, names: list[str] | None, properties: list[str] | None) -> Doc:
    if names is None:
        return {"id": issue["id"]}
    view = issue_view(unit, issue, ",".join(names), form)
    if properties:
        view["properties"] = shown_properties(unit, issue["key"], properties)
    return view


def _parse(unit: Unit, text: str) -> tuple[str, str, list[str]]:
    match = _CLAUSE.fullmatch(text.strip())
    field = "" if match is None else match["field"]
    if match is None or not _known(unit, field):
        raise ApiError(400, "bad_request", f"Error in the JQL Query: '{text.strip()}' is not supported.")
    values = [value.strip().strip("\"'") for value in match["value"].strip("()").split(",")]
    return field, match["operator"].lower(), values


def _known(unit: Unit, field: str) -> bool:
    named = _PROPERTY.fullmatch(field)
    if named is not None:
        return named["key"] in unit.setting("indexed_properties")
    return field.lower() in ("project", "key", "status", "issuetype", "labels", "summary")


def _holds(clause: tuple[str, str, list[str]], issue: Doc, properties: list[Doc]) -> bool:
    field, operator, wanted = clause
    held = _values(field, issue, properties)
    if operator == "~":
        return any(word.strip("*").lower() in text.lower() for word in wanted for text in held)
    return any(value in held for value in wanted)


def _values(field: str, issue: Doc, properties: list[Doc]) -> list[str]:
    named = _PROPERTY.fullmatch(field)
    if named is not None:
        own = [item for item in properties if item["owner"] == issue["key"] and item["key"] == named["key"]]
        return [str(lookup(as_doc(item["value"]), named["path"])) for item in own]
    fields = as_doc(issue["fields"])
    match field.lower():
        case "project":
            return [issue["key"].split("-")[0]]
        case "key":
            return [issue["key"]]
        case "issuetype":
            return [str(as_doc(fields.get("issuetype")).get("name"))]
        case "labels":
            return list(fields["labels"])
        case other:
            return [str(fields.get(other))]
