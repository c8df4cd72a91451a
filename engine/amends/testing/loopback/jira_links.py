"""Links of the tracker: between issues, and from an issue to something elsewhere by a global id.

A second link of one type between the same two issues is accepted and changes nothing; a second remote link with one
global id replaces the first, as in the product.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from amends.testing.loopback.jira_state import (
    ISSUE_LINKS,
    ISSUES,
    NO_ISSUE,
    REMOTE_LINKS,
    Form,
    change_item,
    parent_issue,
    record_change,
)
from amends.testing.loopback.system import Route, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc


def routes(form: Form) -> list[Route]:
    """Link types, issue links, remote links."""
    remote = form.api + "/issue/{issue}/remotelink"
    return [
        Route("GET", form.api + "/issueLinkType", _types, reads=True),
        Route("POST", form.api + "/issueLink", _link),
        Route("DELETE", form.api + "/issueLink/{id}", _unlink),
        Route("POST", remote, partial(_link_remotely, form)),
        Route("GET", remote, partial(_list_remote, form), reads=True),
        Route("DELETE", remote + "/{id}", _unlink_remotely),
    ]


def _types(unit: Unit, _request: Request) -> Response:
    kinds: dict[str, list[str]] = unit.setting("link_types")
    shown = [{"name": name, "inward": inward, "outward": outward} for name, (inward, outward) in kinds.items()]
    return Response(200, {"issueLinkTypes": shown})


def _link(unit: Unit, request: Request) -> Response:
    """`{"type": {"name"}, "inwardIssue": {"key"}, "outwardIssue": {"key"}}`: the inward one "blocks" the other."""
    kind = as_doc(request.body.get("type")).get("name")
    if kind not in unit.setting("link_types"):
        raise ApiError(404, "not_found", f"No issue link type with name '{kind}' found.")
    ends = [as_doc(request.body.get(side)).get("key") for side in ("inwardIssue", "outwardIssue")]
    issues = [unit.objects.peek(ISSUES, str(key)) for key in ends]
    if None in issues:
        raise ApiError(404, "not_found", NO_ISSUE)
    if ends[0] == ends[1]:
        raise ApiError(400, "bad_request", "You cannot link an issue to itself.")
    wanted = {"type": kind, "inward": ends[0], "outward": ends[1]}
    if not any(wanted.items() <= link.items() for link in unit.objects.truth(ISSUE_LINKS)):
        number = str(30_000 + unit.rows.next_number("issue_link"))
        unit.objects.put(ISSUE_LINKS, number, {"id": number, **wanted})
        unit.effects.created("issue_link", f"issue:{ends[0]}", number)
        _record(unit, wanted, None, f"{ends[1]}")
    return Response(201)


def _unlink(unit: Unit, request: Request) -> Response:
    number = request.params["id"]
    link = unit.objects.peek(ISSUE_LINKS, number)
    if link is None:
        raise ApiError(404, "not_found", f"No issue link with id '{number}' exists.")
    unit.objects.remove(ISSUE_LINKS, number)
    unit.effects.removed("issue_link", number, f"issue:{link['inward']}")
    _record(unit, link, link["outward"], None)
    return Response(204)


def _record(unit: Unit, link: Doc, before: str | None, after: str | None) -> None:
    """Both issues tell of the link in their changelog."""
    for here, there in (("inward", "outward"), ("outward", "inward")):
        issue = unit.objects.peek(ISSUES, link[here])
        if issue is not None:
            shown = (link[there] if before else None, link[there] if after else None)
            record_change(unit, issue, [change_item("Link", *shown)])


def _link_remotely(form: Form, unit: Unit, request: Request) -> Response:
    """`{"globalId"?, "relationship"?, "object": {"url", "title"}}`: 201 if new, 200 if it replaced one."""
    issue = parent_issue(unit, request)
    thing = as_doc(request.body.get("object"))
    missing = {f"object.{name}": f"'{name}' is required." for name in ("url", "title") if not thing.get(name)}
    if missing:
        raise ApiError(400, "bad_request", errors=missing)
    named = request.body.get("globalId")
    kept: list[Any] = [link for link in unit.objects.truth(REMOTE_LINKS) if link["issue"] == issue["key"]]
    before = next((link for link in kept if named and link["globalId"] == named), None)
    number: int = before["id"] if before else 40_000 + unit.rows.next_number("remote_link")
    link = {"id": number, "issue": issue["key"], "globalId": named, "object": thing}
    link["relationship"] = request.body.get("relationship")
    unit.objects.put(REMOTE_LINKS, str(number), link)
    if before is None:
        marker = str(named or "").rpartition(":")[2]
        unit.effects.created("remote_link", f"issue:{issue['key']}", str(number), marker)
    else:
        resource = f"remote_link:{number}"
        unit.effects.changed("remote_link_object", resource, before["object"], thing, reference=str(number))
    where = f"{unit.base}{form.api}/issue/{issue['key']}/remotelink/{number}"
    return Response(200 if before else 201, {"id": number, "self": where})


def _list_remote(form: Form, unit: Unit, request: Request) -> Response:
    """All of them in one answer; with `globalId`, that one alone or 404."""
    issue = parent_issue(unit, request)
    found = [_view(form, unit, link) for link in unit.objects.all(REMOTE_LINKS) if link["issue"] == issue["key"]]
    named = request.query.get("globalId")
    if named is None:
        return Response(200, found)
    for link in found:
        if link.get("globalId") == named:
            return Response(200, link)
    raise ApiError(404, "not_found", f"No remote issue link with global id '{named}'.")


def _unlink_remotely(unit: Unit, request: Request) -> Response:
    issue = parent_issue(unit, request)
    link = unit.objects.peek(REMOTE_LINKS, request.params["id"])
    if link is None or link["issue"] != issue["key"]:
        raise ApiError(404, "not_found", f"No remote issue link with id '{request.params['id']}'.")
    unit.objects.remove(REMOTE_LINKS, request.params["id"])
    unit.effects.removed("remote_link", request.params["id"], f"issue:{issue['key']}")
    return Response(204)


def _view(form: Form, unit: Unit, link: Doc) -> Doc:
    shown = {name: link[name] for name in ("id", "globalId", "relationship", "object") if link[name] is not None}
    return {**shown, "self": f"{unit.base}{form.api}/issue/{link['issue']}/remotelink/{link['id']}"}
