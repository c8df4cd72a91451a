"""Jira Cloud REST v3: issues, workflow transitions, changelog, assignee, labels; comments and search live beside it.

There is no key on create and no If-Match; search lags behind by as much as it is told to. A status transition fires a
webhook, synchronously after the commit, so that whoever has the answer knows that the webhook is out.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

from amends.testing.loopback import jira_comments, jira_search
from amends.testing.loopback.jira_state import (
    COMMENTS,
    ISSUE_PROPERTIES,
    ISSUES,
    author,
    find_issue,
    history_of,
    is_document,
    issue_view,
    properties_of,
    put_property,
    save_fields,
    status_view,
)
from amends.testing.loopback.system import Action, Route, System, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, as_list, iso, new_uuid, now

API = "/rest/api/3"
_ISSUE = API + "/issue/{issue}"
_WEBHOOK_WAIT_S = 2.0


class Jira(System):
    """The tracker. `statuses` maps a name to its category, `transitions` are the workflow, `users` the people."""

    name = "jira"
    settings: ClassVar[Doc] = {
        "credentials": {"agent@example.test:jira-token": "acc-agent"},
        "users": {"acc-agent": {"displayName": "Agent", "emailAddress": "agent@example.test"}},
        "projects": ["BILL"],
        "statuses": {"To Do": "new", "In Progress": "indeterminate", "In Review": "indeterminate", "Done": "done"},
        "transitions": [
            {"id": "11", "name": "Start progress", "from": ["To Do"], "to": "In Progress"},
            {"id": "21", "name": "Send to review", "from": ["In Progress"], "to": "In Review"},
            {"id": "31", "name": "Done", "from": ["In Review"], "to": "Done"},
            {"id": "41", "name": "Stop progress", "from": ["In Progress"], "to": "To Do"},
            {"id": "51", "name": "Back to work", "from": ["In Review", "Done"], "to": "In Progress"},
        ],
        "webhook_url": None,
        "may_delete_issues": True,
        "search_lag_s": 0.0,
        "indexed_properties": [],
    }

    def routes(self) -> Sequence[Route]:
        """The used subset of the platform API."""
        return [
            Route("GET", API + "/myself", _myself, reads=True),
            Route("POST", API + "/issue", _create),
            Route("GET", _ISSUE, _get, reads=True),
            Route("PUT", _ISSUE, _edit),
            Route("DELETE", _ISSUE, _delete),
            Route("PUT", _ISSUE + "/assignee", _assign),
            Route("GET", _ISSUE + "/transitions", _transitions, reads=True),
            Route("POST", _ISSUE + "/transitions", _transition),
            Route("GET", _ISSUE + "/changelog", _changelog, reads=True),
            *jira_comments.routes(API),
            *jira_search.routes(API),
        ]

    def actions(self) -> Mapping[str, Action]:
        """`seed_issue`."""
        return {"seed_issue": _seed_issue}

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Basic credentials, e-mail and API token."""
        encoded = request.headers.get("authorization", "").removeprefix("Basic ")
        account = None
        with suppress(ValueError):
            account = unit.setting("credentials").get(base64.b64decode(encoded).decode())
        if account is None:
            raise ApiError(401, "unauthorized", "You are not authenticated. Authentication required.")
        return str(account)

    def render_error(self, error: ApiError) -> Response:
        """`{"errorMessages": [...], "errors": {field: text}}`."""
        errors = error.extra.get("errors", {})
        messages = [] if errors else [error.message]
        return Response(error.status, {"errorMessages": messages, "errors": errors}, error.headers)


def _myself(unit: Unit, _request: Request) -> Response:
    return Response(200, author(unit))


def _create(unit: Unit, request: Request) -> Response:
    fields = as_doc(request.body.get("fields"))
    project = as_doc(fields.get("project")).get("key")
    errors: dict[str, str] = {}
    if project not in unit.setting("projects"):
        errors["project"] = "valid project is required"
    if not fields.get("summary"):
        errors["summary"] = "You must specify a summary of the issue."
    if not as_doc(fields.get("issuetype")):
        errors["issuetype"] = "Specify an issue type"
    if fields.get("description") is not None and not is_document(fields["description"]):
        errors["description"] = "Operation value must be an Atlassian Document"
    if errors:
        raise ApiError(400, "bad_request", errors=errors)
    issue = _store_issue(unit, f"{project}-{unit.rows.next_number(f'issue:{project}')}", fields)
    properties = [as_doc(item) for item in as_list(request.body.get("properties"))]
    marker = marker_of(unit, *(item.get("value") for item in properties), *issue["fields"]["labels"][:1])
    unit.effects.created("issue", f"project:{project}", issue["key"], marker)
    for item in properties:
        put_property(unit, ISSUE_PROPERTIES, issue["key"], str(item["key"]), item["value"])
    return Response(201, {"id": issue["id"], "key": issue["key"], "self": f"{unit.base}{API}/issue/{issue['id']}"})


def _store_issue(unit: Unit, key: str, fields: Doc, status: str | None = None) -> Doc:
    stamp = iso(unit.now())
    own: Doc = {
        "status": status or next(iter(unit.setting("statuses"))),
        "labels": fields.get("labels") or [],
        "assignee": as_doc(fields.get("assignee")).get("accountId") or as_doc(fields.get("assignee")).get("id"),
        "creator": unit.origin.account or unit.origin.actor,
        "description": fields.get("description"),
        "created": stamp,
        "updated": stamp,
        "resolution": None,
    }
    number = str(10_000 + unit.rows.next_number("issue"))
    return unit.objects.put(ISSUES, key, {"id": number, "key": key, "fields": {**fields, **own}})


