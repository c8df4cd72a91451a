"""Jira: the Cloud REST v3 API and, over the same tracker, the Data Center REST v2 API, each in its product's own form.

There is no key on create and no If-Match; search lags behind by as much as it is told to. A status transition fires a
webhook, synchronously after the commit, so that whoever has the answer knows that the webhook is out.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar

from amends.testing.loopback import jira_comments, jira_issues, jira_links, jira_search, jira_workflow
from amends.testing.loopback.jira_state import CLOUD, DATA_CENTER, Form, author
from amends.testing.loopback.system import Action, Route, System, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response


class Jira(System):
    """The tracker. `statuses` maps a name to its category, `transitions` are the workflow, `users` the people."""

    name = "jira"
    settings: ClassVar[Doc] = {
        "credentials": {"agent@example.test:jira-token": "acc-agent", "acc-agent:jira-token": "acc-agent"},
        "access_tokens": {"jira-token": "acc-agent"},
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
        "link_types": {"Blocks": ["is blocked by", "blocks"], "Relates": ["relates to", "relates to"]},
        "webhook_url": None,
        "may_delete_issues": True,
        "keeps_history_metadata": True,
        "search_lag_s": 0.0,
        "indexed_properties": [],
    }

    def routes(self) -> Sequence[Route]:
        """The used subset of both platform APIs."""
        return [*_routes(CLOUD), *_routes(DATA_CENTER)]

    def actions(self) -> Mapping[str, Action]:
        """`seed_issue`."""
        return {"seed_issue": jira_issues.seed}

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Basic credentials, name and API token; or a personal access token as Bearer."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        account = None
        if scheme == "Bearer":
            account = unit.setting("access_tokens").get(given)
        with suppress(ValueError):
            account = account or unit.setting("credentials").get(base64.b64decode(given).decode())
        if account is None:
            raise ApiError(401, "unauthorized", "You are not authenticated. Authentication required.")
        return str(account)

    def render_error(self, error: ApiError) -> Response:
        """`{"errorMessages": [...], "errors": {field: text}}`."""
        errors = error.extra.get("errors", {})
        messages = [] if errors else [error.message]
        return Response(error.status, {"errorMessages": messages, "errors": errors}, error.headers)


def _routes(form: Form) -> list[Route]:
    return [
        Route("GET", form.api + "/myself", partial(_myself, form), reads=True),
        Route("GET", form.api + "/project/{key}", _project, reads=True),
        *jira_issues.routes(form),
        *jira_workflow.routes(form),
        *jira_comments.routes(form),
        *jira_links.routes(form),
        *jira_search.routes(form),
    ]


def _myself(form: Form, unit: Unit, _request: Request) -> Response:
    return Response(200, author(unit, form))


def _project(unit: Unit, request: Request) -> Response:
    key = request.params["key"]
    if key not in unit.setting("projects"):
        raise ApiError(404, "not_found", f"No project could be found with key '{key}'.")
    return Response(200, {"id": "10000", "key": key, "name": key})
