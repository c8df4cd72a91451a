"""`POST /search/jql`: a small part of JQL over an index that lags, as the product's does.

Clauses joined by AND: `project`, `key`, `status`, `labels` with `=` or `in (…)`, `summary ~`, and
`issue.property[key].path =` where the setting `indexed_properties` names the property. Anything else is refused.
"""

from __future__ import annotations

import re
from typing import Any

from amends.testing.loopback.jira_state import ISSUE_PROPERTIES, ISSUES, issue_view
from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, lookup

_ORDER = re.compile(r"\s+order\s+by\s+.*$", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_PROPERTY = re.compile(r"issue\.property\[\"?(?P<key>[^\]\"]+)\"?\]\.(?P<path>[\w.]+)")
_CLAUSE = re.compile(
    r"(?P<field>issue\.property\[[^\]]+\]\.[\w.]+|\w+)\s*(?P<operator>=|~|in)\s*(?P<value>\(.*\)|\".*\"|'.*'|[^\s()]+)",
    re.IGNORECASE,
)


def routes(api: str) -> list[Route]:
    """The search endpoint."""
    return [Route("POST", api + "/search/jql", _search, reads=True)]


def _search(unit: Unit, request: Request) -> Response:
    """`{"jql", "fields"?: [...], "maxResults"?, "nextPageToken"?, "reconcileIssues"?: [ids]}`; ids are read live."""
    clauses = [_parse(unit, text) for text in _AND.split(_ORDER.sub("", str(request.body.get("jql", "")))) if text]
    if not clauses:
        raise ApiError(400, "bad_request", "Unbounded JQL queries are not allowed here.")
    lag = float(unit.setting("search_lag_s"))
    indexed = {issue["key"]: issue for issue in unit.objects.indexed(ISSUES, lag)}
    wanted: list[Any] = request.body.get("reconcileIssues") or []
    live = {str(number) for number in wanted}
    indexed.update({issue["key"]: issue for issue in unit.objects.truth(ISSUES) if issue["id"] in live})
    properties = unit.objects.indexed(ISSUE_PROPERTIES, lag)
    found = [issue for issue in indexed.values() if all(_holds(clause, issue, properties) for clause in clauses)]
    start, size = int(request.body.get("nextPageToken") or 0), int(request.body.get("maxResults", 50))
    names: list[str] | None = request.body.get("fields")
    shown = [_shown(unit, issue, names) for issue in found[start : start + size]]
    body: Doc = {"issues": shown, "isLast": start + size >= len(found)}
    if not body["isLast"]:
        body["nextPageToken"] = str(start + size)
    return Response(200, body)


def _shown(unit: Unit, issue: Doc, names: list[str] | None) -> Doc:
    if names is None:
        return {"id": issue["id"]}
    return issue_view(unit, issue, ",".join(names))


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
    return field.lower() in ("project", "key", "status", "labels", "summary")


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
        case "labels":
            return list(fields["labels"])
        case other:
            return [str(fields.get(other))]
