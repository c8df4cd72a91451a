"""Issues of the tracker: create, read, edit, delete, assign, and the changelog of what was changed."""

from __future__ import annotations

from functools import partial
from typing import Any

from amends.testing.loopback.jira_state import (
    CLOUD,
    COMMENTS,
    ISSUE_PROPERTIES,
    ISSUES,
    Form,
    actor_of,
    check_account,
    find_issue,
    history_of,
    issue_view,
    label_marker,
    properties_of,
    put_property,
    save_fields,
)
from amends.testing.loopback.system import Route, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, as_list, iso


def routes(form: Form) -> list[Route]:
    """Issue endpoints; only the Cloud API has a changelog of its own, by pages."""
    issue = form.api + "/issue/{issue}"
    found = [
        Route("POST", form.api + "/issue", partial(_create, form)),
        Route("GET", issue, partial(_get, form), reads=True),
        Route("PUT", issue, partial(_edit, form)),
        Route("DELETE", issue, _delete),
        Route("PUT", issue + "/assignee", partial(_assign, form)),
    ]
    if form is CLOUD:
        found.append(Route("GET", issue + "/changelog", _changelog, reads=True))
    return found


def seed(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"key", "summary", "status"?, "labels"?, "assignee"?, "description"?}`; the key may be any number."""
    key = str(parameters["key"])
    project, _, number = key.partition("-")
    unit.rows.next_number(f"issue:{project}", int(number))
    fields: Doc = {
        "project": {"key": project},
        "issuetype": {"name": parameters.get("issuetype", "Task")},
        "summary": parameters["summary"],
        "labels": parameters.get("labels") or [],
        "description": parameters.get("description"),
    }
    issue = _store(unit, key, fields, parameters.get("assignee"), parameters.get("status"))
    return issue_view(unit, issue)


def _create(form: Form, unit: Unit, request: Request) -> Response:
    fields = as_doc(request.body.get("fields"))
    project = as_doc(fields.get("project")).get("key")
    errors: dict[str, str] = {}
    if project not in unit.setting("projects"):
        errors["project"] = "valid project is required"
    if not fields.get("summary"):
        errors["summary"] = "You must specify a summary of the issue."
    if not as_doc(fields.get("issuetype")):
        errors["issuetype"] = "Specify an issue type"
    if fields.get("description") is not None and not form.is_text(fields["description"]):
        wanted = "an Atlassian Document" if form.documents else "a string"
        errors["description"] = f"Operation value must be {wanted}"
    if errors:
        raise ApiError(400, "bad_request", errors=errors)
    assignee = as_doc(fields.get("assignee"))
    key = f"{project}-{unit.rows.next_number(f'issue:{project}')}"
    issue = _store(unit, key, fields, form.account_of(assignee) or assignee.get("id"))
    properties = [as_doc(item) for item in as_list(request.body.get("properties"))]
    labels = issue["fields"]["labels"]
    marker = marker_of(unit, *(item.get("value") for item in properties), label_marker(labels), *labels[:1])
    unit.effects.created("issue", f"project:{project}", issue["key"], marker)
    for item in properties:
        put_property(unit, ISSUE_PROPERTIES, issue["key"], str(item["key"]), item["value"])
    return Response(201, {"id": issue["id"], "key": issue["key"], "self": f"{unit.base}{form.api}/issue/{issue['id']}"})


def _store(unit: Unit, key: str, fields: Doc, assignee: str | None, status: str | None = None) -> Doc:
    stamp = iso(unit.now())
    own: Doc = {
        "status": status or next(iter(unit.setting("statuses"))),
        "labels": fields.get("labels") or [],
        "assignee": assignee,
        "creator": actor_of(unit),
        "description": fields.get("description"),
        "created": stamp,
        "updated": stamp,
        "resolution": None,
    }
    number = str(10_000 + unit.rows.next_number("issue"))
    return unit.objects.put(ISSUES, key, {"id": number, "key": key, "fields": {**fields, **own}})


def _get(form: Form, unit: Unit, request: Request) -> Response:
    """`fields=a,b`, `expand=changelog`, `properties=key` or `*all`. Data Center tells its history oldest first."""
    issue = find_issue(unit, request)
    view = issue_view(unit, issue, request.query.get("fields"), form)
    if "changelog" in request.query.get("expand", ""):
        histories = history_of(unit, issue["key"], form)
        shown: list[Any] = histories[::-1] if form is CLOUD else histories
        view["changelog"] = {"startAt": 0, "maxResults": len(shown), "total": len(shown), "histories": shown}
    wanted = request.query.get("properties")
    if wanted:
        view["properties"] = shown_properties(unit, issue["key"], wanted.split(","))
    return Response(200, view)


def shown_properties(unit: Unit, key: str, wanted: list[str]) -> Doc:
    """The properties of an issue that were asked for, by key."""
    found = properties_of(unit, ISSUE_PROPERTIES, key)
    return {item["key"]: item["value"] for item in found if "*all" in wanted or item["key"] in wanted}


def _edit(form: Form, unit: Unit, request: Request) -> Response:
    """`fields` set values; `update` adds, removes or sets labels; `properties` set properties."""
    issue = find_issue(unit, request)
    changes = dict(as_doc(request.body.get("fields")))
    if "assignee" in changes:
        changes["assignee"] = form.account_of(changes["assignee"])
        check_account(unit, changes["assignee"])
    labels: list[str] = list(changes.get("labels", issue["fields"]["labels"]))
    for step in as_doc(request.body.get("update")).get("labels", []):
        labels = _stepped(labels, as_doc(step))
    if any(" " in label for label in labels):
        raise ApiError(400, "bad_request", errors={"labels": "The label can't contain spaces."})
    save_fields(unit, issue, {**changes, "labels": labels}, request.body.get("historyMetadata"))
    for item in map(as_doc, as_list(request.body.get("properties"))):
        put_property(unit, ISSUE_PROPERTIES, issue["key"], str(item["key"]), item["value"])
    return Response(204)


def _stepped(labels: list[str], step: Doc) -> list[str]:
    if "set" in step:
        return list(step["set"])
    if "add" in step:
        return labels if step["add"] in labels else [*labels, step["add"]]
    return [label for label in labels if label != step.get("remove")]


def _delete(unit: Unit, request: Request) -> Response:
    issue = find_issue(unit, request)
    if not unit.setting("may_delete_issues"):
        raise ApiError(403, "forbidden", "You do not have permission to delete issues in this project.")
    unit.objects.remove(ISSUES, issue["key"])
    unit.effects.removed("issue", issue["key"], f"project:{issue['key'].split('-')[0]}")
    for comment in unit.objects.truth(COMMENTS):
        if comment["issue"] == issue["key"]:
            unit.objects.remove(COMMENTS, comment["id"])
            unit.effects.removed("comment", comment["id"], f"issue:{issue['key']}")
    return Response(204)


def _assign(form: Form, unit: Unit, request: Request) -> Response:
    issue = find_issue(unit, request)
    account = form.account_of(request.body)
    check_account(unit, account)
    save_fields(unit, issue, {"assignee": account})
    return Response(204)


def _changelog(unit: Unit, request: Request) -> Response:
    """Oldest first; `startAt`, `maxResults`."""
    entries = history_of(unit, find_issue(unit, request)["key"])
    start, size = int(request.query.get("startAt", "0")), int(request.query.get("maxResults", "100"))
    page: list[Any] = entries[start : start + size]
    body: Doc = {
        "startAt": start,
        "maxResults": size,
        "total": len(entries),
        "isLast": start + size >= len(entries),
        "values": page,
    }
    return Response(200, body)