def _get(unit: Unit, request: Request) -> Response:
    """`fields=a,b`, `expand=changelog`, `properties=key` or `*all`."""
    issue = find_issue(unit, request)
    view = issue_view(unit, issue, request.query.get("fields"))
    if "changelog" in request.query.get("expand", ""):
        histories = history_of(unit, issue["key"])[::-1]
        view["changelog"] = {
            "startAt": 0,
            "maxResults": len(histories),
            "total": len(histories),
            "histories": histories,
        }
    wanted = request.query.get("properties")
    if wanted:
        found = properties_of(unit, ISSUE_PROPERTIES, issue["key"])
        view["properties"] = {
            item["key"]: item["value"] for item in found if "*all" in wanted or item["key"] in wanted.split(",")
        }
    return Response(200, view)


def _edit(unit: Unit, request: Request) -> Response:
    """`fields` set values; `update` adds, removes or sets labels; `properties` set properties."""
    issue = find_issue(unit, request)
    changes = dict(as_doc(request.body.get("fields")))
    if "assignee" in changes:
        changes["assignee"] = as_doc(changes["assignee"]).get("accountId")
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


def _assign(unit: Unit, request: Request) -> Response:
    issue = find_issue(unit, request)
    account = request.body.get("accountId")
    if account is not None and account not in unit.setting("users"):
        raise ApiError(400, "bad_request", errors={"assignee": f"User '{account}' does not exist."})
    save_fields(unit, issue, {"assignee": account})
    return Response(204)


def _transitions(unit: Unit, request: Request) -> Response:
    """What may be done from the status of this moment."""
    status = find_issue(unit, request)["fields"]["status"]
    shown = [
        {
            "id": item["id"],
            "name": item["name"],
            "to": status_view(unit, item["to"]),
            "hasScreen": bool(item.get("required")),
            "isAvailable": True,
            "fields": {name: {"required": True, "name": name} for name in item.get("required", [])},
        }
        for item in unit.setting("transitions")
        if status in item["from"]
    ]
    return Response(200, {"expand": "transitions", "transitions": shown})


def _transition(unit: Unit, request: Request) -> Response:
    """`{"transition": {"id"}, "fields"?, "update": {"comment": [{"add": {"body"}}]}?, "historyMetadata"?}`."""
    issue = find_issue(unit, request)
    wanted = str(as_doc(request.body.get("transition")).get("id"))
    steps: list[Doc] = unit.setting("transitions")
    step = next((item for item in steps if item["id"] == wanted), None)
    if step is None or issue["fields"]["status"] not in step["from"]:
        raise ApiError(400, "bad_request", f"Transition id '{wanted}' is not valid for this issue.")
    given = as_doc(request.body.get("fields"))
    missing = {name: f"{name} is required." for name in step.get("required", []) if not given.get(name)}
    if missing:
        raise ApiError(400, "bad_request", errors=missing)
    changed, entry = save_fields(unit, issue, {**given, "status": step["to"]}, request.body.get("historyMetadata"))
    for item in as_doc(request.body.get("update")).get("comment", []):
        jira_comments.add(unit, issue, as_doc(as_doc(item).get("add")))
    _announce(unit, changed, entry)
    return Response(204)


def _announce(unit: Unit, issue: Doc, entry: Doc | None) -> None:
    url = unit.setting("webhook_url")
    if not url or entry is None:
        return
    payload: Doc = {
        "timestamp": int(now() * 1000),
        "webhookEvent": "jira:issue_updated",
        "issue_event_type_name": "issue_generic",
        "user": entry["author"],
        "issue": issue_view(unit, issue),
        "changelog": {"id": entry["id"], "items": entry["items"]},
    }
    identifier = new_uuid()
    unit.after_commit.append(lambda: _post(url, payload, identifier))


def _post(url: str, payload: Doc, identifier: str) -> None:
    """Deliver a webhook once. A receiver that is not there is its own problem, as with any webhook."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_WEBHOOK_WAIT_S)
    headers = {"Content-Type": "application/json", "X-Atlassian-Webhook-Identifier": identifier}
    try:
        with suppress(OSError, http.client.HTTPException):
            connection.request("POST", address.path or "/", json.dumps(payload), headers)
            connection.getresponse().read()
    finally:
        connection.close()


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


def _seed_issue(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"key", "summary", "status"?, "labels"?, "assignee"?, "description"?}`; the key may be any number."""
    key = str(parameters["key"])
    project, _, number = key.partition("-")
    unit.rows.next_number(f"issue:{project}", int(number))
    assignee = parameters.get("assignee")
    fields: Doc = {
        "project": {"key": project},
        "issuetype": {"name": parameters.get("issuetype", "Task")},
        "summary": parameters["summary"],
        "labels": parameters.get("labels") or [],
        "description": parameters.get("description"),
        "assignee": {"accountId": assignee} if assignee else None,
    }
    issue = _store_issue(unit, key, fields, parameters.get("status"))
    return issue_view(unit, issue)
