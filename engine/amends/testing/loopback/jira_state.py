"""What the tracker keeps and how it shows it: users, issues with a changelog, comments, properties on both."""

from __future__ import annotations

from typing import Any

from amends.testing.loopback.system import Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, as_doc, as_list, iso

ISSUES = "issues"
COMMENTS = "comments"
HISTORY = "changelog"
ISSUE_PROPERTIES = "issue_properties"
COMMENT_PROPERTIES = "comment_properties"

NO_ISSUE = "Issue does not exist or you do not have permission to see it."


def user_view(unit: Unit, account: str | None) -> Doc | None:
    """A user as the API shows it, or None for nobody."""
    if account is None:
        return None
    known = as_doc(unit.setting("users").get(account))
    return {
        "accountId": account,
        "accountType": "atlassian",
        "active": True,
        "displayName": known.get("displayName", account),
        "emailAddress": known.get("emailAddress", ""),
    }


def author(unit: Unit) -> Doc:
    """The acting user: the credential's account, or the other actor's name."""
    return user_view(unit, unit.origin.account or unit.origin.actor) or {}


def find_issue(unit: Unit, request: Request) -> Doc:
    """The issue that the path names by key or id, as this request is shown it."""
    named = request.params["issue"]
    issue = unit.objects.get(ISSUES, named) if request.method == "GET" else unit.objects.peek(ISSUES, named)
    if issue is None and named.isdigit():
        issue = next((item for item in unit.objects.all(ISSUES) if item["id"] == named), None)
    if issue is None:
        raise ApiError(404, "not_found", NO_ISSUE)
    return issue


def parent_issue(unit: Unit, request: Request) -> Doc:
    """The issue that the path names, as it truly is: for reads of what hangs on it."""
    issue = unit.objects.peek(ISSUES, request.params["issue"])
    if issue is None:
        raise ApiError(404, "not_found", NO_ISSUE)
    return issue


def status_view(unit: Unit, name: str) -> Doc:
    """A status as the API shows it."""
    names = list(unit.setting("statuses"))
    category = unit.setting("statuses")[name]
    return {"id": str(10000 + names.index(name)), "name": name, "statusCategory": {"key": category}}


def issue_view(unit: Unit, issue: Doc, wanted: str | None = None) -> Doc:
    """An issue as the API shows it, with all fields or those named in a comma list."""
    fields = as_doc(issue["fields"])
    shown: Doc = {
        **fields,
        "status": status_view(unit, fields["status"]),
        "assignee": user_view(unit, fields["assignee"]),
        "creator": user_view(unit, fields["creator"]),
    }
    if wanted is not None and "*all" not in wanted:
        names = wanted.split(",")
        shown = {name: value for name, value in shown.items() if name in names}
    return {
        "id": issue["id"],
        "key": issue["key"],
        "self": f"{unit.base}/rest/api/3/issue/{issue['id']}",
        "fields": shown,
    }


def history_of(unit: Unit, key: str) -> list[Doc]:
    """An issue's changelog, oldest first."""
    return [entry["entry"] for entry in unit.objects.all(HISTORY) if entry["issue"] == key]


def record_change(unit: Unit, issue: Doc, items: list[Doc], metadata: Any = None) -> Doc:
    """Append one changelog entry and return it."""
    number = str(100_000 + unit.rows.next_number("changelog"))
    entry: Doc = {"id": number, "author": author(unit), "created": iso(unit.now()), "items": items}
    if metadata:
        entry["historyMetadata"] = metadata
    unit.objects.put(HISTORY, number, {"issue": issue["key"], "entry": entry})
    return entry


def change_item(field: str, before: Any, after: Any) -> Doc:
    """One changed field in a changelog entry."""
    return {
        "field": field,
        "fieldId": field,
        "fieldtype": "jira",
        "from": None if before is None else str(before),
        "fromString": None if before is None else str(before),
        "to": None if after is None else str(after),
        "toString": None if after is None else str(after),
    }


def save_fields(unit: Unit, issue: Doc, changes: Doc, metadata: Any = None) -> tuple[Doc, Doc | None]:
    """Write changed fields: the issue, its changelog and the effects. Returns the issue and the changelog entry."""
    before = as_doc(issue["fields"])
    changed = {name: value for name, value in changes.items() if before.get(name) != value}
    if not changed:
        return issue, None
    back = all(_back(unit, issue, name, value) for name, value in changed.items())
    after = {**issue, "fields": {**before, **changed, "updated": iso(unit.now())}}
    unit.objects.put(ISSUES, issue["key"], after, undo=back)
    items = [change_item(name, _plain(before.get(name)), _plain(value)) for name, value in changed.items()]
    entry = record_change(unit, issue, items, metadata)
    for name, value in changed.items():
        marker = marker_of(unit, metadata)
        resource = f"issue:{issue['key']}"
        unit.effects.changed(f"issue_{name}", resource, before.get(name), value, marker=marker, reference=issue["key"])
    return after, entry


def put_property(unit: Unit, collection: str, owner: str, key: str, value: Any) -> bool:
    """Set a property of an issue or a comment; True when it is new."""
    place = f"{owner}:{key}"
    before = unit.objects.peek(collection, place)
    unit.objects.put(collection, place, {"owner": owner, "key": key, "value": value})
    old = None if before is None else before["value"]
    marker = marker_of(unit, value)
    unit.effects.changed(_kind(collection), place, old, value, marker=marker, reference=place)
    return before is None


def properties_of(unit: Unit, collection: str, owner: str) -> list[Doc]:
    """The properties of an issue or a comment as `{"key", "value"}`."""
    return [
        {"key": item["key"], "value": item["value"]} for item in unit.objects.all(collection) if item["owner"] == owner
    ]


def remove_property(unit: Unit, collection: str, owner: str, key: str) -> None:
    """Take a property away.

    Raises:
        ApiError: it is not there.
    """
    place = f"{owner}:{key}"
    before = unit.objects.peek(collection, place)
    if before is None:
        raise ApiError(404, "not_found", f"The property with key {key} does not exist.")
    unit.objects.remove(collection, place)
    unit.effects.changed(_kind(collection), place, before["value"], None, reference=place)


def is_document(value: Any) -> bool:
    """Whether a value is a rich-text document in the Atlassian Document Format."""
    doc = as_doc(value)
    return doc.get("type") == "doc" and doc.get("version") == 1 and isinstance(doc.get("content"), list)


def _back(unit: Unit, issue: Doc, name: str, value: Any) -> bool:
    present = unit.effects.find(f"issue_{name}", f"issue:{issue['key']}")
    return any(effect["detail"]["before"] == value for effect in present)


def _plain(value: Any) -> Any:
    return " ".join(map(str, as_list(value))) if isinstance(value, list) else value


def _kind(collection: str) -> str:
    return "issue_property" if collection == ISSUE_PROPERTIES else "comment_property"
