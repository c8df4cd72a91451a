"""The tracker's workflow: what may be done now, doing it, and the webhook that tells others.

A transition may name `required` screen fields, or describe its screen: `{"screen": {"worklog": {"required": true,
"operations": ["add"]}}}`. A field that can only be added to is given under `update`, the others under `fields`.
"""

from __future__ import annotations

import http.client
import json
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

from amends.testing.loopback import jira_comments
from amends.testing.loopback.jira_state import Form, find_issue, issue_view, save_fields, status_view, user_view
from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, new_uuid, now

_WEBHOOK_WAIT_S = 2.0


def routes(form: Form) -> list[Route]:
    """What may be done, and doing it."""
    path = form.api + "/issue/{issue}/transitions"
    return [Route("GET", path, _offered, reads=True), Route("POST", path, partial(_transition, form))]


def _offered(unit: Unit, request: Request) -> Response:
    """What may be done from the status of this moment; screens with `expand=transitions.fields`."""
    status = find_issue(unit, request)["fields"]["status"]
    shown: list[Doc] = []
    for item in unit.setting("transitions"):
        if status in item["from"]:
            screen = _screen(item)
            step: Doc = {"id": item["id"], "name": item["name"], "to": status_view(unit, item["to"])}
            step |= {"hasScreen": bool(screen), "isAvailable": True}
            if "transitions.fields" in request.query.get("expand", ""):
                step["fields"] = screen
            shown.append(step)
    return Response(200, {"expand": "transitions", "transitions": shown})


def _screen(step: Doc) -> Doc:
    named = {name: {"required": True, "name": name, "operations": ["set"]} for name in step.get("required", [])}
    return {**named, **as_doc(step.get("screen"))}


def _transition(form: Form, unit: Unit, request: Request) -> Response:
    """`{"transition": {"id"}, "fields"?, "update": {"comment": [{"add": {"body"}}]}?, "historyMetadata"?}`."""
    issue = find_issue(unit, request)
    wanted = str(as_doc(request.body.get("transition")).get("id"))
    steps: list[Doc] = unit.setting("transitions")
    step = next((item for item in steps if item["id"] == wanted), None)
    if step is None or issue["fields"]["status"] not in step["from"]:
        raise ApiError(400, "bad_request", f"Transition id '{wanted}' is not valid for this issue.")
    given, update = as_doc(request.body.get("fields")), as_doc(request.body.get("update"))
    required = [name for name, field in _screen(step).items() if as_doc(field).get("required")]
    missing = {name: f"{name} is required." for name in required if not given.get(name) and not update.get(name)}
    if missing:
        raise ApiError(400, "bad_request", errors=missing)
    changes: Doc = {**given, "status": step["to"]}
    if "assignee" in changes:
        changes["assignee"] = form.account_of(changes["assignee"])
    changed, entry = save_fields(unit, issue, changes, request.body.get("historyMetadata"))
    for item in update.get("comment", []):
        jira_comments.add(form, unit, issue, as_doc(as_doc(item).get("add")))
    _announce(form, unit, changed, entry)
    return Response(204)


def _announce(form: Form, unit: Unit, issue: Doc, entry: Doc | None) -> None:
    url = unit.setting("webhook_url")
    if not url or entry is None:
        return
    payload: Doc = {
        "timestamp": int(now() * 1000),
        "webhookEvent": "jira:issue_updated",
        "issue_event_type_name": "issue_generic",
        "user": user_view(unit, entry["author"], form),
        "issue": issue_view(unit, issue, None, form),
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
