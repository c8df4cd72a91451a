"""Comments of an issue, and the properties of issues and comments (where markers go that no reader sees)."""

from __future__ import annotations

from functools import partial
from typing import Any

from amends.testing.loopback.jira_state import (
    COMMENT_PROPERTIES,
    COMMENTS,
    ISSUE_PROPERTIES,
    Form,
    actor_of,
    parent_issue,
    properties_of,
    put_property,
    remove_property,
    user_view,
)
from amends.testing.loopback.system import Route, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, as_list, iso

_MARKER_LINE = "amends:"


def routes(form: Form) -> list[Route]:
    """Comment endpoints, then property endpoints of issues and of comments."""
    comments = form.api + "/issue/{issue}/comment"
    found = [
        Route("POST", comments, partial(_add, form)),
        Route("GET", comments, partial(_list, form), reads=True),
        Route("GET", comments + "/{id}", partial(_get, form), reads=True),
        Route("PUT", comments + "/{id}", partial(_replace, form)),
        Route("DELETE", comments + "/{id}", _delete),
    ]
    for path, collection in (
        (form.api + "/issue/{issue}/properties", ISSUE_PROPERTIES),
        (form.api + "/comment/{comment}/properties", COMMENT_PROPERTIES),
    ):
        found += [
            Route("GET", path, partial(_list_properties, collection), reads=True),
            Route("GET", path + "/{key}", partial(_get_property, collection), reads=True),
            Route("PUT", path + "/{key}", partial(_put_property, collection)),
            Route("DELETE", path + "/{key}", partial(_delete_property, collection)),
        ]
    return found


def add(form: Form, unit: Unit, issue: Doc, given: Doc) -> Doc:
    """Add a comment `{"body", "properties"?: [{"key", "value"}]}` and return it as the API shows it."""
    if not form.is_text(given.get("body")):
        raise ApiError(400, "bad_request", errors={"comment": "Comment body is not valid!"})
    stamp = iso(unit.now())
    comment: Doc = {
        "id": str(20_000 + unit.rows.next_number("comment")),
        "issue": issue["key"],
        "author": actor_of(unit),
        "updateAuthor": actor_of(unit),
        "body": given["body"],
        "created": stamp,
        "updated": stamp,
    }
    unit.objects.put(COMMENTS, comment["id"], comment)
    properties = [as_doc(item) for item in as_list(given.get("properties"))]
    marker = marker_of(unit, *(item.get("value") for item in properties), _marker_line(given["body"]))
    unit.effects.created("comment", f"issue:{issue['key']}", comment["id"], marker)
    for item in properties:
        put_property(unit, COMMENT_PROPERTIES, comment["id"], str(item["key"]), item["value"])
    return _view(form, unit, comment, with_properties=False)


def _marker_line(body: Any) -> str:
    """The client's marker, where the first line of the text carries it."""
    line = body.partition("\n")[0] if isinstance(body, str) else _first_line(body)
    return line.removeprefix(_MARKER_LINE).strip() if line.startswith(_MARKER_LINE) else ""


def _first_line(body: Any) -> str:
    paragraph = as_doc(next(iter(as_list(as_doc(body).get("content"))), None))
    return "".join(str(as_doc(item).get("text", "")) for item in as_list(paragraph.get("content")))


def _add(form: Form, unit: Unit, request: Request) -> Response:
    return Response(201, add(form, unit, parent_issue(unit, request), request.body))


def _list(form: Form, unit: Unit, request: Request) -> Response:
    """`startAt`, `maxResults`, `orderBy=created|-created`, `expand=properties`."""
    issue = parent_issue(unit, request)
    found = [comment for comment in unit.objects.all(COMMENTS) if comment["issue"] == issue["key"]]
    if request.query.get("orderBy", "").startswith("-"):
        found.reverse()
    start, size = int(request.query.get("startAt", "0")), int(request.query.get("maxResults", "50"))
    page = [_view(form, unit, comment, with_properties=_expands(request)) for comment in found[start : start + size]]
    return Response(200, {"startAt": start, "maxResults": size, "total": len(found), "comments": page})


def _get(form: Form, unit: Unit, request: Request) -> Response:
    parent_issue(unit, request)
    comment = _checked(unit.objects.get(COMMENTS, request.params["id"]), request)
    return Response(200, _view(form, unit, comment, with_properties=_expands(request)))


def _replace(form: Form, unit: Unit, request: Request) -> Response:
    before = _found(unit, request)
    if not form.is_text(request.body.get("body")):
        raise ApiError(400, "bad_request", errors={"comment": "Comment body is not valid!"})
    after = {**before, "body": request.body["body"], "updated": iso(unit.now())}
    after["updateAuthor"] = actor_of(unit)
    unit.objects.put(COMMENTS, before["id"], after)
    resource = f"comment:{before['id']}"
    unit.effects.changed("comment_body", resource, before["body"], after["body"], reference=before["id"])
    return Response(200, _view(form, unit, after, with_properties=False))


def _delete(unit: Unit, request: Request) -> Response:
    comment = _found(unit, request)
    unit.objects.remove(COMMENTS, comment["id"])
    unit.effects.removed("comment", comment["id"], f"issue:{comment['issue']}")
    for item in properties_of(unit, COMMENT_PROPERTIES, comment["id"]):
        remove_property(unit, COMMENT_PROPERTIES, comment["id"], item["key"])
    return Response(204)


def _list_properties(collection: str, unit: Unit, request: Request) -> Response:
    keys = [{"key": item["key"]} for item in properties_of(unit, collection, _owner(unit, request))]
    return Response(200, {"keys": keys})


def _get_property(collection: str, unit: Unit, request: Request) -> Response:
    key = request.params["key"]
    found = unit.objects.get(collection, f"{_owner(unit, request)}:{key}")
    if found is None:
        raise ApiError(404, "not_found", f"The property with key {key} does not exist.")
    return Response(200, {"key": key, "value": found["value"]})


def _put_property(collection: str, unit: Unit, request: Request) -> Response:
    new = put_property(unit, collection, _owner(unit, request), request.params["key"], request.payload)
    return Response(201 if new else 200)


def _delete_property(collection: str, unit: Unit, request: Request) -> Response:
    remove_property(unit, collection, _owner(unit, request), request.params["key"])
    return Response(204)


def _owner(unit: Unit, request: Request) -> str:
    if "issue" in request.params:
        return str(parent_issue(unit, request)["key"])
    comment = unit.objects.peek(COMMENTS, request.params["comment"])
    if comment is None:
        raise ApiError(404, "not_found", "Can not find a comment for the id given.")
    return str(comment["id"])


def _found(unit: Unit, request: Request) -> Doc:
    parent_issue(unit, request)
    return _checked(unit.objects.peek(COMMENTS, request.params["id"]), request)


def _checked(comment: Doc | None, request: Request) -> Doc:
    if comment is None or comment["issue"] != request.params["issue"]:
        raise ApiError(404, "not_found", f"Can not find a comment for the id: {request.params['id']}.")
    return comment


def _view(form: Form, unit: Unit, comment: Doc, *, with_properties: bool) -> Doc:
    view: Doc = {name: comment[name] for name in ("id", "body", "created", "updated")}
    view |= {name: user_view(unit, comment[name], form) for name in ("author", "updateAuthor")}
    view["self"] = f"{unit.base}{form.api}/issue/{comment['issue']}/comment/{comment['id']}"
    if with_properties:
        view["properties"] = properties_of(unit, COMMENT_PROPERTIES, comment["id"])
    return view


def _expands(request: Request) -> bool:
    return "properties" in request.query.get("expand", "")
